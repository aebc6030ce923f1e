// Functions that are answered in Rust.
//
// In: the name of one of the kit. Out: an object that crosses as a function, whose calls never come to
// JavaScript. Only objects that were made here are taken for one.

import { native } from './bridge.js';
import type { NativeFunction } from './native.js';

const known = new WeakSet<object>();

/** The function of the kit with that name; throws where there is none. */
export function kitFunction(name: string): NativeFunction {
  const fn = native.kitFunction(name);
  known.add(fn);
  return fn;
}

export function isNativeFunction(value: object): value is NativeFunction {
  return known.has(value);
}
