// Keys of this thread's tables, made from numbers that a sandbox chose.
//
// In: a number from a message. Out: a number that only this process can compute. V8 hashes numbers without a
// secret, so a compromised worker could choose ten thousand numbers that collide.

import { randomBytes } from 'node:crypto';

const SECRET = randomBytes(4).readInt32LE();

/** The key for a number of 32 bits. Different numbers have different keys. */
export function keyed(number: number): number {
  return number ^ SECRET;
}
