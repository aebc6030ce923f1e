// Calls of executors through the door.
//
// In: a method of an executor, its arguments, and the context of the call. Out: a promise of its result; its live output,
// handed to the receivers of the context.

import type { ExecutorErrorCode } from '../../executors.js';
import { clearTimeout, setTimeout } from '../addon/event-loop.js';
import type { Door, DoorCall } from '../door/door.js';
import { ignore } from '../run/sandbox-functions.js';
import { unwatch, watch } from '../run/signals.js';
import { type Context, ExecutorError } from './data.js';
import { messageOf } from './refusal.js';

/** The context of a call as the native side reads it. */
export interface ContextIn {
  readonly invocationId: string;
  readonly turn: number;
  readonly attempt: number;
  readonly isCancelled: boolean;
  readonly stdout: Function | undefined;
  readonly stderr: Function | undefined;
}

/** How long the output waits for an asynchronous receiver of a piece of it. */
const MOST_RECEIVING_MS = 5000;

/** Begins a call, whose arguments are made of its context. Throws as the signal does; nothing has begun then. */
export function call<Message, T>(
  door: Door,
  method: string,
  args: (context: ContextIn) => unknown[],
  read: (message: Message) => T,
  context: Context,
): Promise<T> {
  const { signal, invocationId, turn, attempt } = context;
  let begun: DoorCall<Message> | undefined;
  /** The exception of a receiver, which has ended the call. */
  let thrown: { readonly error: unknown } | undefined;
  let isAborted = signal?.aborted === true;
  const abort = (): void => {
    isAborted = true;
    begun?.terminate();
  };
  const fail = (error: unknown): never => {
    thrown ??= { error };
    throw error;
  };
  let isLate = false;
  /** Waits for an asynchronous receiver. One that was late once is not awaited again: a call must not hang with it. */
  const awaited = (answer: PromiseLike<unknown>): Promise<void> | undefined => {
    const received = Promise.resolve(answer).then(ignore);
    if (isLate) {
      received.catch((error: unknown) => {
        thrown ??= { error };
        begun?.terminate();
      });
      return undefined;
    }
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        isLate = true;
        resolve();
      }, MOST_RECEIVING_MS);
      received.catch(fail).then(resolve, reject).finally(() => clearTimeout(timer));
    });
  };
  const receiver = (receive: Function | undefined): Function | undefined =>
    receive &&
    ((bytes: Uint8Array): Promise<void> | undefined => {
      if (thrown !== undefined) return undefined;
      try {
        const answer: unknown = receive(bytes);
        // The next piece waits.
        return isThenable(answer) ? awaited(answer) : undefined;
      } catch (error) {
        return fail(error);
      }
    });
  const [stdout, stderr] = [receiver(context.stdout), receiver(context.stderr)];
  if (signal !== undefined && !isAborted) watch(signal, abort);
  try {
    begun = door.call<Message>(method, args({ invocationId, turn, attempt, isCancelled: isAborted, stdout, stderr }));
  } catch (error) {
    if (signal !== undefined) unwatch(signal, abort);
    throw error;
  }
  const end = (): void => {
    if (signal !== undefined) unwatch(signal, abort);
    if (thrown !== undefined) throw thrown.error;
  };
  return begun.then(
    (message) => {
      end();
      return read(message);
    },
    (refused) => {
      end();
      throw errorOf(refused, isAborted ? context : undefined);
    },
  );
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && typeof (value as Partial<PromiseLike<unknown>>).then === 'function';
}

/** The error with that kind and message. If its context has cancelled it, its cause is the reason. */
function errorOf(refused: unknown, aborted: Context | undefined): ExecutorError {
  if (!Array.isArray(refused)) return new ExecutorError('other', messageOf(refused));
  const [code, message] = refused as [ExecutorErrorCode, string];
  return new ExecutorError(code, message, code === 'cancelled' && aborted !== undefined ? causeOf(aborted) : undefined);
}

function causeOf({ signal }: Context): ErrorOptions | undefined {
  try {
    return { cause: signal?.reason };
  } catch {
    // A getter of the caller's must not keep the call from its end.
    return undefined;
  }
}
