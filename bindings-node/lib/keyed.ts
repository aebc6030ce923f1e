// Numbers that a sandbox chose, as keys of this thread's tables.
//
// In: a number that came in a message. Out: another one, which only this process can tell beforehand: V8 hashes
// numbers without a secret, and a worker in anybody's hands could choose ten thousand that collide.

import { randomBytes } from 'node:crypto';

const SECRET = randomBytes(4).readInt32LE();

/** The key for a number of 32 bits; another one for each. */
export function keyed(number: number): number {
  return number ^ SECRET;
}
