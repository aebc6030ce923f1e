// Calls of executors through the door.
//
// In: a method of an executor, its arguments, and the context of the call. Out: a promise of its result; its live output,
// handed to the receivers of the context.

import type { ExecutorErrorCode } from '../../executors.js';
import type { Door, DoorCall } from '../door.js';
import { unwatch, watch } from '../signals.js';
import { type Context, ExecutorError } from './data.js';
import { told } from './refusal.js';

/** The context of a call as the native side reads it. */
export interface ContextIn {
  readonly invocationId: string;
  readonly turn: number;
  readonly attempt: number;
  readonly isCancelled: boolean;
  readonly stdout: Function | undefined;
  readonly stderr: Function | undefined;
}

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
  const receiver = (receive: Function | undefined): Function | undefined =>
    receive &&
    ((bytes: Uint8Array): void => {
      if (thrown !== undefined) return;
      try {
        receive(bytes);
      } catch (error) {
        thrown = { error };
        throw error;
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

/** The error with that kind and message. If its context has cancelled it, its cause is the reason. */
function errorOf(refused: unknown, aborted: Context | undefined): ExecutorError {
  if (!Array.isArray(refused)) return new ExecutorError('other', told(refused));
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
