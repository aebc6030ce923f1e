// Expected values on the other side: Node's own `structuredClone`, with the contract's changes.
//
// In: a value of Node, with the sets of its marked objects. Out: the text that `describe` must return for its clone, or
// the path of the value that is refused. This file contains every difference between the contract and the structured
// clone algorithm:
//
// - boxed primitives arrive as primitives;
// - an array is its elements only; `lastIndex` and other own properties of other kinds never cross;
// - objects with a prototype of their own are refused, and so are marked ones (`no`);
// - an Error keeps its own `name` and a `code`, and has no `cause`;
// - a view carries its own bytes, unless its buffer occurs in the message itself; nothing is resizable.

import { types } from 'node:util';

import { isObject, primitive } from './describe.mjs';

const ERRORS = [RangeError, ReferenceError, SyntaxError, TypeError, URIError, EvalError, Error];
const BRANDS = { Map: types.isMap, Set: types.isSet, Date: types.isDate, RegExp: types.isRegExp, Error: types.isNativeError, ArrayBuffer: types.isArrayBuffer };
const { get: viewName } = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(Uint8Array.prototype), Symbol.toStringTag);

/** The path of the first value that cannot cross, without its root, or undefined. */
export function refusedPath(value, refused) {
  const seen = new Set();
  const stack = [[value, '']];
  while (stack.length > 0) {
    const [item, path] = stack.pop();
    if (refused.has(item)) return path;
    if (!isObject(item) || typeof item === 'function' || seen.has(item)) continue;
    seen.add(item);
    const inside = entries(item, (container, key) => Object.getOwnPropertyDescriptor(container, key));
    for (const [, part, step] of inside.reverse()) stack.push([part, path + step]);
  }
  return undefined;
}

/** The text of the clone of `original`, of which `structuredClone` made `clone`. */
export function expected(original, clone) {
  const lines = [];
  const seen = new Map();
  const wholes = new Map();
  walk(clone, (item) => {
    if (item instanceof ArrayBuffer) wholes.set(item, wholes.size);
  });
  const stack = [[original, clone, 0, '']];
  while (stack.length > 0) {
    const [from, to, depth, label] = stack.pop();
    const say = (text) => lines.push(' '.repeat(depth) + label + text);
    if (!isObject(to) || isBoxed(to)) {
      say(primitive(isObject(to) ? to.valueOf() : to));
      continue;
    }
    if (seen.has(from)) {
      say(`#${seen.get(from)}`);
      continue;
    }
    seen.set(from, seen.size);
    const kind = kindOf(to);
    if (kind === 'Error') {
      const [Class, parts] = error(from);
      say(`Error ${Class}`);
      for (const [name, part] of parts) lines.push(`${' '.repeat(depth + 1)}${name}: ${primitive(part)}`);
      continue;
    }
    say(`${kind} ${head(to, kind, wholes)}`);
    // `structuredClone` has called the getters of the original, so only its descriptors are read.
    const before = entries(from, (container, key) => Object.getOwnPropertyDescriptor(container, key));
    const after = entries(to, (container, key) => ({ value: container[key] }));
    for (let at = after.length - 1; at >= 0; at -= 1) stack.push([before[at][1], after[at][1], depth + 1, `${after[at][0]}: `]);
  }
  return lines.join('\n');
}

/** The entries of a container: the key in `describe`, the value, the step of a path. */
function entries(item, property) {
  const read = (key) => {
    const descriptor = property(item, key);
    return 'value' in descriptor ? descriptor.value : descriptor.get.value;
  };
  switch (kindOf(item)) {
    case 'Object':
      return Object.keys(item).map((key) => [JSON.stringify(key), read(key), /^[\w$]+$/.test(key) && !/^\d/.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`]);
    case 'Array':
      return Object.keys(item).filter(isIndex).map((key) => [key, read(key), `[${key}]`]);
    case 'Map':
      return members(Map, item).flatMap(([key, entry], at) => [[`key ${at}`, key, `.keys()[${at}]`], [`entry ${at}`, entry, `.values()[${at}]`]]);
    case 'Set':
      return members(Set, item).map(([member], at) => [`member ${at}`, member, `.values()[${at}]`]);
    default:
      return [];
  }
}

function members(Class, item) {
  const found = [];
  Class.prototype.forEach.call(item, (value, key) => found.push([key, value]));
  return found;
}

/** By brand, for any prototype. */
function kindOf(item) {
  if (Array.isArray(item)) return 'Array';
  if (ArrayBuffer.isView(item)) return viewName.call(item) ?? 'DataView';
  const found = Object.entries(BRANDS).find(([, is]) => is(item));
  return found?.[0] ?? 'Object';
}

function head(to, kind, wholes) {
  switch (kind) {
    case 'Object':
      return '';
    case 'Array':
      return String(to.length);
    case 'Map':
    case 'Set':
      return String(to.size);
    case 'Date':
      return String(to.getTime());
    case 'RegExp':
      return `/${to.source}/${to.flags} at 0`;
    case 'ArrayBuffer':
      return `[${new Uint8Array(to)}]`;
    default: {
      const { buffer, byteOffset, byteLength } = to;
      if (wholes.has(buffer)) return `of whole ${wholes.get(buffer)} at ${byteOffset} for ${byteLength}`;
      return `[${new Uint8Array(buffer, byteOffset, byteLength)}]`;
    }
  }
}

function error(from) {
  const Class = ERRORS.find((Known) => from instanceof Known).name;
  const { name, message, code } = from;
  const parts = [['name', typeof name === 'string' ? name : Class], ['message', typeof message === 'string' ? message : '']];
  if (typeof code === 'string' || typeof code === 'number') parts.push(['code', code]);
  return [Class, parts];
}

function isBoxed(item) {
  return types.isBoxedPrimitive(item);
}

function isIndex(key) {
  return String(key >>> 0) === key && key >>> 0 !== 2 ** 32 - 1;
}

function walk(root, visit) {
  const seen = new Set();
  const stack = [root];
  while (stack.length > 0) {
    const item = stack.pop();
    if (!isObject(item) || seen.has(item)) continue;
    seen.add(item);
    visit(item);
    for (const [, part] of entries(item, (container, key) => ({ value: container[key] })).reverse()) stack.push(part);
  }
}
