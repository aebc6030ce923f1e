// What a host function or promise came to, on its way into the sandbox.
//
// In: a value, or what was thrown. Out: a message that always exists: what cannot be cloned is
// replaced by the error that says so, which is then thrown inside the sandbox.

import { borrowEncoder, returnEncoder } from './bridge.js';
import type { Encoder, Numbering } from './encode.js';
import { notCloneable } from './serialization-error.js';

/** Hands a finished message to the native side. */
export type Deliver = (ok: boolean, frame: Uint8Array, length: number, blobs: Uint8Array[] | undefined) => void;

/** Writes a completion and hands it over. Never throws. */
export function complete(numbering: Numbering, ok: boolean, value: unknown, deliver: Deliver): void {
  const encoder = borrowEncoder();
  const fulfilled = write(encoder, numbering, ok, value);
  deliver(fulfilled, encoder.bytes, encoder.at, encoder.blobs);
  returnEncoder(encoder);
}

function write(encoder: Encoder, numbering: Numbering, ok: boolean, value: unknown): boolean {
  try {
    encoder.begin(numbering);
    encoder.value(value, ok ? 'result' : 'error');
    return ok;
  } catch (failure) {
    try {
      encoder.reset();
      encoder.begin(numbering);
      encoder.value(failure, 'error');
    } catch {
      encoder.reset();
      encoder.begin(numbering);
      encoder.value(notCloneable('error', 'a value that throws when it is read'), 'error');
    }
    return false;
  }
}
