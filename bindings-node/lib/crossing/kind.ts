// The kinds of objects of the host.
//
// In: any object that is neither an array nor a function nor a Proxy. Out: its kind, or a description of an
// object that cannot be cloned. The brand decides the kind, whatever the prototype or the realm. No code of the
// object runs: no getter, no trap.

import { types } from 'node:util';

/** The kinds that cross. */
export const enum Kind {
  Plain,
  Map,
  Set,
  Date,
  RegExp,
  Error,
  Buffer,
  View,
  Promise,
  Boxed,
  Refused,
}

/** The kind of an object. It takes some brand checks, so the encoder recognizes plain objects before. */
export function kindOf(value: object): Kind {
  if (ArrayBuffer.isView(value)) return Kind.View;
  if (types.isMap(value)) return Kind.Map;
  if (types.isSet(value)) return Kind.Set;
  if (types.isDate(value)) return Kind.Date;
  if (types.isNativeError(value)) return Kind.Error;
  if (types.isRegExp(value)) return Kind.RegExp;
  if (types.isArrayBuffer(value)) return Kind.Buffer;
  if (types.isPromise(value)) return Kind.Promise;
  if (types.isBoxedPrimitive(value)) return Kind.Boxed;
  if (types.isModuleNamespaceObject(value)) return Kind.Plain;
  if (isBranded(value)) return Kind.Refused;
  if (hasPlainPrototype(value)) return Kind.Plain;
  // A DOMException is an error by inheritance only. An aborted request rejects with one.
  return inherits(value, Error.prototype) ? Kind.Error : Kind.Refused;
}

/** Whether an object is of a built-in kind, such as a Promise or a Map, whose content is not in its properties. */
export function isBuiltIn(value: object): boolean {
  const kind = kindOf(value);
  return kind !== Kind.Plain && (kind !== Kind.Refused || isBranded(value));
}

/** Describes an object that cannot be cloned, such as `an instance of Pool`. */
export function describe(value: object): string {
  if (types.isWeakMap(value)) return 'a WeakMap';
  if (types.isWeakSet(value)) return 'a WeakSet';
  if (types.isSharedArrayBuffer(value)) return 'a SharedArrayBuffer';
  if (types.isGeneratorObject(value)) return 'a generator';
  if (inherits(value, WeakRef.prototype)) return 'a WeakRef';
  const name = className(value);
  return name === undefined ? 'an object with a prototype of its own' : `an instance of ${name}`;
}

/** The index in `classes` of the built-in class of an error, of any realm. */
export function errorClass(error: object, classes: readonly string[]): number {
  for (const prototype of prototypes(error)) {
    const name = ownData(prototype, 'name');
    const index = typeof name === 'string' ? classes.indexOf(name) : -1;
    // By the language, the prototypes of the built-in classes have both properties.
    if (index >= 0 && Object.hasOwn(prototype, 'constructor')) return index;
  }
  return 0;
}

/** The name of a function if it is plain data; no getter runs. */
export function functionName(fn: object): string {
  const name = ownData(fn, 'name');
  return typeof name === 'string' ? name : '';
}

// These kinds do not cross, even if their prototype has been replaced by a plain one.
function isBranded(value: object): boolean {
  return (
    types.isWeakMap(value) ||
    types.isWeakSet(value) ||
    types.isGeneratorObject(value) ||
    types.isSharedArrayBuffer(value) ||
    types.isMapIterator(value) ||
    types.isSetIterator(value) ||
    // Deno lacks this one.
    types.isExternal?.(value)
  );
}

function hasPlainPrototype(value: object): boolean {
  const prototype: object | null = Object.getPrototypeOf(value);
  if (prototype === null || prototype === Object.prototype) return true;
  // The Object.prototype of another realm has no prototype and has the language's own methods.
  return (
    !types.isProxy(prototype) &&
    Object.getPrototypeOf(prototype) === null &&
    ['hasOwnProperty', 'isPrototypeOf', 'propertyIsEnumerable', '__defineGetter__'].every(
      (name) => typeof ownData(prototype, name) === 'function',
    )
  );
}

function inherits(value: object, ancestor: object): boolean {
  for (const prototype of prototypes(value)) if (prototype === ancestor) return true;
  return false;
}

function className(value: object): string | undefined {
  for (const prototype of prototypes(value)) {
    const constructor = ownData(prototype, 'constructor');
    if (typeof constructor !== 'function' || types.isProxy(constructor)) continue;
    const name = functionName(constructor);
    return name === '' || name === 'Object' ? undefined : name;
  }
  return undefined;
}

/** The prototypes of an object, nearest first. A Proxy ends them. */
function* prototypes(value: object): Generator<object> {
  let prototype: object | null = Object.getPrototypeOf(value);
  while (prototype !== null && !types.isProxy(prototype)) {
    yield prototype;
    prototype = Object.getPrototypeOf(prototype);
  }
}

function ownData(object: object, key: string): unknown {
  return Object.getOwnPropertyDescriptor(object, key)?.value;
}
