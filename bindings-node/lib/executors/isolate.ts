// The executor of JavaScript and TypeScript: each call is a cell in an isolate of Isolane.
//
// In: options as the caller wrote them, and inputs of calls. Out: promises of results. The values that code sees are
// written once, when the executor is made. The native side opens sessions with them and queues cells in the call of
// `startExecution`, and gives their numbers; their events come to this thread, as those of any session.

import { attach, borrowEncoder, bridge, folder, native, returnEncoder } from '../bridge.js';
import { Cell } from '../cell.js';
import { misuse } from '../misuse.js';
import type { Misuse, NativeExecutor, NativeRuntime } from '../native.js';
import { type Bag, EMPTY, object, option, optional, readRuntimeOptions, refuseUnknownNames, wrongType } from '../options.js';
import { Reports } from '../reports.js';
import { Runtime, nativeRuntime } from '../runtime.js';
import { readSessionOptions, writeSession } from '../session-options.js';
import { SessionSandbox } from '../session-sandbox.js';
import { call } from './call.js';
import { LibraryExecutor, ignore, nativeExecutor } from './program.js';

const OF_SESSION = ['language', 'globals', 'imports', 'modules', 'memoryLimitBytes', 'report'];
const NUMBERS = ['timeoutMs', 'retryAttempts', 'outputLimitBytes'];
const FLAGS = ['stateful', 'showValue'];
const NAMES = [...OF_SESSION, 'runtime', 'isolation', ...NUMBERS, ...FLAGS];

/** An executor that is being made. */
interface Made {
  readonly native: NativeExecutor | Misuse;
  readonly template: SessionSandbox;
  readonly promises: Map<number, Promise<unknown>>;
}

export class IsolateCodeExecutor extends LibraryExecutor {
  /** A sandbox with the functions of the options, of which that of each session is a copy. */
  readonly #template: SessionSandbox;
  /** The promises among the options, by number. */
  readonly #promises: Map<number, Promise<unknown>>;
  /** The sandboxes of open sessions. */
  readonly #sandboxes = new Map<number, SessionSandbox>();

  constructor(options?: unknown) {
    const made = make(options);
    super(made.native);
    this.#template = made.template;
    this.#promises = made.promises;
  }

  close(): Promise<void> {
    return call(() => native.closeExecutor(bridge, nativeExecutor(this)), ignore);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  get [Symbol.toStringTag](): string {
    return 'IsolateCodeExecutor';
  }

  protected override began(begun: ReturnType<typeof native.startExecution>): number {
    const [opened, session, cell] = ['opened', 'session', 'cell'].map((name) => option(begun as unknown as Bag, name) as number | undefined);
    if (typeof opened === 'number') this.#open(opened);
    const sandbox = this.#sandboxes.get(session ?? 0);
    if (typeof cell === 'number' && sandbox !== undefined) {
      const run = new Cell(sandbox, undefined, new Reports(), ignore);
      run.started(cell);
      attach(cell, run);
    }
    return begun.work;
  }

  #open(number: number): void {
    for (const [known, sandbox] of this.#sandboxes) if (!sandbox.running) this.#sandboxes.delete(known);
    this.#sandboxes.set(number, this.#template.copied(number, this.#promises));
  }
}

function make(options: unknown): Made {
  const bag: Bag = options === undefined ? EMPTY : object(options, 'options');
  refuseUnknownNames(bag, NAMES);
  const { runtime, ownRuntime } = readRuntime(bag);
  const own = readOwn(bag);
  const session = readSessionOptions(given(bag, OF_SESSION));
  const template = new SessionSandbox(null, session.report);
  const encoder = borrowEncoder();
  try {
    writeSession(encoder, session, template);
    const promises = template.promises.pending();
    // They settle in the sessions alone.
    template.promises.end();
    const made = native.openIsolateExecutor(bridge, runtime, ownRuntime, folder, own, encoder.bytes, encoder.at, encoder.blobs, template.natives);
    return { native: made, template, promises };
  } finally {
    returnEncoder(encoder);
  }
}

/** The runtime of the sessions, or the options of one of the executor's own; neither is the default runtime. */
function readRuntime(bag: Bag): { runtime: NativeRuntime | null; ownRuntime: ReturnType<typeof readRuntimeOptions> | null } {
  const [runtime, isolation] = [option(bag, 'runtime'), option(bag, 'isolation')];
  if (runtime !== undefined && !(runtime instanceof Runtime)) wrongType('runtime', 'a Runtime', runtime);
  if (isolation === undefined) return { runtime: runtime === undefined ? null : nativeRuntime(runtime as Runtime), ownRuntime: null };
  if (runtime !== undefined) throw misuse({ kind: 'type', message: 'runtime and isolation exclude each other' });
  return { runtime: null, ownRuntime: readRuntimeOptions({ isolation }) };
}

/** The options that are not those of sessions, as JSON. The native side checks their values. */
function readOwn(bag: Bag): string {
  const own = given(bag, [...NUMBERS, ...FLAGS]);
  for (const name of NUMBERS) {
    const value = own[name];
    if (name === 'timeoutMs' && value === null) continue;
    if (!Number.isFinite(optional(value, 'number', name) ?? 0)) {
      throw misuse({ kind: 'range', message: `${name} must be a whole number, got ${String(value)}` });
    }
  }
  for (const name of FLAGS) {
    if (own[name] !== undefined && typeof own[name] !== 'boolean') wrongType(name, 'a boolean', own[name]);
  }
  return JSON.stringify(own);
}

function given(bag: Bag, names: string[]): Record<string, unknown> {
  // From no polluted prototype: neither an option nor a `toJSON`.
  const found = { __proto__: null } as unknown as Record<string, unknown>;
  for (const name of names) {
    const value = option(bag, name);
    if (value !== undefined) found[name] = value;
  }
  return found;
}
