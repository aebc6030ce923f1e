// The tags of the core's value format (core/src/value/mod.rs is its specification).
//
// In and out: nothing; names for bytes. The numbers are inlined by the compiler, so that the
// codec's switches stay jump tables.

/** What a node is: its first byte. */
export const enum Tag {
  Undefined = 0x00,
  Null = 0x01,
  True = 0x02,
  False = 0x03,
  Int = 0x04,
  Double = 0x05,
  BigInt = 0x06,
  String = 0x07,
  String16 = 0x08,
  Hole = 0x0f,
  Ref = 0x10,
  Object = 0x11,
  Array = 0x12,
  SparseArray = 0x13,
  Map = 0x14,
  Set = 0x15,
  Date = 0x16,
  RegExp = 0x17,
  Error = 0x18,
  Buffer = 0x19,
  View = 0x1a,
  HostFunction = 0x1b,
  SandboxFunction = 0x1c,
  HostPromise = 0x1d,
  SandboxPromise = 0x1e,
}

/** How a key of an object is written; from `Known` on it is the number of an earlier key. */
export const enum Key {
  End = 0,
  New = 1,
  New16 = 2,
  Known = 3,
}

/** The classes that an error keeps on the other side, by their number. */
export const ERROR_CLASSES = [
  'Error',
  'RangeError',
  'ReferenceError',
  'SyntaxError',
  'TypeError',
  'URIError',
  'EvalError',
] as const;

/** The kinds of views over a buffer, by their number. */
export const VIEW_KINDS = [
  'DataView',
  'Int8Array',
  'Uint8Array',
  'Uint8ClampedArray',
  'Int16Array',
  'Uint16Array',
  'Int32Array',
  'Uint32Array',
  'BigInt64Array',
  'BigUint64Array',
  'Float16Array',
  'Float32Array',
  'Float64Array',
] as const;
