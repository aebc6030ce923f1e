// Promises that cross while a run is running.
//
// In: promises of the host, and numbers of promises of the sandbox. Out: numbers, under which the host's promises
// settle inside; and promises for the sandbox's numbers. A sandbox promise that rejects without a handler does not
// end the process.

import { setImmediate } from 'node:timers';

import { bridge, native } from './bridge.js';
import { complete } from './completion.js';
import { keyed } from './keyed.js';
import type { Run } from './run.js';
import { ended, ignore } from './sandbox-functions.js';
import { forEach } from './slices.js';

interface Waiting {
  readonly promise: Promise<unknown>;
  resolve(value: unknown): void;
  reject(reason: unknown): void;
}

/** The promises of one run, in both directions. */
export class Promises {
  private readonly run: Run;
  /** Own promises that have not settled, so that one that the sandbox sends back is the same object. */
  private readonly own = new Map<number, PromiseLike<unknown>>();
  private theirs = new Map<number, Waiting>();
  /** The numbers of own promises whose completions have not been sent to the sandbox. */
  private readonly numbers = new Map<PromiseLike<unknown>, number>();
  /** Own promises whose completions have been sent. */
  private readonly sent = new WeakSet<PromiseLike<unknown>>();
  private given = 0;

  constructor(run: Run) {
    this.run = run;
  }

  /** The number of a promise of the host. */
  number(promise: PromiseLike<unknown>): number {
    const known = this.numbers.get(promise);
    if (known !== undefined) return known;
    this.given += 1;
    const number = this.given;
    this.numbers.set(promise, number);
    this.own.set(keyed(number), promise);
    // Promises that resolve to each other are sent again and again, so each repeat waits for a turn.
    if (this.sent.has(promise)) setImmediate(() => this.watch(number, promise));
    else this.watch(number, promise);
    return number;
  }

  /** Sends the completion of a promise of the host to the sandbox, under that number. */
  watch(number: number, promise: PromiseLike<unknown>): void {
    this.own.set(keyed(number), promise);
    const settle = (ok: boolean, value: unknown): void => {
      // The completion may contain the promise itself, so the promise keeps its number until that is sent.
      if (this.run.running) {
        const thrown = complete(this.run, ok, value, (...message) => native.settlePromise(bridge, this.run.number, number, ...message));
        this.run.throws.keepOfPromise(number, thrown);
      }
      this.own.delete(keyed(number));
      this.numbers.delete(promise);
      this.sent.add(promise);
    };
    Promise.resolve(promise).then(
      (value) => settle(true, value),
      (reason: unknown) => settle(false, reason),
    );
  }

  /** The promise of the host with that number, which the sandbox has sent back. */
  ownPromise(number: number): PromiseLike<unknown> | undefined {
    return this.own.get(keyed(number));
  }

  /** The promise of the sandbox with that number. */
  sandboxPromise(number: number): Promise<unknown> {
    const known = this.theirs.get(keyed(number));
    if (known !== undefined) return known.promise;
    let resolve!: (value: unknown) => void;
    let reject!: (reason: unknown) => void;
    const promise = new Promise<unknown>((...settlers) => {
      [resolve, reject] = settlers;
    });
    promise.catch(ignore);
    if (this.run.running) this.theirs.set(keyed(number), { promise, resolve, reject });
    else reject(ended());
    return promise;
  }

  /** Settles a promise of the sandbox and forgets it. If it crosses again it has another number. */
  settle(number: number, ok: boolean, value: unknown): void {
    const waiting = this.theirs.get(keyed(number));
    this.theirs.delete(keyed(number));
    if (ok) waiting?.resolve(value);
    else waiting?.reject(value);
  }

  /** Rejects the promises of the sandbox that are pending when the run has settled. */
  end(): void {
    const { theirs } = this;
    this.theirs = new Map();
    this.own.clear();
    this.numbers.clear();
    forEach(theirs.values(), ({ reject }) => reject(ended()));
  }
}
