// Refusals of the core, as exceptions of JavaScript.
//
// In: the kind, the message and the cause that the core gave. Out: an error of the class for that kind, with its cause.

import { getSystemErrorName } from 'node:util';

import type { Misuse } from '../addon/native.js';
import { QueueFullError, RuntimeClosedError, named } from './refusals.js';
import { SerializationError } from './serialization-error.js';

/** The exception for a refusal. */
export function misuse(refused: Misuse): Error {
  const { kind, message } = refused;
  // Not of a polluted prototype.
  const cause = Object.hasOwn(refused, 'cause') ? refused.cause : undefined;
  const options = cause === undefined ? undefined : { cause: systemError(cause.message, cause.number) };
  switch (kind) {
    case 'type':
      return new TypeError(message, options);
    case 'range':
      return new RangeError(message, options);
    case 'serialization':
      return new SerializationError(message, options);
    case 'queueFull':
      return new QueueFullError(message, options);
    case 'runtimeClosed':
      return new RuntimeClosedError(message, options);
    case 'sessionReset':
      return named('SessionReset', message);
    case 'sessionClosed':
      return named('SessionClosed', message);
    default:
      return new Error(message, options);
  }
}

/** An error with the `errno` and `code` of the system error with that number; 0 stands for no system error. */
export function systemError(message: string, number: number): Error {
  const error = new Error(message);
  return number === 0 ? error : Object.assign(error, { errno: -number, code: getSystemErrorName(-number) });
}
