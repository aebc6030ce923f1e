// A value as text, exact in everything that a crossing has to keep.
//
// In: a value that crossed. Out: lines with its kind, contents, order, identity and descriptors. Runs in Node and
// inside the sandbox, which gets this file as a module.

const VIEWS = [Int8Array, Uint8Array, Uint8ClampedArray, Int16Array, Uint16Array, Int32Array, Uint32Array, BigInt64Array, BigUint64Array, Float32Array, Float64Array, DataView];
const ERRORS = [RangeError, ReferenceError, SyntaxError, TypeError, URIError, EvalError, Error];

/** The text of functions and promises, on both sides. */
export const FUNCTION = '\u0001function';
export const PROMISE = '\u0001promise';

/** The text of a value that has crossed, with its anomalies. */
export function describe(value) {
  const lines = [];
  const seen = new Map();
  const wholes = buffers(value);
  const aliased = new Set();
  const line = (depth, text) => lines.push(' '.repeat(depth) + text);
  const stack = [[value, 0, '']];
  while (stack.length > 0) {
    const [item, depth, label] = stack.pop();
    const say = (text) => line(depth, `${label}${text}`);
    if (!isObject(item)) {
      say(primitive(item));
      continue;
    }
    const kind = kindOf(item);
    if (kind === 'Function' || kind === 'Promise') {
      say(primitive(kind === 'Function' ? FUNCTION : PROMISE));
      continue;
    }
    if (seen.has(item)) {
      say(`#${seen.get(item)}`);
      continue;
    }
    seen.set(item, seen.size);
    const [head, parts] = contents(item, kind, wholes, aliased);
    say(`${kind} ${head}${odd(item, kind)}`);
    for (const [name, part] of parts.reverse()) stack.push([part, depth + 1, `${name}: `]);
  }
  return lines.join('\n');
}

/** The own or inherited brand, without properties that could have been changed. */
export function kindOf(item) {
  if (typeof item === 'function') return 'Function';
  if (Array.isArray(item)) return 'Array';
  if (ArrayBuffer.isView(item)) return VIEWS.find((View) => item instanceof View)?.name ?? 'View';
  for (const Class of [Map, Set, Date, RegExp, Error, Promise, ArrayBuffer]) if (item instanceof Class) return Class.name;
  return 'Object';
}

export function primitive(value) {
  if (typeof value === 'string') return JSON.stringify(value);
  if (typeof value === 'bigint') return `${value}n`;
  if (typeof value === 'symbol') return 'a symbol';
  return Object.is(value, -0) ? '-0' : String(value);
}

export function isObject(value) {
  return (typeof value === 'object' && value !== null) || typeof value === 'function';
}

/** The text of an object of that kind itself, and its contents. */
function contents(item, kind, wholes, aliased) {
  switch (kind) {
    case 'Object':
      return ['', Object.keys(item).map((key) => [JSON.stringify(key), item[key]])];
    case 'Array':
      return [String(item.length), Object.keys(item).map((key) => [key, item[key]])];
    case 'Map':
      return [String(item.size), [...item].flatMap(([key, entry], at) => [[`key ${at}`, key], [`entry ${at}`, entry]])];
    case 'Set':
      return [String(item.size), [...item].map((member, at) => [`member ${at}`, member])];
    case 'Date':
      return [String(item.getTime()), []];
    case 'RegExp':
      return [`/${item.source}/${item.flags} at ${item.lastIndex}`, []];
    case 'Error':
      return error(item);
    case 'ArrayBuffer':
      return [`[${new Uint8Array(item)}]${item.resizable ? ' resizable' : ''}`, []];
    default:
      return view(item, wholes, aliased);
  }
}

function error(item) {
  const Class = ERRORS.find((Known) => item instanceof Known);
  const parts = [['name', item.name], ['message', item.message]];
  if (Object.hasOwn(item, 'code')) parts.push(['code', item.code]);
  return [Class.name, parts];
}

function view(item, wholes, aliased) {
  const { buffer, byteOffset, byteLength } = item;
  if (wholes.has(buffer)) return [`of whole ${wholes.get(buffer)} at ${byteOffset} for ${byteLength}`, []];
  const alone = byteOffset === 0 && buffer.byteLength === byteLength && !aliased.has(buffer);
  aliased.add(buffer);
  return [`[${new Uint8Array(buffer, byteOffset, byteLength)}]${alone ? '' : ' not alone'}`, []];
}

/** The numbered ArrayBuffers that occur in the value themselves, and not only through views. */
function buffers(root) {
  const found = new Map();
  const seen = new Set();
  const stack = [root];
  while (stack.length > 0) {
    const item = stack.pop();
    if (!isObject(item) || seen.has(item)) continue;
    seen.add(item);
    const kind = kindOf(item);
    if (kind === 'ArrayBuffer') found.set(item, found.size);
    if (kind === 'Object' || kind === 'Array') stack.push(...Object.keys(item).map((key) => item[key]).reverse());
    if (kind === 'Map') stack.push(...[...item].flat().reverse());
    if (kind === 'Set') stack.push(...[...item].reverse());
  }
  return found;
}

/** Features that a clone must not have: odd descriptors, symbol keys, hidden properties, another prototype. */
function odd(item, kind) {
  const found = [];
  const hidden = { Array: ['length'], RegExp: ['lastIndex'], Error: ['name', 'message', 'stack'] }[kind] ?? [];
  for (const key of Reflect.ownKeys(item)) {
    const { value, writable, enumerable, configurable } = Object.getOwnPropertyDescriptor(item, key);
    if (typeof key === 'symbol') found.push('symbol key');
    else if (hidden.includes(key)) continue;
    else if (ArrayBuffer.isView(item) && value !== undefined) continue;
    else if (!writable || !enumerable || !configurable) found.push(`${JSON.stringify(key)} is no plain property`);
    else if (kind === 'Array' && !isIndex(key)) found.push(`${JSON.stringify(key)} is no index`);
    else if (kind === 'Error' && key !== 'code') found.push(`${JSON.stringify(key)} of an error`);
    else if (!['Object', 'Array', 'Error'].includes(kind)) found.push(`${JSON.stringify(key)} of a ${kind}`);
  }
  const Class = kind === 'Error' ? ERRORS.find((Known) => item instanceof Known) : globalThis[kind];
  if (Class !== undefined && Object.getPrototypeOf(item) !== Class.prototype) found.push('another prototype');
  if (!Object.isExtensible(item)) found.push('not extensible');
  return found.length === 0 ? '' : ` (${found.join(', ')})`;
}

function isIndex(key) {
  return String(key >>> 0) === key && key >>> 0 !== 2 ** 32 - 1;
}
