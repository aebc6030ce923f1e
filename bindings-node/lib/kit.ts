// Kits: ready-made capabilities for runs, and the host's own use of them.
//
// In: options as the caller wrote them. Out: runs and sessions whose code has the capabilities, and promises of the
// host's own calls. The native side reads all options and answers all calls; this module only moves messages.

import type {
  BrowserProxy,
  KitDatabase,
  KitExecution,
  KitLibraries,
  KitCodeResult,
  KitSecrets,
  KitSession,
  KitState,
  ToolExecution,
} from '../kit.js';
import { attachPage, borrowEncoder, bridge, detachPage, native, onAnswer, returnEncoder } from './bridge.js';
import type { Encoder, Numbering } from './encode.js';
import type { MessageReader } from './message-reader.js';
import { misuse } from './misuse.js';
import type { Misuse, NativeKit, NativeRuntime } from './native.js';
import { type Bag, object, option, readOptions, readToolOptions, wrongType } from './options.js';
import { Page, type PageSource, kindOfSource } from './page.js';
import { Reports } from './reports.js';
import { Run } from './run.js';
import { type Begin, launch } from './run-code.js';
import { Runtime, nativeRuntime } from './runtime.js';
import { Sandbox } from './sandbox.js';
import { openKitSession } from './session.js';
import { CallErrorFlag } from './wire.js';

/** Numbers functions and promises among arguments. Nothing calls them: in JSON form a function is nothing. */
const NUMBERING: Numbering = {
  hostFunction: () => 0,
  nativeFunction: () => 0,
  sandboxFunction: () => undefined,
  hostPromise: () => 0,
  answerOf: () => 'result',
};

/** The key by which another system finds a kit. */
export let keyOf: (kit: Kit) => string;

export class Kit {
  static {
    keyOf = (kit) => native.kitKey(kit.#native);
  }

  readonly #native: NativeKit;
  #closed: Promise<void> | undefined;
  /** The page with its number, which this object keeps. */
  readonly #page: { page: Page; number: number } | undefined;
  readonly secrets: KitSecrets;

  constructor(options?: unknown) {
    const bag = options === undefined ? {} : object(options, 'options');
    const { runtime, source, rest } = divided(bag);
    const page = source === undefined ? undefined : new Page(source, () => this.proxy());
    const number = page === undefined ? null : attachPage(page);
    const opened = withMessage(rest, 'options', (encoder) =>
      native.openKit(bridge, runtime, encoder.bytes, encoder.at, encoder.blobs, number),
    );
    if (Object.hasOwn(opened, 'message')) throw misuse(opened as Misuse);
    const kit = opened as NativeKit;
    if (page !== undefined && number !== null) {
      page.next = () => native.nextPageTask(kit);
      page.answer = (task, answer) => native.answerPageTask(kit, task, answer);
      this.#page = { page, number };
    }
    this.#native = kit;
    this.secrets = secretsOf(this.#native);
  }

  get state(): KitState {
    const call = this.#caller('state');
    return {
      get: (...args) => call('get', args),
      set: (...args) => call('set', args) as Promise<void>,
      delete: (...args) => call('delete', args) as Promise<boolean>,
      keys: (...args) => call('keys', args) as Promise<string[]>,
    };
  }

  get db(): KitDatabase {
    const call = this.#caller('db');
    return {
      sql: (...args) => call('sql', args) as ReturnType<KitDatabase['sql']>,
      batch: (...args) => call('batch', args) as ReturnType<KitDatabase['batch']>,
      schema: (...args) => call('schema', args) as ReturnType<KitDatabase['schema']>,
    };
  }

  get libraries(): KitLibraries {
    const call = this.#caller('libraries');
    return {
      create: (...args) => call('create', args) as Promise<void>,
      update: (...args) => call('update', args) as Promise<void>,
      delete: (...args) => call('delete', args) as Promise<boolean>,
      get: (...args) => call('get', args) as ReturnType<KitLibraries['get']>,
      list: (...args) => call('list', args) as ReturnType<KitLibraries['list']>,
    };
  }

  runTool(source: unknown, options?: unknown): ToolExecution {
    return this.#launch(source, readToolOptions(options), true) as unknown as ToolExecution;
  }

  runCode(source: unknown, options?: unknown): KitExecution<KitCodeResult> {
    return this.#launch(source, readOptions(options, true), false) as unknown as KitExecution<KitCodeResult>;
  }

  session(options?: unknown): KitSession {
    // Its cells have the kit's part in their results.
    return openKitSession(this.#native, options) as unknown as KitSession;
  }

  describe(): Promise<string> {
    return answered((request) => {
      native.describeKit(bridge, this.#native, request);
      return null;
    }) as Promise<string>;
  }

  proxy(): Promise<BrowserProxy> {
    return this.#caller('browser')('proxy', []) as Promise<BrowserProxy>;
  }

  close(): Promise<void> {
    if (this.#closed === undefined) {
      native.closeKit(this.#native);
      if (this.#page !== undefined) detachPage(this.#page.number);
      this.#closed = Promise.resolve();
    }
    return this.#closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  get [Symbol.toStringTag](): string {
    return 'Kit';
  }

  #launch(source: unknown, options: ReturnType<typeof readOptions>, isTool: boolean): unknown {
    const kit = this.#native;
    const begin: Begin = (encoder, natives) =>
      native.startInKit(bridge, kit, isTool, encoder.bytes, encoder.at, encoder.blobs, natives);
    return launch(source, options, kit, begin, isTool);
  }

  /** Calls functions of a group of the host's side. */
  #caller(group: string): (name: string, args: readonly unknown[]) => Promise<unknown> {
    return (name, args) =>
      answered((request) =>
        withMessage(args, 'args', (encoder) =>
          native.callKit(bridge, this.#native, request, `${group}.${name}`, encoder.bytes, encoder.at, encoder.blobs),
        ),
      );
  }
}

/** An error of a capability, when the host uses it. */
export class KitError extends Error {
  declare code?: string;
  declare filename?: string;
  declare line?: number;
  declare column?: number;

  constructor(name: string, message: string) {
    super(message);
    Object.defineProperty(this, 'name', { value: name, configurable: true, writable: true });
  }
}

function secretsOf(kit: NativeKit): KitSecrets {
  const checked = <T>(answer: T | Misuse): T => {
    if (typeof answer === 'object' && answer !== null && Object.hasOwn(answer, 'message')) throw misuse(answer as Misuse);
    return answer as T;
  };
  return Object.freeze({
    set(name: string, secret: unknown): void {
      if (typeof name !== 'string') wrongType('name', 'a string', name);
      const refused = withMessage(secret, 'secret', (encoder) =>
        native.setSecret(kit, name, encoder.bytes, encoder.at, encoder.blobs),
      );
      if (refused !== null) throw misuse(refused);
    },
    delete(name: string): boolean {
      if (typeof name !== 'string') wrongType('name', 'a string', name);
      return checked<boolean>(native.deleteSecret(kit, name));
    },
    names: () => checked<string[]>(native.secretNames(kit)),
  });
}

const BROWSER = 'a page or a context of Playwright, or a function that gives one';

/** The runtime and the page among the options, and the other options. */
function divided(bag: Bag): { runtime: NativeRuntime | null; source: PageSource | undefined; rest: Bag } {
  const given = option(bag, 'runtime');
  if (given !== undefined && !(given instanceof Runtime)) wrongType('runtime', 'a Runtime', given);
  const runtime = given === undefined ? null : nativeRuntime(given as Runtime);
  const browser = option(bag, 'browser');
  const { runtime: _, browser: __, ...rest } = bag;
  if (browser === undefined) return { runtime, source: undefined, rest };
  const { source, options } = readBrowser(browser);
  return { runtime, source, rest: { ...rest, browser: options } };
}

/** The page of the option `browser`, and its other options. */
function readBrowser(given: unknown): { source: PageSource; options: Bag } {
  if (kindOfSource(given) !== undefined) return { source: given as PageSource, options: {} };
  if (typeof given !== 'object' || given === null) wrongType('browser', BROWSER, given);
  const bag = object(given, 'browser');
  const [page, context] = [option(bag, 'page'), option(bag, 'context')];
  if (page !== undefined && context !== undefined) {
    throw misuse({ kind: 'type', message: 'browser has both page and context; give one of them' });
  }
  const [name, source] = page === undefined ? (['context', context] as const) : (['page', page] as const);
  if (source === undefined) wrongType('browser', BROWSER, given);
  const kind = kindOfSource(source);
  if (kind !== name && kind !== 'function') {
    wrongType(`browser.${name}`, `a ${name} of Playwright, or a function that gives one`, source);
  }
  const { page: _, context: __, ...options } = bag;
  return { source: source as PageSource, options };
}

/** Writes a message of plain values for `act`. */
function withMessage<T>(value: unknown, root: string, act: (encoder: Encoder) => T): T {
  const encoder = borrowEncoder();
  try {
    encoder.begin(NUMBERING);
    encoder.value(value, root);
    return act(encoder);
  } finally {
    returnEncoder(encoder);
  }
}

/** The answer to a request, which `send` sends or refuses. */
function answered(send: (request: number) => Misuse | null): Promise<unknown> {
  return new Promise((resolve, reject) => {
    // The owner of what is in the answer, which has no functions and no promises.
    const owner = new Run(new Sandbox(null), undefined, new Reports(), undefined);
    const request = onAnswer((reader) => {
      if (reader.u8() === 0) reject(readError(reader));
      else reader.read(owner, 'result', (read, value) => (read ? resolve : reject)(value));
    });
    owner.number = request;
    const refused = send(request);
    if (refused !== null) reject(misuse(refused));
  });
}

/** The error of a capability: that of the language for wrong arguments. */
function readError(reader: MessageReader): Error {
  const [name, message] = [reader.text(), reader.text()];
  if (name === 'TypeError') return new TypeError(message);
  if (name === 'RangeError') return new RangeError(message);
  const error = new KitError(name, message);
  const has = reader.u8();
  if (has & CallErrorFlag.Code) error.code = reader.text();
  if (has & CallErrorFlag.Filename) error.filename = reader.text();
  if (has & CallErrorFlag.Line) error.line = reader.u32();
  if (has & CallErrorFlag.Column) error.column = reader.u32();
  return error;
}
