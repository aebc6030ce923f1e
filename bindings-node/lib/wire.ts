// The numbers of the value format (core/src/value/mod.rs is its specification) and of frames.
//
// Written by `bindings-node/wire.mjs` from core/src/value/mod.rs, core/src/binding/host.rs and bindings-node/src/wire.rs:
// not to be edited. The numbers are inlined by the compiler, so that the codec's switches stay jump tables.

/** The kinds of nodes: the first byte of each node of a message. */
export const enum Tag {
  Undefined = 0,
  Null = 1,
  True = 2,
  False = 3,
  Int = 4,
  Double = 5,
  BigInt = 6,
  String = 7,
  String16 = 8,
  Hole = 15,
  Ref = 16,
  Object = 17,
  Array = 18,
  SparseArray = 19,
  Map = 20,
  Set = 21,
  Date = 22,
  RegExp = 23,
  Error = 24,
  Buffer = 25,
  View = 26,
  HostFunction = 27,
  SandboxFunction = 28,
  HostPromise = 29,
  SandboxPromise = 30,
}

/** How a key of an object is written: the varint in front of it. From `KNOWN` on it is the number of an earlier key. */
export const enum Key {
  End = 0,
  New = 1,
  New16 = 2,
  Known = 3,
}

/**
 * The class of an error, so that `instanceof` holds on the other side.
 * By their numbers.
 */
export const ERROR_CLASSES = [
  'Error',
  'RangeError',
  'ReferenceError',
  'SyntaxError',
  'TypeError',
  'URIError',
  'EvalError',
] as const;

/**
 * The kind of a view over a buffer.
 * By their numbers.
 */
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

/** The number of the sink under the option `report`. A binding gives out all other numbers. */
export const REPORT_SINK = 0xffff_ffff;

/**
 * Set in the number of a host function that always answers with a promise, so that the sandbox need not wait for the
 * host to say so. See `Host::start`.
 */
export const ASYNC_FUNCTION = 0x8000_0000;

/** In the place of a message's length: it is a large one, whose number follows. */
export const LARGE = 0xffff_ffff;

/** In the count of a batch of events: there are more to come. */
export const MORE = 0x8000_0000;

/** In the place of a batch: there are no events, and it is not worth it to look for some any more. */
export const NOT_WORTH_IT = -1;

/** What an event is. */
export const enum EventKind {
  Call = 0,
  FunctionSettled = 1,
  PromiseSettled = 2,
  Settled = 3,
  Closed = 4,
  Start = 5,
}

/** How a source is written. */
export const enum SourceEncoding {
  Utf8 = 0,
  Utf16 = 1,
}

/** What a request has, bit by bit. */
export const enum RequestFlag {
  JavaScript = 1,
  Report = 2,
  MemoryLimit = 4,
  Filename = 8,
  Function = 16,
}

/** What an outcome has, bit by bit. */
export const enum OutcomeFlag {
  Result = 1,
  Error = 2,
  MemoryUsed = 4,
  /** It is read in several turns of the event loop. */
  Long = 8,
}

/** What the error of an outcome has, bit by bit. */
export const enum ErrorFlag {
  Stack = 1,
  Specifier = 2,
  Filename = 4,
  Line = 8,
  Column = 16,
  Cause = 32,
}

/** What the error of an outcome was made out of. */
export const enum CauseKind {
  /** A throw in answer to a call, whose number follows. */
  Call = 0,
  /** The rejection of a promise, whose number follows. */
  Promise = 1,
  /** An error of the library or the system: its number or 0, and its text. */
  System = 2,
}
