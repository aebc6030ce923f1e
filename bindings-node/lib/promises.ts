// Promises that cross while a run is running.
//
// In: promises of the host, which get numbers and are settled inside under them; and numbers of the
// sandbox's promises, which become promises here. One that rejects with no one looking ends nothing.

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
  /** Own promises that have not settled, so that one handed back is itself again. */
  private readonly own = new Map<number, PromiseLike<unknown>>();
  private theirs = new Map<number, Waiting>();
  /** The numbers of own promises, until the sandbox has been told what each came to. */
  private readonly numbers = new Map<PromiseLike<unknown>, number>();
  /** Own promises of which it has been told. */
  private readonly told = new WeakSet<PromiseLike<unknown>>();
  private given = 0;

  constructor(run: Run) {
    this.run = run;
  }

  /** A number for a promise of the host. */
  number(promise: PromiseLike<unknown>): number {
    const known = this.numbers.get(promise);
    if (known !== undefined) return known;
    this.given += 1;
    const number = this.given;
    this.numbers.set(promise, number);
    this.own.set(keyed(number), promise);
    // Promises that come to each other are told of again and again: never without a turn in between.
    if (this.told.has(promise)) setImmediate(() => this.watch(number, promise));
    else this.watch(number, promise);
    return number;
  }

  /** Tells the sandbox, under that number, what becomes of a promise of the host. */
  watch(number: number, promise: PromiseLike<unknown>): void {
    this.own.set(keyed(number), promise);
    const settle = (ok: boolean, value: unknown): void => {
      // The outcome may contain the promise itself, so the promise keeps its number until that is told.
      if (this.run.running) {
        const thrown = complete(this.run, ok, value, (...message) => native.settlePromise(bridge, this.run.number, number, ...message));
        this.run.throws.keepOfPromise(number, thrown);
      }
      this.own.delete(keyed(number));
      this.numbers.delete(promise);
      this.told.add(promise);
    };
    Promise.resolve(promise).then(
      (value) => settle(true, value),
      (reason: unknown) => settle(false, reason),
    );
  }

  /** A promise of the host that comes back. */
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

  /** A promise of the sandbox settled. It is forgotten: one that crosses again has another number. */
  settle(number: number, ok: boolean, value: unknown): void {
    const waiting = this.theirs.get(keyed(number));
    this.theirs.delete(keyed(number));
    if (ok) waiting?.resolve(value);
    else waiting?.reject(value);
  }

  /** The run has settled: its promises never will. */
  end(): void {
    const { theirs } = this;
    this.theirs = new Map();
    this.own.clear();
    this.numbers.clear();
    forEach(theirs.values(), ({ reject }) => reject(ended()));
  }
}
