// The encoders of this thread.
//
// In: a message that somebody wants to write. Out: an encoder for that time. Idle encoders wait for the next message.

import { Encoder } from './encode.js';

const idle: Encoder[] = [];

/** Borrows an encoder for one message. A getter that runs meanwhile may borrow another one. */
export function borrowEncoder(): Encoder {
  return idle.pop() ?? new Encoder();
}

/** Gives an encoder back, which forgets its message: an idle one keeps no value of the caller's alive. */
export function returnEncoder(encoder: Encoder): void {
  encoder.forget();
  if (idle.length < 4) idle.push(encoder);
}
