// Functions of the sandbox, for callers in the host.
//
// In: numbers that the sandbox gave out. Out: asynchronous functions. A number stands for the same function while
// that function is reachable. After its collection the sandbox receives a release and can free its own. A call
// after the end of the sandbox rejects. A function keeps its sandbox; the registry of functions must not.

import { bridge, native } from '../addon/connection.js';
import { setImmediate } from '../addon/event-loop.js';
import { borrowEncoder, returnEncoder } from '../crossing/encoders.js';
import { forEach } from '../crossing/slices.js';
import type { RunContext } from './current.js';
import { keyed } from './keyed.js';
import type { SandboxState } from './sandbox-state.js';

type SandboxFunction = (...args: unknown[]) => Promise<unknown>;

interface Entry {
  readonly owner: WeakRef<SandboxFunctions>;
  readonly number: number;
  /** The place of the cell that gave it in the order of its session; 0 for a run. */
  readonly cell: number;
  /** The number of times that the number was received, for the release. */
  times: number;
  /** The error of its calls, once the cell that gave it has been undone. */
  lost: (() => Error) | undefined;
}

interface PendingCall {
  resolve(value: unknown): void;
  reject(reason: unknown): void;
  /** Its context, if the event loop waits for it. */
  context: RunContext | undefined;
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
  forEach(entries, (entry) => entry.owner.deref()?.release(entry));
}

/** The functions of one sandbox that reached the host. */
export class SandboxFunctions {
  private readonly sandbox: SandboxState;
  private readonly self = new WeakRef(this);
  private readonly known = new Map<number, { ref: WeakRef<SandboxFunction>; entry: Entry }>();
  private calls = new Map<number, PendingCall>();
  private callsMade = 0;

  constructor(sandbox: SandboxState) {
    this.sandbox = sandbox;
  }

  /** The function with that number, which came from that cell. */
  fn(number: number, name: string, cell = 0): SandboxFunction {
    const known = this.known.get(keyed(number));
    const alive = known?.ref.deref();
    if (known !== undefined && alive !== undefined) {
      known.entry.times += 1;
      return alive;
    }
    const entry: Entry = { owner: this.self, number, cell, times: 1, lost: undefined };
    const fn: SandboxFunction = (...args) => this.call(entry, args);
    Object.defineProperty(fn, 'name', { value: name, configurable: true });
    entries.set(fn, entry);
    registry.register(fn, entry);
    this.known.set(keyed(number), { ref: new WeakRef(fn), entry });
    return fn;
  }

  /** The number of a function of this sandbox; undefined for any other function, and for one that was lost. */
  numberOf(fn: Function): number | undefined {
    const entry = entries.get(fn);
    return entry?.owner === this.self && entry.lost === undefined ? entry.number : undefined;
  }

  /** Releases a function that has been collected on this side. The sandbox may have one that was lost: where cells
   * interleave, another one may have completed since it was given. */
  release(entry: Entry): void {
    if (!this.sandbox.running) return;
    if (this.known.get(keyed(entry.number))?.entry === entry) this.known.delete(keyed(entry.number));
    native.releaseFunction(bridge(), this.sandbox.number, entry.number, entry.times);
  }

  /** Settles a call with the completion that the sandbox sent. */
  settle(call: number, ok: boolean, value: unknown): void {
    const pending = this.calls.get(call);
    this.calls.delete(call);
    if (pending?.context !== undefined) this.sandbox.releaseCall(pending.context);
    if (ok) pending?.resolve(value);
    else pending?.reject(value);
  }

  /** Rejects the calls that are pending at the end of the sandbox. */
  end(): void {
    const { calls } = this;
    this.calls = new Map();
    this.known.clear();
    forEach(calls.values(), (pending) => {
      if (pending.context !== undefined) this.sandbox.releaseCall(pending.context);
      pending.reject(this.sandbox.ended());
    });
  }

  /** Has calls of functions that came from such cells reject with that error: they are no more in the sandbox. */
  lose(isLost: (cell: number) => boolean, error: () => Error): void {
    for (const [key, { entry }] of this.known) {
      if (!isLost(entry.cell)) continue;
      entry.lost = error;
      this.known.delete(key);
    }
  }

  /** The numbers of the functions that are reachable, and how often each was received. */
  *received(): Generator<readonly [number: number, times: number]> {
    for (const { entry } of this.known.values()) yield [entry.number, entry.times];
  }

  /** Numbers calls after those of another sandbox, of which this one is a copy. */
  continues(other: SandboxFunctions): void {
    this.callsMade = other.callsMade;
  }

  private call({ number, lost }: Entry, args: unknown[]): Promise<unknown> {
    const promise = new Promise((resolve, reject) => {
      if (!this.sandbox.running) throw this.sandbox.ended();
      if (lost !== undefined) throw lost();
      this.send(number, args, { resolve, reject, context: undefined });
    });
    // A rejection by the sandbox must not end a host process that does not handle it.
    promise.catch(ignore);
    return promise;
  }

  private send(number: number, args: unknown[], pending: PendingCall): void {
    const encoder = borrowEncoder();
    try {
      encoder.begin(this.sandbox);
      this.sandbox.gives(0, () => encoder.value(args, 'arguments'));
      this.callsMade += 1;
      this.calls.set(this.callsMade, pending);
      native.callFunction(bridge(), this.sandbox.number, number, this.callsMade, encoder.bytes, encoder.at, encoder.blobs);
      pending.context = this.sandbox.holdForCall();
    } finally {
      returnEncoder(encoder);
    }
  }
}

export function ignore(): void {}
