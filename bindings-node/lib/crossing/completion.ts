// The completion of a host function or promise, on its way into the sandbox.
//
// In: a value or a thrown value. Out: a message, in every case. If the value cannot be cloned, the message
// holds the SerializationError, and the sandbox throws that.

import type { Encoder, Numbering } from './encode.js';
import { borrowEncoder, returnEncoder } from './encoders.js';
import { notCloneable } from './serialization-error.js';

/** Hands a finished message to the native side. */
export type Deliver = (ok: boolean, frame: Uint8Array, length: number, blobs: Uint8Array[] | undefined) => void;

/**
 * Writes a completion of the host function with that number and delivers it. Returns the value that the sandbox throws, or
 * `undefined`. Never throws.
 */
export function complete(numbering: Numbering, fn: number, ok: boolean, value: unknown, deliver: Deliver): unknown {
  const encoder = borrowEncoder();
  let fulfilled = ok;
  let thrown = ok ? undefined : value;
  try {
    encoder.begin(numbering);
    encoder.value(value, ok ? fn : 'error');
  } catch (failure) {
    fulfilled = false;
    thrown = failure;
    writeFailure(encoder, numbering, failure);
  }
  deliver(fulfilled, encoder.bytes, encoder.at, encoder.blobs);
  returnEncoder(encoder);
  return thrown;
}

function writeFailure(encoder: Encoder, numbering: Numbering, failure: unknown): void {
  try {
    encoder.reset();
    encoder.begin(numbering);
    encoder.value(failure, 'error');
  } catch {
    encoder.reset();
    encoder.begin(numbering);
    encoder.value(notCloneable('error', 'a value that throws when it is read'), 'error');
  }
}
