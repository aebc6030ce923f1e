// Random values, as tagged JSON.
//
// In: choices and a profile. Out: a value of nested kinds with shared and cyclic parts, in the form of
// tests/contract/README.md. The profile names the sides that must be able to hold it:
//
// - `every`: everything that crosses between JavaScript and Rust;
// - `outgoing`: values that Python can receive (README.md lists those that it refuses);
// - `echoed`: values that are the same after a way through Python and back;
// - `same`: values that Python returns unchanged, so that code may inspect them.

const NUMBERS = [0, 1, -1, 0.1, 1.5, -2.25, 127, 128, -129, 255, 256, 65535, 65536, 2 ** 31 - 1, 2 ** 31, -(2 ** 31), -(2 ** 31) - 1, 2 ** 32, 2 ** 53 - 1, -(2 ** 53) + 1, 1e21, -1e-7, 5e-324, 1.7976931348623157e308];
const BIG_NUMBERS = [2 ** 53, 2 ** 53 + 2, -(2 ** 53), 2 ** 63, 2 ** 64, 1e20, -1e300];
const TEXTS = ['', 'a', 'key', ' ', '0', '\u0000', 'line\nbreak', '"quoted"', '\\', 'é', '語', '😀', '\u2028', '\ufeff', '\u007f', '\u0080', '\uffff', '$ref', '`${x}`', "it's", '</script>', '__proto__'];
const KEYS = ['a', 'b', 'c', 'key', '', '0', '1', '10', '-1', '01', '4294967294', '4294967295', '1.5', '__proto__', 'constructor', 'toString', 'hasOwnProperty', 'then', 'length', 'name', 'prototype', 'toJSON', 'é', '😀', 'a b', '\u0000', 'valueOf', '$x'];
const CLASSES = ['Error', 'RangeError', 'ReferenceError', 'SyntaxError', 'TypeError', 'URIError', 'EvalError'];
const REGEXPS = [['a+', 'g'], ['[^/]', ''], ['(?:)', 'u'], ['\\/', 'i'], ['(?<year>\\d{4})', 'dgimsuy'], ['^\\p{L}$', 'u'], ['[\\p{L}--[a-z]]', 'v']];
const VIEWS = { DataView: 1, Int8Array: 1, Uint8Array: 1, Uint8ClampedArray: 1, Int16Array: 2, Uint16Array: 2, Int32Array: 4, Uint32Array: 4, BigInt64Array: 8, BigUint64Array: 8, Float32Array: 4, Float64Array: 8 };
const BYTES = ['DataView', 'Uint8Array', 'Uint8ClampedArray'];

const LEAVES = { number: 6, text: 5, constant: 3, bigint: 2, date: 1, bytes: 1, view: 1, buffer: 0.6, error: 1 };
const CONTAINERS = { array: 4, object: 5, sparse: 0.7, map: 1.2, set: 1 };

/** A value that nests `depth` deep at most. */
export function randomValue(random, profile, depth = random.between(0, 4)) {
  return new Values(random, profile).value(depth);
}

/** Values of one message, among which objects may be shared. */
export function randomValues(random, profile, count) {
  const values = new Values(random, profile);
  return random.list(count, () => values.value(random.between(0, 3)));
}

/** Text with characters of every width. */
export function randomText(random, surrogates = true) {
  const parts = random.list(random.below(4), () => random.pick(TEXTS));
  if (surrogates && random.chance(0.1)) parts.splice(random.below(parts.length + 1), 0, random.pick(['\ud800', '\udc00', '\udfff\ud800']));
  if (random.chance(0.03)) parts.push(random.pick(['x', 'é', '語', '😀']).repeat(random.between(30, 3000)));
  return parts.join('');
}

class Values {
  constructor(random, profile) {
    this.random = random;
    this.profile = profile;
    this.ids = 0;
    // Objects that later values may refer to; unfinished ones make cycles.
    this.known = [];
  }

  value(depth) {
    const { random } = this;
    if (this.known.length > 0 && random.chance(0.06)) return { $ref: random.pick(this.known) };
    if (depth <= 0 || random.chance(0.25)) return this.leaf();
    if (depth > 1 && random.chance(0.15)) return this.shared(depth);
    return this[random.weighted(CONTAINERS)](depth - 1);
  }

  leaf() {
    const kind = this.random.weighted(this.profile === 'every' ? { ...LEAVES, regexp: 1 } : LEAVES);
    return this[kind]();
  }

  /** A container with a name, so that values inside and after it can refer to it. */
  shared(depth) {
    const id = `o${(this.ids += 1)}`;
    const kind = this.random.weighted(this.profile === 'every' ? { array: 3, object: 4, map: 1, set: 1 } : { array: 3, object: 4, map: this.profile === 'same' ? 0 : 1 });
    this.known.push(id);
    return { $id: id, $value: this[kind](depth - 1) };
  }

  number() {
    const { random, profile } = this;
    switch (random.below(7)) {
      case 0:
        return random.between(-200, 200);
      case 1:
        return random.between(-(2 ** 31), 2 ** 32);
      case 2:
        return said((random.unit() - 0.5) * 10 ** random.between(-300, 300));
      case 3:
        return { $number: random.pick(['NaN', 'Infinity', '-Infinity', '-0']) };
      case 4:
        return profile === 'same' ? random.between(-9, 9) : said(random.pick(BIG_NUMBERS));
      default:
        return said(random.pick(NUMBERS));
    }
  }

  text() {
    const text = randomText(this.random);
    return !/\p{Cs}/u.test(text) ? text : { $string: units(text) };
  }

  constant() {
    const undefinable = this.profile === 'same' ? [] : [{ $undefined: true }];
    return this.random.pick([true, false, null, ...undefinable]);
  }

  bigint() {
    const { random } = this;
    const huge = (BigInt(random.between(1, 2 ** 32)) << BigInt(random.pick([22, 32, 33, 64, 100, 1000]))) + BigInt(2) ** BigInt(53);
    const some = this.profile !== 'same' && random.chance(0.4) ? BigInt(random.pick([0, 1, -1, 255, 2 ** 31, 2 ** 53 - 1, -(2 ** 53) + 1])) : huge;
    return { $bigint: String(random.chance(0.4) ? -some : some) };
  }

  date() {
    const { random } = this;
    if (this.profile === 'every' && random.chance(0.3)) return { $date: random.pick([null, 8.64e15, -8.64e15, -6.3e13]) };
    return { $date: random.pick([0, -1, 1, 951782400000, -62135596800000, 253402300799999, random.between(-(2 ** 40), 2 ** 42)]) };
  }

  regexp() {
    return { $regexp: this.random.pick(REGEXPS.slice(0, 6)) };
  }

  error() {
    const { random } = this;
    const name = random.pick(CLASSES);
    const error = { class: name, name: random.chance(0.2) && this.profile === 'every' ? random.pick(['Custom', '', 'é']) : name, message: randomText(random, false) };
    if (random.chance(0.3)) error.code = random.pick(['ENOENT', 'E_X', 404, 1.5]);
    return { $error: error };
  }

  bytes() {
    return { $bytes: this.some(this.random.pick([0, 1, 2, 5, 33])) };
  }

  buffer() {
    return this.profile === 'same' ? this.bytes() : { $buffer: this.some(this.random.below(12)) };
  }

  view() {
    const { random, profile } = this;
    if (profile === 'same') return this.bytes();
    // A memoryview returns as a Uint8Array, for any format.
    const kind = random.pick(profile === 'echoed' ? BYTES : Object.keys(VIEWS));
    const size = VIEWS[kind];
    const [before, length, after] = [random.below(3), random.below(4), random.below(3)];
    return { $view: [kind, before * size, length, this.some((before + length + after) * size)] };
  }

  some(length) {
    return this.random.list(length, () => this.random.below(256));
  }

  array(depth) {
    const { random } = this;
    return random.list(random.chance(0.03) ? random.between(50, 300) : random.below(5), () => (random.chance(0.5) ? this.leaf() : this.value(depth)));
  }

  object(depth) {
    const keys = [...new Set(this.random.list(this.random.below(5), () => this.random.pick(KEYS)))];
    return { $entries: inOrder(keys).map((key) => [key, this.value(depth)]) };
  }

  sparse(depth) {
    if (this.profile === 'same' || this.profile === 'echoed') return this.array(depth);
    const { random } = this;
    const length = random.pick([1, 3, 10, ...(this.profile === 'every' ? [5000, 2 ** 32 - 1] : [])]);
    const indexes = [...new Set(random.list(random.below(4), () => random.below(length)))].sort((a, b) => a - b);
    return { $sparse: [length, Object.fromEntries(indexes.map((index) => [index, this.value(depth)]))] };
  }

  map(depth) {
    const { random, profile } = this;
    if (profile === 'same') return this.object(depth);
    const isNew = distinct();
    const entries = [];
    // Key and value alternately, so that a reference comes after its object.
    const add = (key) => isNew(key) && entries.push([key, this.value(depth)]);
    if (profile === 'every' && random.chance(0.5)) random.list(random.below(3), () => add(this.value(depth)));
    else this.hashable().forEach(add);
    return { $map: entries };
  }

  set(depth) {
    const { random, profile } = this;
    if (profile === 'every') return { $set: random.list(random.below(5), () => this.value(depth)).filter(distinct()) };
    return profile === 'same' ? this.array(depth) : { $set: this.hashable().filter(distinct()) };
  }

  /** Keys that are different in Python too, where `1 == 1.0 == True`. */
  hashable() {
    const { random } = this;
    const makers = [() => random.pick(KEYS), () => random.between(2, 99), () => ({ $date: random.below(1e6) }), () => ({ $bigint: String(10n ** 20n + BigInt(random.below(9))) })];
    const make = random.chance(0.3) ? makers[0] : () => random.pick(makers)();
    return random.list(random.below(5), make);
  }
}

/** Keys in the order that a JavaScript object has them: array indexes first. */
export function inOrder(keys) {
  const isIndex = (key) => String(key >>> 0) === key && key >>> 0 !== 2 ** 32 - 1;
  return [...keys.filter(isIndex).sort((a, b) => a - b), ...keys.filter((key) => !isIndex(key))];
}

/** Distinguishes new keys from known ones: a Map treats equal primitives, and an object twice, as one. */
function distinct() {
  const seen = new Set();
  const primitives = ['$number', '$bigint', '$string', '$undefined', '$date'];
  return (key) => {
    if (typeof key === 'object' && key !== null) {
      // Map and Set treat -0 as 0, and a reference may name a known key.
      if (key.$number === '-0' || '$ref' in key) return false;
      if (!primitives.some((tag) => tag in key)) return true;
    }
    const text = JSON.stringify(key);
    return !seen.has(text) && Boolean(seen.add(text));
  };
}

/** A number as JSON for any reader: some do not read every digit of a fraction. */
function said(number) {
  return Number.isSafeInteger(number) ? number : { $number: String(number) };
}

function units(text) {
  return Array.from({ length: text.length }, (_, index) => text.charCodeAt(index));
}
