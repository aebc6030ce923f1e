// Values of every kind and shape, from a seed.
//
// In: `generate(seed, options)`. `without` lists kinds that must not occur, `live` allows functions and promises, `text`
// allows symbols, which a log shows as text, `most` is about the largest size of the value in the sandbox in bytes (the
// bounds of its parts grow with it), and `from` is the first of the numbers that make keys and texts unique, so that
// copies of a value differ in them. Out: `{ kind, value }`: the value, the same for the same seed and options, and a
// text that describes it. Runs inside the sandbox, as a module of the program with a host in any language, so it is
// independent of the host. Sizes range from nothing to megabytes, and strange shapes are frequent: the search is for
// values that take more of a host than their charge.

const VIEWS = ['DataView', 'Int8Array', 'Uint8Array', 'Uint8ClampedArray', 'Int16Array', 'Uint16Array', 'Int32Array', 'Uint32Array', 'BigInt64Array', 'BigUint64Array', 'Float16Array', 'Float32Array', 'Float64Array'];
const ERRORS = [Error, RangeError, ReferenceError, SyntaxError, TypeError, URIError, EvalError];
const UNITS = { ASCII: 'a', 'Latin-1': 'é', 'two-byte': '€', 'four-byte': '😀', 'lone surrogate': '\ud800' };
const INDEXES = [0, 1, 5, 16, 17, 18, 50, 100, 300, 330, 500, 1000, 1023, 1024, 1025, 5000, 1e6, 33_554_431, 33_554_432, 2 ** 31, 2 ** 32 - 2, 2 ** 32 - 1, 2 ** 32, 2 ** 53, -1, 1.5];
const LENGTHS = [1, 2, 17, 18, 100, 256, 300, 1023, 1024, 1025, 5000, 1e5, 33_554_431, 33_554_432, 33_554_433, 2 ** 32 - 1];
const COUNTS = [1, 2, 3, 4, 5, 6, 8, 9, 12, 13, 16, 17, 18, 20, 22, 30, 33, 64, 65, 128, 129, 200, 1000, 1021, 1500];
const ODD_KEYS = ['__proto__', 'constructor', 'prototype', 'toString', 'valueOf', 'hasOwnProperty', 'length', 'name', 'then', '', ' ', '-1', '-0', '01', '1e21', 'a\0b', '\ud800', '\udc00x', '😀', 'é'];
const DEEPEST = 6;
/** The bytes up to which no part of a value is bounded any further. */
const USUAL_BYTES = 3e6;
/** Longer arrays do not cross. */
const MOST_ELEMENTS = 2 ** 23;

/** Elements of containers, by description: functions of a context and a number of bytes. */
const SCALARS = {
  'small integers': ({ random }) => random.below(1000),
  'large integers': ({ random }) => 2 ** 31 + random.below(2 ** 40),
  'negative integers': ({ random }) => -random.below(2 ** 31),
  doubles: ({ random }) => random.next() * 1e6 + 0.5,
  'odd numbers': ({ random }) => random.pick([-0, NaN, Infinity, -Infinity, 5e-324, 2 ** 53, -(2 ** 31)]),
  'undefined, null, true': ({ random }) => random.pick([undefined, null, true, false]),
};

const KINDS = {
  string: (context, bytes) => string(context, bytes),
  bigint: ({ random }, bytes) => (1n << BigInt(Math.min(8 * bytes, 1e6) >>> 0)) * random.pick([1n, -1n]) + BigInt(random.below(1e9)),
  object: (context, bytes) => object(context, bytes),
  'integer keys': (context, bytes) => integerKeys(context, bytes),
  array: (context, bytes) => filled([], context, bytes),
  holes: (context) => holes(context),
  sparse: (context) => sparse(context),
  'changing array': (context, bytes) => changing(context, bytes),
  map: (context, bytes) => collection(new Map(), context, bytes),
  set: (context, bytes) => collection(new Set(), context, bytes),
  collisions: (context, bytes) => collisions(context, bytes),
  'long texts': (context, bytes) => longTexts(context, bytes),
  dates: ({ random }) => new Date(random.pick([0, NaN, 1e12, 8.64e15, -8.64e15, random.below(2 ** 40)])),
  regexp: (context, bytes) => regexp(context, bytes),
  error: (context, bytes) => error(context, bytes),
  buffer: ({ random, scale }, bytes) => new Uint8Array(random.pick([0, 1, 8, Math.min(bytes, 3e6 * scale) >>> 0])).fill(random.below(256)).buffer,
  view: (context, bytes) => view(context, bytes),
};
const LIVE = {
  function: ({ random, number }) => {
    const name = 'n'.repeat(random.log(2000)) + number();
    return { [name]: () => name }[name];
  },
  promise: (context, bytes) => promise(context, bytes),
};
const TEXT = {
  symbol: ({ shape, scale, say: tell }, bytes) => {
    const unit = shape.pick(Object.keys(UNITS));
    tell(`of ${bytes} ${unit}`);
    return Symbol(UNITS[unit].repeat(Math.min(bytes, 3e6 * scale)));
  },
};
const CONTAINERS = ['object', 'array', 'map', 'set'];

/** The value of a seed, with its description. */
export function generate(seed, { without = [], live = false, text = false, most = 2_000_000, from = 0 } = {}) {
  const random = randomness(seed);
  const kinds = Object.keys({ ...KINDS, ...(live ? LIVE : {}), ...(text ? TEXT : {}) }).filter((kind) => !without.includes(kind));
  const scale = Math.max(1, most / USUAL_BYTES);
  const context = { random, kinds, scale, said: [], depth: 0, keys: new Map(), pool: [], number: counter(from) };
  // Some are small under any limit; of the others as many have 3 KB as have 3 MB.
  const bytes = random.chance(0.2) ? random.log(2000) : Math.floor(1000 * Math.exp(random.next() * Math.log(Math.max(1, most / 1000))));
  const value = random.weighted({ many: 6, mix: 2, deep: 1, shared: 1, one: 2, unheld: without.includes('unheld') ? 0 : 0.3 })({ many, mix, deep, shared, one, unheld })(context, bytes);
  return { kind: `${bytes} bytes: ${context.said.join(' ')}`, value };
}

// Plans: the shape of the whole value.

/** The same shape many times, each fresh, so that a wrong weight adds up. */
function many(context, bytes) {
  const { random } = context;
  const each = Math.min(random.log(bytes), 100_000 * context.scale);
  const make = maker(context, each);
  const most = Math.min(bytes / Math.max(each, 16), 20_000 * context.scale);
  const list = [];
  say(context, `up to ${Math.ceil(most)} of ${each} bytes:`);
  // The size of an element is known only after it is made.
  for (let left = bytes; left > 0 && list.length < most; left -= Math.max(16, weight(list.at(-1)))) list.push(make());
  return list;
}

/** A tree of all kinds. */
function mix(context, bytes) {
  const used = new Set();
  const value = tree({ ...context, used }, bytes, 1 + context.random.below(DEEPEST));
  say(context, `a mix of ${[...used].join(', ')}`);
  return value;
}

/** One thing inside another inside another. */
function deep(context, bytes) {
  const { random } = context;
  const wrap = random.weighted({ array: 1, object: 1, map: 1, set: 1, key: 1 })({
    array: (value) => [value],
    object: (value) => ({ a: value }),
    map: (value) => new Map([['a', value]]),
    set: (value) => new Set([value]),
    key: (value) => ({ [`k${context.number()}`]: value }),
  });
  const depth = Math.min(random.log(bytes), 20_000);
  say(context, `${depth} deep in ${wrap(0).constructor.name}`);
  let value = maker(context, 16)();
  for (let at = 0; at < depth; at += 1) value = wrap(value);
  return value;
}

/** A few things with many references to each. */
function shared(context, bytes) {
  const { random } = context;
  const make = maker(context, Math.min(random.log(bytes), 1000));
  const pool = Array.from({ length: random.log(10) }, make);
  const places = Math.min(bytes / 16, 50_000) >>> 0;
  say(context, `shared by ${places}`);
  const list = Array.from({ length: places }, () => random.pick(pool));
  if (random.chance(0.3)) list.push(list);
  return random.chance(0.3) ? Object.fromEntries(list.slice(0, 500).map((value, at) => [`k${at}`, value])) : list;
}

/** A value that a host may be unable to hold, so that it names its path, with long steps on the way. */
function unheld(context, bytes) {
  const { random } = context;
  const key = random.pick(['-', 'k', 'é', '\n', '€']).repeat(Math.min(random.log(bytes), 1e6));
  const depth = Math.min(random.log(bytes), 10_000);
  say(context, `a pattern of no host ${depth} deep under keys of ${key.length}`);
  let value = new RegExp(random.pick(['(?i:a)', '(?<a>x)|(?<a>y)', 'a']));
  for (let at = 0; at < depth; at += 1) value = { [key]: value };
  return value;
}

/** One thing of the whole size. */
function one(context, bytes) {
  return maker(context, bytes)();
}

// Elements.

/** A function that makes one thing of a kind that is chosen here, of about so many bytes. */
function maker(context, bytes) {
  const { random, kinds } = context;
  const kind = random.pick(kinds);
  say(context, kind);
  // Common features of the things are decided once; new ones are drawn each time.
  const shape = random.below(2 ** 31);
  return () => makes(kind)({ ...context, shape: randomness(shape), say: once(context) }, bytes);
}

function makes(kind) {
  return KINDS[kind] ?? LIVE[kind] ?? TEXT[kind];
}

/** Some number, text or constant, of a kind that is the same for all things of the shape. */
function scalars(context) {
  const kind = context.shape.pick([...Object.keys(SCALARS), 'short strings']);
  context.say(`(${kind})`);
  if (kind !== 'short strings') return () => SCALARS[kind](context);
  const length = context.shape.below(20);
  return () => ('s'.repeat(length) + context.random.below(1000)).slice(-length);
}

function element(context) {
  const { shape, kinds } = context;
  const inner = kinds.filter((kind) => ['string', 'object', 'array', 'map', 'set', 'dates', 'error', 'view', 'integer keys', 'holes', 'bigint'].includes(kind));
  if (context.depth >= 2 || shape.chance(0.6)) return scalars(context);
  const kind = shape.pick(inner);
  const seed = shape.below(2 ** 31);
  const bytes = shape.log(64);
  context.say(`of ${kind}`);
  return () => makes(kind)({ ...context, shape: randomness(seed), depth: context.depth + 1 }, bytes);
}

function tree(context, bytes, depth) {
  const { random, kinds } = context;
  const leaf = depth === 0 || random.chance(0.1);
  const kind = random.pick(leaf ? kinds : CONTAINERS.filter((kind) => kinds.includes(kind)));
  const inner = { ...context, shape: random, say: () => {} };
  if (leaf) {
    context.used.add(kind);
    return makes(kind)(inner, Math.min(bytes, 1000));
  }
  const count = Math.min(1 + random.log(12), Math.max(1, bytes / 16));
  const parts = Array.from({ length: count }, () => (random.chance(0.1) && context.pool.length > 0 ? random.pick(context.pool) : tree(context, bytes / count, depth - 1)));
  const whole = {
    object: () => fill({}, Array.from({ length: count }, () => key(inner, random)), (at) => parts[at]),
    array: () => parts,
    map: () => new Map(parts.map((part) => [random.chance(0.5) ? part : random.below(100), part])),
    set: () => new Set(parts),
  }[kind]();
  if (context.pool.length < 100) context.pool.push(whole);
  return whole;
}

// Kinds.

function string({ random, shape, scale, number, say: tell }, bytes) {
  const unit = shape.pick(Object.keys(UNITS));
  const ends = shape.pick([unit, unit, unit, 'ASCII', 'two-byte']);
  const length = shape.chance(0.3) ? shape.below(20) : Math.min(bytes, 3e6 * scale) >>> 0;
  tell(`of ${length} ${unit}, then ${ends}`);
  return `${UNITS[unit].repeat(Math.max(0, length - 5))}${length < 2 ? '' : number() + random.below(10)}${UNITS[ends]}`.slice(0, Math.max(1, length));
}

function object(context, bytes) {
  const { random, shape } = context;
  const count = Math.min(shape.chance(0.5) ? shape.pick(COUNTS) : shape.log(2 + bytes / 16), 3000);
  const how = shape.pick(['known', 'new', 'permuted', 'subset', 'last new', 'first new', 'long', 'surrogate', 'odd', 'integer first']);
  context.say(`of ${count} keys, ${how}`);
  const keys = known(context, how === 'subset' ? count * 2 + 4 : count);
  const make = element(context);
  const chosen = {
    known: () => keys,
    new: () => keys.map((name) => `${name}_${context.number()}`),
    permuted: () => shuffled(random, keys),
    subset: () => shuffled(random, keys).slice(0, count),
    'last new': () => [...keys.slice(1), `n${context.number()}`],
    'first new': () => [`n${context.number()}`, ...keys.slice(1)],
    long: () => [...keys.slice(1), 'long'.repeat(shape.below(100)) + context.number()],
    surrogate: () => keys.map((name) => `${name}\ud800`),
    odd: () => [...keys.slice(1), ...shuffled(random, ODD_KEYS).slice(0, random.below(4))],
    'integer first': () => [random.pick(INDEXES), ...keys.slice(1)],
  }[how]();
  return fill({}, chosen, make);
}

function integerKeys(context, bytes) {
  const { random, shape } = context;
  const count = shape.chance(0.5) ? 1 + shape.below(3) : Math.min(1 + shape.log(1 + bytes / 16), 3000);
  const how = shape.pick(['one of', 'step', 'random', 'new', 'doubling', 'descending']);
  const start = shape.pick(INDEXES);
  const step = shape.pick([1, 2, 3, 4, 5, 8, 9, 10, 20, 100, 300, 1000, 1e5]);
  context.say(`${count} ${how} from ${start} by ${step}`);
  const index = {
    'one of': () => random.pick(INDEXES),
    step: (at) => start + at * step,
    random: () => random.below(1 + count * step),
    new: () => 1e6 + context.number(),
    doubling: (at) => 2 ** (at % 33),
    descending: (at) => start + (count - at) * step,
  }[how];
  return fill({}, Array.from({ length: count }, (_, at) => index(at)), element(context));
}

function filled(list, context, bytes) {
  const { shape, scale } = context;
  const count = Math.min(shape.chance(0.4) ? shape.below(20) : bytes / 8, 200_000 * scale) >>> 0;
  context.say(`of ${count}`);
  const make = element(context);
  const last = shape.chance(0.2) ? element(context) : make;
  for (let at = 0; at < count; at += 1) list.push(at + 1 === count ? last() : make());
  return list;
}

/** Many elements of one kind, and one of another kind that makes V8 convert all before it. */
function changing(context, bytes) {
  const { shape } = context;
  const count = Math.min(bytes / 8, MOST_ELEMENTS - 1) >>> 0;
  const [from, to] = [shape.pick(['small integers', 'doubles', 'large integers']), shape.pick(['doubles', 'undefined, null, true', 'string'])];
  context.say(`${count} ${from}, then ${to}`);
  const list = new Array(count).fill(SCALARS[from](context));
  list.splice(shape.pick([count, count, count / 2]), 0, to === 'string' ? 'other' : SCALARS[to](context));
  return list;
}

function holes(context) {
  const { random, shape } = context;
  const length = shape.chance(0.5) ? shape.below(30) : shape.log(10_000);
  const set = shape.pick([0, 1, 2, length / 50, length / 10, length / 2]) >>> 0;
  const list = [];
  const make = element(context);
  const where = shape.pick(['first', 'last', 'anywhere']);
  context.say(`${length} long, ${set} set, ${where}`);
  for (let at = 0; at < set && length > 0; at += 1) list[{ first: at, last: length - 1 - at, anywhere: random.below(length) }[where]] = make();
  list.length = length;
  return list;
}

function sparse(context) {
  const { random, shape } = context;
  const length = shape.pick(LENGTHS);
  const set = shape.pick([0, 1, 2, 5]);
  const list = new Array(length);
  context.say(`${length} long, ${set} set`);
  for (let at = 0; at < set; at += 1) list[random.pick([0, length - 1, random.below(length), at])] = at;
  return list;
}

function collection(target, context, bytes) {
  const { shape, scale } = context;
  const count = Math.min(shape.chance(0.5) ? shape.pick([0, ...COUNTS]) : bytes / 30, 100_000 * scale) >>> 0;
  context.say(`of ${count}`);
  const [key, make] = [element(context), element(context)];
  for (let at = 0; at < count; at += 1) {
    const member = key();
    // Scalars repeat; a number beside them does not.
    const unlike = target.has(member) ? at : member;
    if (target instanceof Map) target.set(unlike, make());
    else target.add(unlike);
  }
  return target;
}

/** Members that one of V8's tables, whose hash of numbers has no seed, puts into the same place. */
function collisions(context, bytes) {
  const { shape } = context;
  const how = shape.pick(['bigints', 'integers', 'doubles', 'numeric strings']);
  const count = Math.min(bytes / 24, 60_000 * context.scale) >>> 0;
  const bits = Math.max(1, Math.ceil(Math.log2(count + 1)));
  context.say(`${count} ${how}`);
  const member = {
    bigints: (at) => (BigInt(at) << 64n) | 1n,
    integers: (at) => unhashed32(at << Math.min(bits, 14)),
    doubles: (at) => unhashed64(BigInt(at + 1) << 17n),
    'numeric strings': (at) => `${at * 2 ** bits}`,
  }[how];
  const list = Array.from({ length: count }, (_, at) => member(at));
  return shape.chance(0.5) ? new Set(list) : new Map(list.map((key) => [key, 0]));
}

/** A few texts of one length in a Map or a Set. V8 compares such texts, because it hashes them by their length. */
function longTexts(context, bytes) {
  const { shape, number } = context;
  const unit = shape.pick(Object.keys(UNITS));
  const count = shape.pick([1, 2, 2, 3, 10]);
  const length = Math.max(1, bytes / 2 / count) >>> 0;
  const where = shape.pick(['start', 'end']);
  context.say(`${count} of ${length} ${unit}, which differ at the ${where}`);
  const same = UNITS[unit].repeat(length);
  const list = Array.from({ length: count }, () => (where === 'start' ? number() + same : same + number()));
  return shape.chance(0.5) ? new Set(list) : new Map(list.map((key) => [key, 0]));
}

function regexp(context, bytes) {
  const { shape, number } = context;
  const what = shape.pick(['a', '[ab]', '(a)', '(?:a|b)*', '\\p{L}', '\\w', '[\\W]', '[\\p{L}\\p{N}]', '\\p{RGI_Emoji}', '[^\\p{L}]', '[a-zé-\\u{10ffff}]', '(?<n#>a)', '(?<=a)', '\\u{1f600}', 'é', '/', '\n', 'a{2,3}', '[\\p{L}--[a-z]]', '[\\q{abc|d}]', '\\1', '|']);
  const flags = shape.pick(['', 'g', 'i', 'u', 'iu', 'v', 'iv', 'dgimsuy']);
  const count = Math.max(1, Math.min(shape.log(bytes), 13_000) / what.length) >>> 0;
  context.say(`${count} of ${what} with ${flags || 'no flags'}`);
  const parts = Array.from({ length: count }, (_, at) => what.replace('#', at)).join('');
  // A class of many parts costs more than many classes.
  const source = shape.chance(0.3) ? `[${parts.replace(/[()*<>?:|]/g, '')}]` : parts;
  const pattern = [source, 'a'.repeat(count)].map((text) => `${text}${number()}`);
  try {
    return new RegExp(pattern[0], flags);
  } catch {
    return new RegExp(pattern[1], flags);
  }
}

function error(context, bytes) {
  const { random, shape, number } = context;
  const own = shape.pick(['plain', 'no stack', 'long stack', 'name', 'code', 'code 0.5', 'new name and code']);
  const length = Math.min(shape.log(1 + bytes), 16_000);
  const unit = shape.pick(Object.values(UNITS));
  context.say(`${own}, a message of ${length}`);
  const made = new (random.pick(ERRORS))(unit.repeat(length) + number());
  if (own === 'no stack') delete made.stack;
  if (own === 'long stack') made.stack = unit.repeat(length);
  if (own === 'name') made.name = 'Custom';
  if (own === 'code') made.code = 'E';
  if (own === 'code 0.5') made.code = 0.5;
  if (own === 'new name and code') Object.assign(made, { name: `N${number()}`, code: `E${number()}` });
  return made;
}

function view({ random, shape, scale, say: tell }, bytes) {
  const kind = shape.pick(VIEWS);
  const size = shape.pick([0, 8, 64, Math.min(bytes, 1e6 * scale)]) & ~7;
  const views = shape.pick([1, 1, 1, 2, 10, 100]);
  tell(`${views} ${kind} over ${size}, ${shape.pick(['', 'the whole too'])}`);
  const buffer = new ArrayBuffer(size);
  new Uint8Array(buffer).fill(random.below(256));
  const all = Array.from({ length: views }, () => new globalThis[kind](buffer));
  if (views === 1) return all[0];
  return shape.chance(0.5) ? [buffer, all] : all;
}

function promise(context, bytes) {
  const kind = context.shape.pick(['object', 'array', 'string']);
  const value = makes(kind)({ ...context, depth: context.depth + 1 }, Math.min(bytes, 1000));
  const how = context.shape.pick(['fulfilled', 'rejected', 'pending', 'later']);
  context.say(`${how} ${kind}`);
  if (how === 'pending') return new Promise(() => {});
  const made = how === 'later' ? Promise.resolve().then(() => value) : how === 'rejected' ? Promise.reject(value) : Promise.resolve(value);
  made.catch(() => {});
  return made;
}

// Keys and entries.

function known({ keys }, count) {
  if (!keys.has(count)) keys.set(count, Array.from({ length: count }, (_, at) => `k${at}`));
  return keys.get(count);
}

function key({ number }, random) {
  if (random.chance(0.15)) return random.pick(ODD_KEYS);
  if (random.chance(0.1)) return random.pick(INDEXES);
  return random.chance(0.1) ? `n${number()}` : `k${random.below(30)}`;
}

/** Own properties with any names. */
function fill(target, keys, make) {
  keys.forEach((name, at) => {
    // A `then` that can be called is awaited: this concerns no weights.
    const value = make(at);
    if (name === '__proto__') Object.defineProperty(target, name, { value, writable: true, enumerable: true, configurable: true });
    else target[name] = name === 'then' && typeof value === 'function' ? 1 : value;
  });
  return target;
}

/** The approximate bytes that the sandbox takes for something, without going deep. */
function weight(value) {
  if (typeof value === 'string') return 24 + value.length * 2;
  if (typeof value !== 'object' || value === null) return 16;
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return 100 + value.byteLength;
  const count = Array.isArray(value) ? Math.min(value.length, 1e5) : value instanceof Map || value instanceof Set ? value.size : Object.keys(value).length;
  return 64 + 24 * count;
}

function say(context, text) {
  context.said.push(text);
}

/** Adds each description once, and no more after a dozen. */
function once({ said }) {
  const seen = new Set(said);
  return (text) => {
    if (seen.has(text) || said.length > 12) return;
    seen.add(text);
    said.push(text);
  };
}

function counter(from) {
  let last = from;
  return () => (last += 1);
}

// Randomness.

function randomness(seed) {
  let state = Math.imul(seed + 1, 0x9e3779b1) >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (bound) => Math.floor(next() * bound);
  const pick = (list) => list[below(list.length)];
  return {
    next,
    below,
    pick,
    chance: (share) => next() < share,
    /** From 0 to about `most`, each order of magnitude equally often. */
    log: (most) => Math.floor(Math.exp(next() * Math.log(Math.max(1, most)) + next() * 0.1)),
    weighted: (weights) => {
      let left = next() * Object.values(weights).reduce((sum, share) => sum + share, 0);
      const name = Object.keys(weights).find((name) => (left -= weights[name]) <= 0);
      return (choices) => choices[name];
    },
  };
}

function shuffled(random, list) {
  const mixed = [...list];
  for (let at = mixed.length - 1; at > 0; at -= 1) {
    const other = random.below(at + 1);
    [mixed[at], mixed[other]] = [mixed[other], mixed[at]];
  }
  return mixed;
}

// Numbers with a given hash: each step of V8's hash has an inverse.

function unhashed32(hash) {
  let key = hash >>> 0;
  key = (key ^ (key >>> 16)) >>> 0;
  key = Math.imul(key, inverse32(2057)) >>> 0;
  key = unshifted(key, 4);
  key = Math.imul(key, inverse32(5)) >>> 0;
  key = unshifted(key, 12);
  // ~key + (key << 15) is key * (2 ** 15 - 1) - 1.
  return Math.imul(key + 1, inverse32(2 ** 15 - 1)) | 0;
}

function unshifted(mixed, bits) {
  let key = mixed;
  for (let done = bits; done < 32; done += bits) key = (mixed ^ (key >>> bits)) >>> 0;
  return key;
}

function inverse32(odd) {
  let inverse = 1;
  for (let times = 0; times < 5; times += 1) inverse = Math.imul(inverse, 2 - Math.imul(odd, inverse));
  return inverse >>> 0;
}

const WORD = (1n << 64n) - 1n;

function unhashed64(hash) {
  let key = hash & WORD;
  key = unshifted64(key, 22n);
  key = (key * inverse64(65n)) & WORD;
  key = unshifted64(key, 11n);
  key = (key * inverse64(21n)) & WORD;
  key = unshifted64(key, 31n);
  key = ((key + 1n) * inverse64((1n << 18n) - 1n)) & WORD;
  const bytes = new DataView(new ArrayBuffer(8));
  bytes.setBigUint64(0, key);
  return bytes.getFloat64(0);
}

function unshifted64(mixed, bits) {
  let key = mixed;
  for (let done = bits; done < 64n; done += bits) key = mixed ^ (key >> bits);
  return key;
}

function inverse64(odd) {
  let inverse = 1n;
  for (let times = 0; times < 6; times += 1) inverse = (inverse * (2n - odd * inverse)) & WORD;
  return inverse;
}
