// Functions of the sandbox, for callers in the host.
//
// In: numbers that the sandbox gave out. Out: asynchronous functions. A number stands for the same function while
// that function is reachable. After its collection the sandbox receives a release and can free its own. A call
// after the run has settled rejects.

import { borrowEncoder, bridge, native, returnEncoder } from './bridge.js';
import { setImmediate } from './event-loop.js';
import { keyed } from './keyed.js';
import type { Run } from './run.js';
import { forEach } from './slices.js';

type SandboxFunction = (...args: unknown[]) => Promise<unknown>;

interface Entry {
  readonly run: Run;
  readonly number: number;
  /** The number of times that the number was received, for the release. */
  times: number;
}

interface PendingCall {
  resolve(value: unknown): void;
  reject(reason: unknown): void;
}

const entries = new WeakMap<Function, Entry>();

// One garbage collection may free a hundred thousand functions, so they are released in slices.
let collected: Entry[] = [];
const registry = new FinalizationRegistry<Entry>((entry) => {
  if (collected.push(entry) === 1) setImmediate(releaseAll);
});

function releaseAll(): void {
  const entries = collected;
  collected = [];
  forEach(entries, (entry) => entry.run.sandboxFunctions.release(entry));
}

/** The functions of one run's sandbox that reached the host. */
export class SandboxFunctions {
  private readonly run: Run;
  private readonly known = new Map<number, { ref: WeakRef<SandboxFunction>; entry: Entry }>();
  private calls = new Map<number, PendingCall>();
  private callsMade = 0;

  constructor(run: Run) {
    this.run = run;
  }

  /** The function with that number. */
  fn(number: number, name: string): SandboxFunction {
    const known = this.known.get(keyed(number));
    const alive = known?.ref.deref();
    if (known !== undefined && alive !== undefined) {
      known.entry.times += 1;
      return alive;
    }
    const fn: SandboxFunction = (...args) => this.call(number, args);
    Object.defineProperty(fn, 'name', { value: name, configurable: true });
    const entry = { run: this.run, number, times: 1 };
    entries.set(fn, entry);
    registry.register(fn, entry);
    this.known.set(keyed(number), { ref: new WeakRef(fn), entry });
    return fn;
  }

  /** The number of a function of this run's sandbox; undefined for any other function. */
  numberOf(fn: Function): number | undefined {
    const entry = entries.get(fn);
    return entry?.run === this.run ? entry.number : undefined;
  }

  /** Releases a function that has been collected on this side. */
  release(entry: Entry): void {
    if (!this.run.running) return;
    if (this.known.get(keyed(entry.number))?.entry === entry) this.known.delete(keyed(entry.number));
    native.releaseFunction(bridge, this.run.number, entry.number, entry.times);
  }

  /** Settles a call with the completion that the sandbox sent. */
  settle(call: number, ok: boolean, value: unknown): void {
    const pending = this.calls.get(call);
    this.calls.delete(call);
    if (ok) pending?.resolve(value);
    else pending?.reject(value);
  }

  /** Rejects the calls that are pending when the run has settled. */
  end(): void {
    const { calls } = this;
    this.calls = new Map();
    this.known.clear();
    forEach(calls.values(), (pending) => pending.reject(ended()));
  }

  private call(number: number, args: unknown[]): Promise<unknown> {
    const promise = new Promise((resolve, reject) => {
      if (!this.run.running) throw ended();
      this.send(number, args, { resolve, reject });
    });
    // A rejection by the sandbox must not end a host process that does not handle it.
    promise.catch(ignore);
    return promise;
  }

  private send(number: number, args: unknown[], pending: PendingCall): void {
    const encoder = borrowEncoder();
    try {
      encoder.begin(this.run);
      encoder.value(args, 'arguments');
      this.callsMade += 1;
      this.calls.set(this.callsMade, pending);
      native.callFunction(bridge, this.run.number, number, this.callsMade, encoder.bytes, encoder.at, encoder.blobs);
    } finally {
      returnEncoder(encoder);
    }
  }
}

/** The error for anything that needs a running run after it has settled. */
export function ended(): Error {
  const error = new Error('the run has settled; nothing in its sandbox can be called any more');
  // Until its stack is text, an error holds the objects on the stack: here the reader of the outcome.
  void error.stack;
  return error;
}

export function ignore(): void {}
