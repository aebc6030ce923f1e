// What the core refused, as an exception of this language.
//
// In: the kind and the words of the core. Out: an error of the class that the kind stands for, with what it was made out
// of as its cause.

import { getSystemErrorName } from 'node:util';

import type { Misuse } from './native.js';
import { SerializationError } from './serialization-error.js';

/** The exception for a refusal. */
export function misuse({ kind, message, cause }: Misuse): Error {
  const options = cause === undefined ? undefined : { cause: systemError(cause.message, cause.number) };
  switch (kind) {
    case 'type':
      return new TypeError(message, options);
    case 'range':
      return new RangeError(message, options);
    case 'serialization':
      return new SerializationError(message, options);
    default:
      return new Error(message, options);
  }
}

/** An error as Node.js makes it of one of the system, by its number; 0 is none of those. */
export function systemError(message: string, number: number): Error {
  const error = new Error(message);
  return number === 0 ? error : Object.assign(error, { errno: -number, code: getSystemErrorName(-number) });
}
