// Calls of executors of the library.
//
// In: a call that the native side has started, and its context. Out: a promise of its result; its live output, handed to
// the receivers of the context.

import { AsyncResource } from 'node:async_hooks';

import type { ExecutorErrorCode } from '../../executors.js';
import { NewsKind } from '../wire.js';
import { type Context, ExecutorError } from './data.js';
import { unwatch, watch } from '../signals.js';
import { Work } from './work.js';

/** Starts a call, and returns its number. */
type Begin = () => number;

class Call<T> extends Work {
  readonly #context: Context | undefined;
  readonly #async = new AsyncResource('isolane.executor', { requireManualDestroy: true });
  readonly #resolve: (result: T) => void;
  readonly #reject: (error: unknown) => void;
  readonly #read: (message: never) => T;
  /** The exception of a receiver, which has ended the call. */
  #thrown: { readonly error: unknown } | undefined;
  /** Whether the signal was aborted. */
  #isAborted = false;
  readonly #abort = (): void => {
    this.#isAborted = true;
    this.cancel();
  };

  constructor(context: Context | undefined, read: (message: never) => T, resolve: (result: T) => void, reject: (error: unknown) => void) {
    super();
    this.#context = context;
    this.#read = read;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  /** Throws as `begin` and the signal do. Nothing has begun then. */
  begin(begin: Begin): void {
    const signal = this.#context?.signal;
    this.#isAborted = signal?.aborted === true;
    if (signal !== undefined && !this.#isAborted) watch(signal, this.#abort);
    try {
      this.began(begin());
    } catch (error) {
      this.#unwatch();
      throw error;
    }
    this.hold(true);
    // The signal may have been aborted while its listener was added.
    if (this.#isAborted) this.cancel();
  }

  protected heard(kind: NewsKind, _: number, message: unknown): void {
    switch (kind) {
      case NewsKind.Stdout:
        this.#receive(this.#context?.stdout, message);
        return;
      case NewsKind.Stderr:
        this.#receive(this.#context?.stderr, message);
        return;
      case NewsKind.Ended:
        this.#settle(() => this.#resolve(this.#read(message as never)));
        return;
      default: {
        const [code, text] = message as [ExecutorErrorCode, string];
        this.#settle(() => this.#reject(new ExecutorError(code, text, code === 'cancelled' ? this.#cause() : undefined)));
      }
    }
  }

  protected broke(failure: unknown): void {
    this.#settle(() => this.#reject(failure));
  }

  #receive(receiver: Function | undefined, bytes: unknown): void {
    if (receiver === undefined || this.#thrown !== undefined) return;
    try {
      this.#async.runInAsyncScope(receiver as (bytes: unknown) => void, undefined, bytes);
    } catch (error) {
      this.#thrown = { error };
      this.cancel();
    }
  }

  /** The reason of the signal that was aborted. */
  #cause(): ErrorOptions | undefined {
    if (!this.#isAborted) return undefined;
    try {
      return { cause: this.#context?.signal?.reason };
    } catch {
      // A getter of the caller's must not keep the call from its end.
      return undefined;
    }
  }

  #unwatch(): void {
    const signal = this.#context?.signal;
    if (signal !== undefined) unwatch(signal, this.#abort);
  }

  #settle(settle: () => void): void {
    this.#unwatch();
    this.#async.emitDestroy();
    if (this.#thrown !== undefined) this.#reject(this.#thrown.error);
    else settle();
  }
}

/** Starts a call; its result is read from a message. Throws as `begin` does. */
export function call<T>(begin: Begin, read: (message: never) => T, context?: Context): Promise<T> {
  let resolve!: (result: T) => void;
  let reject!: (error: unknown) => void;
  const result = new Promise<T>((...settlers) => {
    [resolve, reject] = settlers;
  });
  new Call(context, read, resolve, reject).begin(begin);
  return result;
}
