// Canonical values with differences that Python cannot see removed. All sides' values are converted before Python's are
// compared. README.md has the rules.
//
// In: a canonical value, parsed. Out: the canonical value that Python must have, as text.

const VIEW_FORMATS = { Int8Array: 'b', Int16Array: 'h', Uint16Array: 'H', Int32Array: 'i', Uint32Array: 'I', BigInt64Array: 'q', BigUint64Array: 'Q', Float32Array: 'f', Float64Array: 'd' };
const SIZES = { b: 1, h: 2, H: 2, i: 4, I: 4, q: 8, Q: 8, f: 4, d: 8 };

/** Tags that are values; all others are objects, which have an identity. */
const VALUES = new Set(['$undefined', '$bigint', '$f64', '$symbol', '$ref']);

/** A canonical value of JavaScript or Rust. */
export function pythonic(json) {
  return write(json, number(json, (tag) => !VALUES.has(tag)));
}

/** A canonical value of Python, where bytes and dates have no identity. */
export function ofPython(json) {
  return write(json, number(json, (tag) => ['', '$dict', '$set', '$error', '$instance'].includes(tag)));
}

/** All objects in the order in which references count them. */
function number(json, isObject, found = []) {
  if (typeof json !== 'object' || json === null) return found;
  const tag = Array.isArray(json) ? '' : Object.keys(json)[0];
  if (isObject(tag)) found.push(json);
  for (const child of children(json, tag)) number(child, isObject, found);
  return found;
}

function children(json, tag) {
  switch (tag) {
    case '':
      return json;
    case '$sparse':
      return json.$sparse[1].map(([, value]) => value);
    case '$object':
      return json.$object.map(([, value]) => value);
    case '$map':
    case '$dict':
      return json[tag].flat();
    case '$set':
      return json.$set;
    case '$error':
      return json.$error.slice(-1);
    case '$view':
      return json.$view.slice(-1);
    default:
      return [];
  }
}

function write(root, objects) {
  const seen = new Map();
  const inner = (json) => {
    if (typeof json !== 'object' || json === null) return JSON.stringify(json);
    if ('$ref' in json) return inner(objects[json.$ref]);
    const tag = Array.isArray(json) ? '' : Object.keys(json)[0];
    if (['', '$sparse', '$object', '$map', '$dict', '$set', '$error'].includes(tag)) {
      if (seen.has(json)) return `{"$ref":${seen.get(json)}}`;
      seen.set(json, seen.size);
    }
    return tagged(tag, json, inner, objects);
  };
  return inner(root);
}

function tagged(tag, json, inner, objects) {
  const value = json[tag];
  switch (tag) {
    case '':
      return `[${json.map(inner)}]`;
    case '$sparse': {
      const elements = new Map(value[1]);
      return `[${Array.from({ length: value[0] }, (_, index) => (elements.has(index) ? inner(elements.get(index)) : 'null'))}]`;
    }
    case '$undefined':
      return 'null';
    case '$bigint': {
      const big = value.startsWith('-') ? -BigInt(`0x${value.slice(1)}`) : BigInt(`0x${value}`);
      return Number.isSafeInteger(Number(big)) && BigInt(Number(big)) === big ? String(big) : JSON.stringify(json);
    }
    case '$object':
    case '$map':
    case '$dict':
      return `{"$dict":[${inOrder(value).map(([key, entry]) => `[${inner(key)},${inner(entry)}]`)}]}`;
    case '$set':
      return `{"$set":[${value.map(inner).sort()}]}`;
    case '$error': {
      // JavaScript's has the class first, which is not Python's.
      const [name, message, code] = value.slice(-3);
      return `{"$error":[${inner(name)},${inner(message)},${inner(code)}]}`;
    }
    case '$buffer':
      return `{"$bytes":[${value}]}`;
    case '$view':
      return view(value, objects);
    default:
      return JSON.stringify(json);
  }
}

function view([kind, offset, length, buffer], objects) {
  const { $buffer: bytes } = '$ref' in buffer ? objects[buffer.$ref] : buffer;
  const format = VIEW_FORMATS[kind];
  if (format === undefined) return `{"$bytes":[${bytes.slice(offset, offset + length)}]}`;
  return `{"$memoryview":["${format}",[${bytes.slice(offset, offset + length * SIZES[format])}]]}`;
}

/** A Map with texts as keys may have been an object, whose indexes come first. */
function inOrder(entries) {
  if (!entries.every(([key]) => typeof key === 'string')) return entries;
  const isIndex = ([key]) => String(key >>> 0) === key && key >>> 0 !== 2 ** 32 - 1;
  return [...entries.filter(isIndex).sort(([a], [b]) => a - b), ...entries.filter((entry) => !isIndex(entry))];
}
