// The handle on something that runs and settles.
//
// In: a run, and the promise of its value. Out: an object by which the caller awaits the value and ends the run.

import { reasonText } from './reason.js';

/** The run behind a handle. */
export interface Handled {
  readonly running: boolean;
  terminate(reason: string | undefined): void;
}

export class Handle<Value> implements PromiseLike<Value> {
  readonly #run: Handled;
  readonly #value: Promise<Value>;
  readonly #tag: string;

  constructor(run: Handled, value: Promise<Value>, tag: string) {
    this.#run = run;
    this.#value = value;
    this.#tag = tag;
  }

  get running(): boolean {
    return this.#run.running;
  }

  /** Ends the run; the first reason counts. */
  terminate(reason?: unknown): void {
    this.#run.terminate(reason === undefined ? undefined : reasonText(reason));
  }

  then<A = Value, B = never>(
    onFulfilled?: ((value: Value) => A | PromiseLike<A>) | null,
    onRejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.#value.then(onFulfilled, onRejected);
  }

  catch<B = never>(onRejected?: ((reason: unknown) => B | PromiseLike<B>) | null): Promise<Value | B> {
    return this.#value.catch(onRejected);
  }

  finally(onFinally?: (() => void) | null): Promise<Value> {
    return this.#value.finally(onFinally);
  }

  get [Symbol.toStringTag](): string {
    return this.#tag;
  }
}
