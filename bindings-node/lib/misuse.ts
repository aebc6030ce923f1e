// What the core refused, as an exception of this language.
//
// In: the kind and the words of the core. Out: an error of the class that the kind stands for.

import type { Misuse } from './native.js';
import { SerializationError } from './serialization-error.js';

/** The exception for a refusal. */
export function misuse({ kind, message }: Misuse): Error {
  switch (kind) {
    case 'type':
      return new TypeError(message);
    case 'range':
      return new RangeError(message);
    case 'serialization':
      return new SerializationError(message);
    default:
      return new Error(message);
  }
}
