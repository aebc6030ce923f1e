// The options that a caller wrote.
//
// In: objects of options, and the core's declarations of each set. Out: values of the declared JavaScript types, or a
// TypeError with the core's message. Each option is read once, from the object itself or a class of the caller's, and
// never from `Object.prototype`.

import { types } from 'node:util';

import type { AbortSignalLike } from '../../index.js';
import { native } from '../addon/connection.js';
import type { NativeOption, OptionSet } from '../addon/native.js';
import { describe, isBuiltIn } from './kind.js';
import { misuse } from './misuse.js';
import { notCloneable } from './serialization-error.js';

export type Bag = Readonly<Record<string, unknown>>;

export const EMPTY: Bag = Object.freeze({ __proto__: null }) as unknown as Bag;
export const NONE: readonly never[] = Object.freeze([]) as readonly never[];
/** The options of each set by name, as the core declares them. */
const DECLARED: Readonly<Record<OptionSet, ReadonlyMap<string, NativeOption>>> = {
  run: declared('run'),
  execute: declared('execute'),
  runtime: declared('runtime'),
  session: declared('session'),
  cell: declared('cell'),
  call: declared('call'),
  update: declared('update'),
};

/** Throws the TypeError for an option of the wrong type. */
export function wrongType(option: string, expected: string, got: unknown): never {
  throw misuse({ kind: 'type', message: native.wrongType(option, expected, typeName(got)) });
}

/** Throws if an own key of `bag` is not an option of that set. */
export function refuseUnknown(set: OptionSet, bag: Bag): void {
  for (const key of Object.keys(bag)) {
    if (!DECLARED[set].has(key)) throw misuse({ kind: 'type', message: native.unknownOption(set, key) });
  }
}

/** Throws if an own key of `bag` is none of these names. */
export function refuseUnknownNames(bag: Bag, names: string[]): void {
  for (const key of Object.keys(bag)) {
    if (!names.includes(key)) throw misuse({ kind: 'type', message: native.unknownName(key, names) });
  }
}

/** Returns `value` if it is an object with entries: neither an array nor a function. */
export function object(value: unknown, option: string): Bag {
  if (typeof value === 'object' && value !== null) {
    // The traps of a Proxy would run the caller's code while we read.
    if (types.isProxy(value)) throw notCloneable(option, 'a Proxy');
    if (!Array.isArray(value) && !isBuiltIn(value)) return value as Bag;
  }
  return wrongType(option, 'an object', value);
}

/** The option of that name, from the bag itself or from a class of the bag. */
export function option(bag: Bag, name: string): unknown {
  if (Object.hasOwn(bag, name)) return bag[name];
  for (let at = Object.getPrototypeOf(bag) as object | null; at !== null; at = Object.getPrototypeOf(at) as object | null) {
    // This is the Object.prototype of some realm. It has no options.
    if (Object.hasOwn(at, 'isPrototypeOf')) return undefined;
    if (Object.hasOwn(at, name)) return bag[name];
  }
  return undefined;
}

/** Returns a value of that type, or undefined. */
export function optional(value: unknown, type: 'string' | 'number' | 'function', option: string): unknown {
  if (value !== undefined && typeof value !== type) wrongType(option, `a ${type}`, value);
  return value;
}

/** The value of an option of that set, whose type is the declared one. The core checks the rest. */
export function declaredOption(set: OptionSet, bag: Bag, name: string): number | string | undefined {
  return checkedOption(set, name, option(bag, name));
}

/** The same for a value that has been read. */
export function checkedOption(set: OptionSet, name: string, value: unknown): number | string | undefined {
  return checked(DECLARED[set].get(name) as NativeOption, value);
}

/** Reads the options of a set whose types are all declared. Throws a TypeError for one that is unknown or of another type. */
export function readDeclared(set: OptionSet, options: unknown): Record<string, number | string> {
  const read = { __proto__: null } as unknown as Record<string, number | string>;
  if (options === undefined) return read;
  const bag = object(options, 'options');
  refuseUnknown(set, bag);
  for (const declaration of DECLARED[set].values()) {
    const value = checked(declaration, option(bag, declaration.name));
    if (value !== undefined) read[declaration.name] = value;
  }
  return read;
}

/** The names of the options of a set. */
export function namesOf(set: OptionSet): string[] {
  return [...DECLARED[set].keys()];
}

/** An AbortSignal of any realm, or one of a library that has its parts. */
export function readSignal(value: unknown): AbortSignalLike | undefined {
  if (value === undefined) return undefined;
  if (typeof value === 'object' && value !== null && !types.isProxy(value)) {
    const { aborted, addEventListener, removeEventListener } = value as Partial<AbortSignalLike>;
    if (typeof aborted === 'boolean' && typeof addEventListener === 'function' && typeof removeEventListener === 'function') return value as AbortSignalLike;
  }
  return wrongType('signal', 'an AbortSignal', value);
}

function checked({ name, type, choices, expected }: NativeOption, value: unknown): number | string | undefined {
  if (value === undefined) return undefined;
  if (choices.length > 0 && !choices.includes(value as string)) wrongType(name, expected, value);
  if (typeof value !== type) wrongType(name, `a ${type}`, value);
  return value as number | string;
}

function declared(set: OptionSet): Map<string, NativeOption> {
  return new Map(native.optionDeclarations(set).map((declaration) => [declaration.name, declaration]));
}

function typeName(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (Array.isArray(value)) return 'an array';
  if (typeof value === 'string') return value.length <= 32 ? JSON.stringify(value).replace(/^"|"$/g, "'") : 'a string';
  if (typeof value === 'object') return !types.isProxy(value) && isBuiltIn(value) ? describe(value) : 'an object';
  return `a ${typeof value}`;
}
