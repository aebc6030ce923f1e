// Values as canonical text, so that values are compared as text.
//
// In: a value of this host. Out: JSON in which each value has one spelling; README.md has the list. Objects are
// numbered in order of occurrence within one message; a repeated object is a `$ref`.

import { types } from 'node:util';

/** One message. */
export function canonical(value) {
  const seen = new Map();
  const write = (item) => {
    switch (typeof item) {
      case 'undefined':
        return '{"$undefined":true}';
      case 'boolean':
        return String(item);
      case 'number':
        return number(item);
      case 'bigint':
        return `{"$bigint":"${item < 0n ? '-' : ''}${(item < 0n ? -item : item).toString(16)}"}`;
      case 'string':
        return text(item);
      case 'symbol':
        return '{"$symbol":true}';
      default:
        if (item === null) return 'null';
    }
    if (seen.has(item)) return `{"$ref":${seen.get(item)}}`;
    seen.set(item, seen.size);
    return object(item, write);
  };
  return write(value);
}

function object(item, write) {
  const list = (values) => `[${Array.from(values, write).join(',')}]`;
  if (Array.isArray(item)) {
    const indexes = Object.keys(item);
    if (indexes.length === item.length) return list(item);
    return `{"$sparse":[${item.length},[${indexes.map((index) => `[${index},${write(item[index])}]`).join(',')}]]}`;
  }
  if (typeof item === 'function') return `{"$function":true}`;
  if (types.isPromise(item)) return '{"$promise":true}';
  if (types.isMap(item)) return `{"$map":[${[...item].map(([key, entry]) => `[${write(key)},${write(entry)}]`).join(',')}]}`;
  if (types.isSet(item)) return `{"$set":${list(item)}}`;
  if (types.isDate(item)) return `{"$date":${number(item.getTime())}}`;
  if (types.isRegExp(item)) return `{"$regexp":[${text(item.source)},${text(item.flags)}]}`;
  if (types.isNativeError(item)) return error(item, write);
  if (types.isAnyArrayBuffer(item)) return `{"$buffer":[${[...new Uint8Array(item)]}]}`;
  if (ArrayBuffer.isView(item)) {
    const { buffer, byteOffset, length, byteLength } = item;
    return `{"$view":["${item.constructor.name}",${byteOffset},${length ?? byteLength},${write(buffer)}]}`;
  }
  const isPlain = Object.getPrototypeOf(item) === Object.prototype;
  if (!isPlain) return `{"$instance":${text(item.constructor?.name ?? 'null')}}`;
  return `{"$object":[${Object.keys(item).map((key) => `[${text(key)},${write(item[key])}]`).join(',')}]}`;
}

/** The class is that of the prototype; the name may differ. */
function error(item, write) {
  const { name: kind } = Object.getPrototypeOf(item).constructor;
  return `{"$error":[${text(kind)},${text(item.name)},${text(item.message)},${write(item.code)}]}`;
}

/** A safe integer in decimal, any other number by its bits. */
export function number(value) {
  if (Number.isSafeInteger(value) && !Object.is(value, -0)) return String(value);
  if (Number.isNaN(value)) return '{"$f64":"NaN"}';
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, value);
  return `{"$f64":"${view.getBigUint64(0).toString(16).padStart(16, '0')}"}`;
}

/** Printable ASCII unchanged, every other character by its code units. */
export function text(value) {
  return `"${value.replace(/[^\x20-\x7e]|["\\]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)}"`;
}
