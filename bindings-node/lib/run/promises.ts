// Promises that cross between the host and one sandbox.
//
// In: promises of the host, and numbers of promises of the sandbox. Out: numbers, under which the host's promises
// settle inside; and promises for the sandbox's numbers. A sandbox promise that rejects without a handler does not
// end the process. A promise of the host that is pending at the end of the sandbox keeps nothing of it alive.

import { bridge, native } from '../addon/connection.js';
import { setImmediate } from '../addon/event-loop.js';
import { complete } from '../crossing/completion.js';
import { NO_FUNCTION } from '../crossing/encode.js';
import { forEach } from '../crossing/slices.js';
import { keyed } from './keyed.js';
import { ignore } from './sandbox-functions.js';
import type { SandboxState } from './sandbox-state.js';

/** A promise of the sandbox that has not settled. */
interface Waiting {
  readonly promise: Promise<unknown>;
  /** The place of the cell that gave it in the order of its session; 0 for a run. */
  readonly cell: number;
  resolve(value: unknown): void;
  reject(reason: unknown): void;
}

/** The promises of one sandbox, in both directions. */
export class Promises {
  protected readonly sandbox: SandboxState;
  /** Watchers of own promises that have not settled. */
  private watchers = new Set<Watcher>();
  private theirs = new Map<number, Waiting>();
  /** The numbers of own promises whose completions have not been sent to the sandbox. */
  protected readonly numbers = new Map<Promise<unknown>, number>();
  /** The places of the cells to which alone own promises were given. */
  protected readonly receivers = new Map<Promise<unknown>, number>();
  /** Own promises whose completions have been sent. */
  private readonly sent = new WeakSet<Promise<unknown>>();
  protected given = 0;

  constructor(sandbox: SandboxState) {
    this.sandbox = sandbox;
  }

  /** The number of a promise of the host, which the host function `fn` returned. */
  number(promise: Promise<unknown>, fn: number): number {
    const known = this.numbers.get(promise);
    if (known !== undefined) {
      if (this.receivers.get(promise) !== this.sandbox.receiver) this.receivers.delete(promise);
      return known;
    }
    this.given += 1;
    const number = this.given;
    this.numbers.set(promise, number);
    this.receives(promise);
    // Promises that resolve to each other are sent again and again, so each repeat waits for a turn.
    if (this.sent.has(promise)) setImmediate(() => this.watch(number, promise, fn));
    else this.watch(number, promise, fn);
    return number;
  }

  /**
   * Sends the completion of a promise of the host to the sandbox, under that number. A rejection is handled with this,
   * also if the sandbox has ended. `fn` is the host function that returned the promise.
   */
  watch(number: number, promise: Promise<unknown>, fn = NO_FUNCTION): void {
    const watcher = new Watcher(this.reference(), number, promise, fn);
    if (this.sandbox.running) this.watchers.add(watcher);
    else watcher.end();
    watch(promise, watcher);
  }

  /** Watches the answer of an asynchronous call, as {@link watch}. */
  watchAnswer(number: number, answer: Promise<unknown>, fn: number): void {
    if (!this.numbers.has(answer)) this.receives(answer);
    this.watch(number, answer, fn);
  }

  /** Notes the cell that receives a promise now. */
  private receives(promise: Promise<unknown>): void {
    const { receiver } = this.sandbox;
    if (receiver !== 0) this.receivers.set(promise, receiver);
  }

  /** Forgets own promises that were given to such cells alone: the sandbox has them no more. */
  takeBack(isLost: (cell: number) => boolean): void {
    for (const watcher of this.watchers) {
      const { promise } = watcher;
      const cell = promise === undefined ? undefined : this.receivers.get(promise);
      if (promise === undefined || cell === undefined || !isLost(cell)) continue;
      this.watchers.delete(watcher);
      this.numbers.delete(promise);
      this.receivers.delete(promise);
      watcher.end();
    }
  }

  /** The reference to this that a promise of the host holds. */
  protected reference(): Reference {
    return this;
  }

  deref(): this {
    return this;
  }

  /** Sends the completion that a watcher has seen. */
  send(watcher: Watcher, ok: boolean, value: unknown, promise: Promise<unknown>): void {
    const { number, fn } = watcher;
    // The completion may contain the promise itself, so the promise keeps its number until that is sent.
    const send = (): unknown =>
      complete(this.sandbox, fn, ok, value, (...message) => native.settlePromise(bridge(), this.sandbox.number, number, ...message));
    const thrown = this.sandbox.gives(this.receivers.get(promise) ?? 0, send);
    this.sandbox.throws.keepOfPromise(number, thrown);
    this.watchers.delete(watcher);
    this.numbers.delete(promise);
    this.receivers.delete(promise);
    this.sent.add(promise);
  }

  /** The promise of the sandbox with that number, which came from that cell. */
  sandboxPromise(number: number, cell = 0): Promise<unknown> {
    const known = this.theirs.get(keyed(number));
    if (known !== undefined) return known.promise;
    let resolve!: (value: unknown) => void;
    let reject!: (reason: unknown) => void;
    const promise = new Promise<unknown>((...settlers) => {
      [resolve, reject] = settlers;
    });
    promise.catch(ignore);
    if (this.sandbox.running) this.theirs.set(keyed(number), { promise, cell, resolve, reject });
    else reject(this.sandbox.ended());
    return promise;
  }

  /** Settles a promise of the sandbox and forgets it. If it crosses again it has another number. */
  settle(number: number, ok: boolean, value: unknown): void {
    const waiting = this.theirs.get(keyed(number));
    this.theirs.delete(keyed(number));
    if (ok) waiting?.resolve(value);
    else waiting?.reject(value);
  }

  /** Whether a promise of the sandbox with that number has not settled. */
  protected isPending(number: number): boolean {
    return this.theirs.has(keyed(number));
  }

  /** Rejects the promises of the sandbox that are pending and came from such cells. */
  lose(isLost: (cell: number) => boolean, error: () => Error): void {
    for (const [key, { cell, reject }] of this.theirs) {
      if (!isLost(cell)) continue;
      this.theirs.delete(key);
      reject(error());
    }
  }

  /** Rejects the promises of the sandbox that are pending at the end of the sandbox. */
  end(): void {
    const { theirs, watchers } = this;
    this.theirs = new Map();
    this.watchers = new Set();
    this.numbers.clear();
    this.receivers.clear();
    forEach(watchers, (watcher) => watcher.end());
    forEach(theirs.values(), ({ reject }) => reject(this.sandbox.ended()));
  }
}

/** A reference to the promises of a sandbox, strong or weak. */
interface Reference {
  deref(): Promises | undefined;
}

/** A sandbox's interest in a promise of the host: all that the promise holds of the sandbox. */
class Watcher {
  private promises: Reference | undefined;
  promise: Promise<unknown> | undefined;
  readonly number: number;
  /** The number of the host function that returned the promise. */
  readonly fn: number;

  constructor(promises: Reference, number: number, promise: Promise<unknown>, fn: number) {
    this.promises = promises;
    this.promise = promise;
    this.number = number;
    this.fn = fn;
  }

  settled(ok: boolean, value: unknown): void {
    const { promises, promise } = this;
    this.end();
    if (promise !== undefined) promises?.deref()?.send(this, ok, value, promise);
  }

  end(): void {
    this.promises = undefined;
    this.promise = undefined;
  }
}

/** Tells the watcher, on a later turn, how the promise settles. */
function watch(promise: Promise<unknown>, watcher: Watcher): void {
  // A `then` of the promise's own may do anything at once. Resolving another promise calls it later and catches it.
  const plain = hasPlainThen(promise) ? promise : new Promise((resolve) => { resolve(promise); });
  plain.then(
    (value) => watcher.settled(true, value),
    (reason: unknown) => watcher.settled(false, reason),
  );
}

/** Whether the promise has neither `then` nor `constructor` of its own or of a class of the caller's. */
function hasPlainThen(promise: Promise<unknown>): boolean {
  return (
    Object.getPrototypeOf(promise) === Promise.prototype && !Object.hasOwn(promise, 'then') && !Object.hasOwn(promise, 'constructor')
  );
}
