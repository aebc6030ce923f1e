// Functions that are answered in Rust.
//
// In: the name of a function of the kit. Out: an object that crosses as a function; its calls never reach
// JavaScript. The encoder accepts only objects that were made here.

import { native } from '../addon/connection.js';
import type { NativeFunction } from '../addon/native.js';

const known = new WeakSet<object>();

/** The function of the kit with that name; throws if there is none. */
export function kitFunction(name: string): NativeFunction {
  const fn = native.kitFunction(name);
  known.add(fn);
  return fn;
}

export function isNativeFunction(value: object): value is NativeFunction {
  return known.has(value);
}
