// Kits: ready-made capabilities for runs, and the host's own use of them.
//
// In: options as the caller wrote them. Out: runs and sessions whose code has the capabilities, and promises of the
// host's own calls. The native side reads all options and answers all calls; this module only moves messages.

import { fileURLToPath } from 'node:url';

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
} from '../../kit.js';
import { misuse } from '../crossing/misuse.js';
import { type Bag, object, option, wrongType } from '../crossing/options.js';
import { type ArgumentNames, Door } from '../door/door.js';
import { readOptions, readToolOptions } from '../run/options.js';
import { Page, type PageSource, kindOfSource } from './page.js';

/** The key by which another system finds a kit. */
export let keyOf: (kit: Kit) => string;

export class Kit {
  static {
    keyOf = (kit) => kit.#door.ask('key') as string;
  }

  readonly #door: Door;
  readonly #page: Page | undefined;
  #closed: Promise<void> | undefined;
  readonly secrets: KitSecrets;

  constructor(options?: unknown) {
    const { runtime, source, rest } = divided(options === undefined ? {} : object(options, 'options'));
    const door = new Door('kit', rest, runtime, undefined, NAMES);
    this.#door = door;
    if (source !== undefined) this.#page = new Page(source, door, () => proxyOf(door));
    this.secrets = secretsOf(door);
  }

  get state(): KitState {
    const call = caller(this.#door, 'state');
    return {
      get: (...args) => call('get', args),
      async set(...args) {
        // As code has it; no symbol crosses.
        if (typeof args[1] === 'symbol') throw new TypeError('state.set takes a value that is no symbol');
        await call('set', args);
      },
      delete: (...args) => call('delete', args) as Promise<boolean>,
      keys: (...args) => call('keys', args) as Promise<string[]>,
    };
  }

  get db(): KitDatabase {
    const call = caller(this.#door, 'db');
    return {
      sql: (...args) => call('sql', args) as ReturnType<KitDatabase['sql']>,
      batch: (...args) => call('batch', args) as ReturnType<KitDatabase['batch']>,
      schema: (...args) => call('schema', args) as ReturnType<KitDatabase['schema']>,
    };
  }

  get libraries(): KitLibraries {
    const call = caller(this.#door, 'libraries');
    return {
      create: (...args) => call('create', args) as Promise<void>,
      update: (...args) => call('update', args) as Promise<void>,
      delete: (...args) => call('delete', args) as Promise<boolean>,
      get: (...args) => call('get', args) as ReturnType<KitLibraries['get']>,
      list: (...args) => call('list', args) as ReturnType<KitLibraries['list']>,
    };
  }

  runTool(source: unknown, options?: unknown): ToolExecution {
    return this.#door.start('tool', source, readToolOptions(options)) as unknown as ToolExecution;
  }

  runCode(source: unknown, options?: unknown): KitExecution<KitCodeResult> {
    return this.#door.start('code', source, readOptions(options, true)) as unknown as KitExecution<KitCodeResult>;
  }

  session(options?: unknown): KitSession {
    // Its cells have the kit's part in their results.
    return this.#door.session(options) as unknown as KitSession;
  }

  describe(): Promise<string> {
    return answer(this.#door, 'describe', []) as Promise<string>;
  }

  proxy(): Promise<BrowserProxy> {
    return proxyOf(this.#door);
  }

  close(): Promise<void> {
    if (this.#closed === undefined) {
      this.#door.ask('close');
      this.#closed = this.#page?.atRest() ?? Promise.resolve();
    }
    return this.#closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  get [Symbol.toStringTag](): string {
    return 'Kit';
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

const NAMES: ArgumentNames = {
  'state.get': ['key'],
  'state.set': ['key', 'value'],
  'state.delete': ['key'],
  'state.keys': ['prefix'],
  'db.sql': ['sql', 'params'],
  'db.batch': ['statements'],
  'libraries.create': ['name', 'source', 'options'],
  'libraries.update': ['name', 'source', 'options'],
  'libraries.delete': ['name'],
  'libraries.get': ['name'],
  'secrets.set': ['name', 'secret'],
  'secrets.delete': ['name'],
};

function secretsOf(door: Door): KitSecrets {
  return Object.freeze({
    set(name: string, secret: unknown): void {
      door.ask('secrets.set', [name, secret]);
    },
    delete: (name: string) => door.ask<boolean>('secrets.delete', [name]),
    names: () => door.ask<string[]>('secrets.names'),
  });
}

function proxyOf(door: Door): Promise<BrowserProxy> {
  return answer(door, 'proxy', []) as Promise<BrowserProxy>;
}

/** Calls functions of a group of the host's side. */
function caller(door: Door, group: string): (name: string, args: readonly unknown[]) => Promise<unknown> {
  return (name, args) => answer(door, `${group}.${name}`, args, group === 'state');
}

/** The answer of a function of the host's side, which rejects with an error also for misuse. */
async function answer(door: Door, method: string, args: readonly unknown[], isJson = false): Promise<unknown> {
  try {
    return await door.answer(method, args, isJson);
  } catch (thrown) {
    throw thrown instanceof Error ? thrown : asError(thrown as Fields);
  }
}

/** The fields of an error of a capability; a place only if it has one. */
type Fields = Readonly<Pick<KitError, 'name' | 'message' | 'code' | 'filename' | 'line' | 'column'>>;

/** The error of a capability with these fields: that of the language for wrong arguments. */
function asError({ name, message, ...place }: Fields): Error {
  if (name === 'TypeError') return new TypeError(message);
  if (name === 'RangeError') return new RangeError(message);
  return Object.assign(new KitError(name, message), place);
}

const BROWSER = 'a page or a context of Playwright, or a function that gives one';

/** The runtime and the page among the options, and the other options. */
function divided(bag: Bag): { runtime: unknown; source: PageSource | undefined; rest: Bag } {
  const runtime = option(bag, 'runtime');
  const browser = option(bag, 'browser');
  const { runtime: _, browser: __, ...others } = bag;
  const rest = withFiles(others);
  if (browser === undefined) return { runtime, source: undefined, rest };
  const { source, options } = readBrowser(browser);
  return { runtime, source, rest: { ...rest, browser: options } };
}

/** The options with paths in place of URLs of files. */
function withFiles(bag: Bag): Bag {
  const { file, db } = bag;
  const read = file instanceof URL ? { ...bag, file: pathOf(file, 'file') } : bag;
  if (typeof db !== 'object' || db === null || !((db as Bag).file instanceof URL)) return read;
  return { ...read, db: { ...db, file: pathOf((db as Bag).file as URL, 'db.file') } };
}

function pathOf(url: URL, name: string): string {
  if (url.protocol !== 'file:') wrongType(name, 'a path or the URL of a file', url);
  return fileURLToPath(url);
}

/** The page of the option `browser`, and its other options. */
function readBrowser(given: unknown): { source: PageSource | undefined; options: unknown } {
  refuseBrowser(given, 'browser');
  if (kindOfSource(given) !== undefined) return { source: given as PageSource, options: {} };
  // The native side refuses it.
  if (typeof given !== 'object' || given === null || Array.isArray(given)) return { source: undefined, options: given };
  const bag = object(given, 'browser');
  const [page, context] = [option(bag, 'page'), option(bag, 'context')];
  if (page !== undefined && context !== undefined) {
    throw misuse({ kind: 'type', message: 'browser has both page and context; give one of them' });
  }
  const [name, source] = page === undefined ? (['context', context] as const) : (['page', page] as const);
  if (source === undefined) wrongType('browser', BROWSER, given);
  refuseBrowser(source, `browser.${name}`);
  const kind = kindOfSource(source);
  if (kind !== name && kind !== 'function') {
    wrongType(`browser.${name}`, `a ${name} of Playwright, or a function that gives one`, source);
  }
  const { page: _, context: __, ...options } = bag;
  return { source: source as PageSource, options };
}

/** Refuses a browser, which looks like a context: it has no page that code and host could share. */
function refuseBrowser(given: unknown, name: string): void {
  if (kindOfSource(given) !== 'browser') return;
  const message = `${name} must be a page or a context, got a Browser of Playwright: give one of its contexts, or a function`;
  throw misuse({ kind: 'type', message });
}
