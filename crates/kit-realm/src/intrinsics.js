// Intrinsics. In: the realm's globals, before any code of a run. Out: names that this code of the kit uses in their
// place, so that a run which changes its globals or their prototypes hurts itself alone.
const {
  Array, ArrayBuffer, BigInt, Date, Error, Function, Iterator, JSON, Map, Math, Number, Object, Promise, RangeError,
  Reflect, Set, String, Symbol, SyntaxError, TypeError, Uint8Array, decodeURIComponent, encodeURIComponent,
} = globalThis;
const { apply, ownKeys } = Reflect;
const { defineProperty, freeze, getOwnPropertyDescriptor, getPrototypeOf, is: isSame, keys: keysOf, setPrototypeOf } = Object;
const { isArray } = Array;
const { isView } = ArrayBuffer;
const { parse: parseJson, stringify } = JSON;
const { floor, max, min, trunc } = Math;
const { isFinite, isSafeInteger } = Number;
const { fromCharCode } = String;
const { now } = Date;

// A method as a function whose first argument is `this`.
const { bind, call } = Function.prototype;
const uncurried = apply(bind, bind, [call]);
const getterOf = (object, name) => uncurried(getOwnPropertyDescriptor(object, name).get);

const functionText = uncurried(Function.prototype.toString);
const hasOwn = uncurried(Object.prototype.hasOwnProperty);
const bigintValueOf = uncurried(BigInt.prototype.valueOf);
const sortList = uncurried(Array.prototype.sort);

const codeAt = uncurried(String.prototype.charCodeAt);
const indexOf = uncurried(String.prototype.indexOf);
const lowerCase = uncurried(String.prototype.toLowerCase);
const upperCase = uncurried(String.prototype.toUpperCase);
const slice = uncurried(String.prototype.slice);
const wellFormed = uncurried(String.prototype.toWellFormed);
// The parts as one text. The engine makes template literals with the `concat` that a run can replace, so this code has none.
const join = uncurried(String.prototype.concat);
const textOf = (value) => join('', value);

const mapGet = uncurried(Map.prototype.get);
const mapSet = uncurried(Map.prototype.set);
const mapHas = uncurried(Map.prototype.has);
const mapDelete = uncurried(Map.prototype.delete);
const mapForEach = uncurried(Map.prototype.forEach);
const mapSize = getterOf(Map.prototype, 'size');
const setAdd = uncurried(Set.prototype.add);
const setHas = uncurried(Set.prototype.has);
const setDelete = uncurried(Set.prototype.delete);
const setForEach = uncurried(Set.prototype.forEach);
const setSize = getterOf(Set.prototype, 'size');

const TypedArray = getPrototypeOf(Uint8Array);
const bytesToBase64 = uncurried(Uint8Array.prototype.toBase64);
const bytesToHex = uncurried(Uint8Array.prototype.toHex);
const setBytes = uncurried(TypedArray.prototype.set);
const viewKind = getterOf(TypedArray.prototype, Symbol.toStringTag);
const arrayBuffer = getterOf(TypedArray.prototype, 'buffer');
const arrayOffset = getterOf(TypedArray.prototype, 'byteOffset');
const arrayBytes = getterOf(TypedArray.prototype, 'byteLength');
// Without the `constructor` of the bytes, which a run can replace.
const copyBytes = (bytes, from = 0, to = arrayBytes(bytes)) =>
  new Uint8Array(new Uint8Array(arrayBuffer(bytes), arrayOffset(bytes) + from, max(0, to - from)));
const { DataView } = globalThis;
const dataBuffer = getterOf(DataView.prototype, 'buffer');
const dataOffset = getterOf(DataView.prototype, 'byteOffset');
const dataBytes = getterOf(DataView.prototype, 'byteLength');
const bufferBytes = getterOf(ArrayBuffer.prototype, 'byteLength');

const { prototype: arrayBufferPrototype } = ArrayBuffer;
const { prototype: bigintPrototype } = BigInt;
const { prototype: errorPrototype } = Error;
const { prototype: mapPrototype } = Map;
const { prototype: promisePrototype } = Promise;
const { prototype: setPrototype } = Set;
const promiseThen = uncurried(Promise.prototype.then);

const isObject = (value) => (typeof value === 'object' && value !== null) || typeof value === 'function';

// Whether a brand check passes, which throws otherwise.
const passes = (check, value) => {
  try {
    check(value);
    return true;
  } catch {
    return false;
  }
};

// An array that inherits nothing, so that no setter of a run sees what is appended to it.
const newList = () => setPrototypeOf([], null);

// Appends to an array that a run or the host gets.
const append = (array, value) => {
  defineProperty(array, array.length, { __proto__: null, value, writable: true, enumerable: true, configurable: true });
};

// Sets an own property of an object that a run or the host gets.
const put = (object, name, value) => {
  defineProperty(object, name, { __proto__: null, value, writable: true, enumerable: true, configurable: true });
};

// The same, of a property that enumerations do not show.
const hide = (object, name, value) => {
  defineProperty(object, name, { __proto__: null, value, writable: true, configurable: true });
};

// An error with a name of its own.
const namedError = (name, message) => {
  const error = new Error(message);
  hide(error, 'name', name);
  return error;
};

// The bytes of an ArrayBuffer or a view, uncopied; `undefined` for anything else.
const bytesOf = (value) => {
  if (!isObject(value)) return undefined;
  if (!isView(value)) return passes(bufferBytes, value) ? new Uint8Array(value) : undefined;
  if (viewKind(value) === undefined) return new Uint8Array(dataBuffer(value), dataOffset(value), dataBytes(value));
  return new Uint8Array(arrayBuffer(value), arrayOffset(value), arrayBytes(value));
};

// Gives a class the form of those of the web: members are enumerable, and objects have a tag.
const likeTheWeb = (Class, tag) => {
  const objects = [Class.prototype, Class];
  for (let at = 0; at < objects.length; at += 1) {
    const keys = ownKeys(objects[at]);
    for (let index = 0; index < keys.length; index += 1) {
      const { enumerable, configurable, value } = getOwnPropertyDescriptor(objects[at], keys[index]);
      const isMember = typeof keys[index] === 'string' && keys[index] !== 'constructor' && configurable;
      if (isMember && !enumerable && (at === 0 || typeof value === 'function')) {
        defineProperty(objects[at], keys[index], { __proto__: null, enumerable: true });
      }
    }
  }
  defineProperty(Class.prototype, Symbol.toStringTag, { __proto__: null, value: tag, configurable: true });
};

// The native functions of the kit, which are the same objects in every run.
const { natives } = host;

// The limits of the run, which `open` may change: of timers, and of `require`; and whether libraries may change meanwhile.
let config = { __proto__: null, maxDelayMs: 30_000, maxPending: 1_000, maxDepth: 10, isSession: false };
