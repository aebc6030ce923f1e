// Random values of every kind, as a program that builds them.
//
// In: choices. Out: statements that make every object, then statements that fill them, and the root. Node and the
// sandbox run the same statements, so both have the same value. Each statement fills in one entry, so a failing case is
// reduced by leaving out statements.

import { quoted } from '../three-way/source.mjs';

const KEYS = [
  'a', 'b', 'c', 'longer', '__proto__', 'constructor', 'prototype', 'toString', 'valueOf', 'hasOwnProperty', 'then', 'length', 'name', 'message', 'code',
  'get', 'set', 'value', 'writable', 'enumerable', 'configurable', 'toJSON', '$ref', '0', '1', '7', '4294967294', '4294967295', '2147483648', '-1', '-0', '1.5', '1e21',
  '', ' ', 'é', '😀', '\ud800', '\udc00x', 'a\0b', 'q"\\\n', 'k'.repeat(40), 'é'.repeat(20),
];
const PRIMITIVES = [
  'undefined', 'null', 'true', 'false', '0', '-0', '1', '-1', '63', '64', '-64', '-65', '0.1', 'NaN', 'Infinity', '-Infinity', '2147483647', '-2147483648', '2147483648',
  '4294967295', '4294967296', '9007199254740991', '-9007199254740993', '5e-324', '1.7976931348623157e308', '0n', '-0n', '1n', '-1n', '127n', '128n', '255n', '-256n',
  '(2n ** 63n)', '-(2n ** 64n)', '(7n ** 200n)', '-(2n ** 1000n - 1n)', '""', '"x"', '"long ".repeat(30)', '"é"', '"\\u{1f600}"', '"\\ud800"', '"\\udc00\\ud800"', '"a\\0b"',
  '"\\u2028"', '"é".repeat(200)', '"\\ufeff"', '"\\ufffd"',
];
const NUMBERS = [0, 1, 2, 3, 5, 8, 15, 16, 17];
const DATES = ['0', '-0', '1.9', '8.64e15', '-8.64e15', '8.64e15 + 1', 'NaN', '1e12'];
const PATTERNS = ['', 'a+', '/', '\n', '[a-f]', '\\u{61}', 'é', '(?<n>x)\\k<n>', '\\/'];
const VIEWS = ['Int8Array', 'Uint8Array', 'Uint8ClampedArray', 'Int16Array', 'Uint16Array', 'Int32Array', 'Uint32Array', 'BigInt64Array', 'BigUint64Array', 'Float32Array', 'Float64Array', 'DataView'];
const ERRORS = ['Error', 'RangeError', 'ReferenceError', 'SyntaxError', 'TypeError', 'URIError', 'EvalError'];

/** Objects that cannot be cloned. `no` marks them for the oracle. */
const REFUSED = [
  'no(Symbol("s"))', 'no(Symbol.iterator)', 'no(new WeakMap())', 'no(new WeakSet())', 'no(new WeakRef({}))', 'no((function* () {})())', 'no(new (class Pool { a = 1 })())',
  'no(new Proxy({}, traps))', 'no(new Proxy([], traps))', 'no(new Proxy(() => 0, traps))', 'no(new Proxy(new Map(), traps))', 'no(revoked({}))', 'no(revoked([]))',
  'no(Object.create({ a: 1 }))', 'no(Object.create(new Proxy({}, traps)))', 'no(Object(Symbol("b")))', 'no([].values())', 'no(new Map().entries())',
  'no(detached(8))', 'no(detached(8, (b) => new Uint8Array(b)))', 'no(detached(8, (b) => new DataView(b, 2)))', 'no(detached(8, (b) => new BigInt64Array(b, 0, 1)))', 'no(Object.create(Array.prototype))', 'no(Object.create(DataView.prototype))', 'no(new FinalizationRegistry(() => 0))',
  'no(Object.setPrototypeOf({ a: 1 }, class A {}))', 'no(Object.setPrototypeOf(new WeakMap(), null))', 'no("x".matchAll(/x/g))',
];
const LIVE = ['fn(() => 1)', 'fn(function named() {})', 'fn(class C {})', 'fn(async () => 1)', 'fn((() => 1).bind(null))', 'fn(Math.max)', 'pr(Promise.resolve(1))', 'pr(new Promise(() => {}))', 'fn(function* () {})'];

/** Names that the statements use, declared before them on both sides. */
export const PRELUDE = `
const IN_SANDBOX = typeof setTimeout === 'undefined';
const plainly = (o, key, value) => { Object.defineProperty(o, key, { value, writable: true, enumerable: true, configurable: true }); };
// Node's side does not look for an element that is not enumerable: ARCHITECTURE.md, Limits.
const unseen = (o, at, value) => { if (IN_SANDBOX) hidden(o, at, value); else o.length = Math.max(o.length, at + 1); };
const hidden = (o, key, value) => { Object.defineProperty(o, key, { value, writable: true, enumerable: false, configurable: true }); };
const fixed = (o, key, value) => { Object.defineProperty(o, key, { value, writable: false, enumerable: true, configurable: false }); };
const getter = (o, key, value) => {
  let reads = 0;
  const get = () => {
    reads += 1;
    if (reads > 1) throw new Error('a getter was run twice');
    return value;
  };
  get.value = value;
  Object.defineProperty(o, key, { get, enumerable: true, configurable: true });
};
const trap = (o, key) => { Object.defineProperty(o, key, { get() { throw new Error('a hidden getter was run'); }, enumerable: false, configurable: true }); };
const traps = new Proxy({}, { get(_, name) { throw new Error('the trap ' + String(name) + ' was run'); } });
const revoked = (target) => { const { proxy, revoke } = Proxy.revocable(target, {}); revoke(); return proxy; };
const detached = (bytes, view = (buffer) => buffer) => {
  const buffer = new ArrayBuffer(bytes);
  const made = view(buffer);
  if (IN_SANDBOX) buffer.transfer();
  else structuredClone(buffer, { transfer: [buffer] });
  return made;
};
const filled = (buffer) => { const bytes = new Uint8Array(buffer); for (let i = 0; i < bytes.length; i += 1) bytes[i] = (i * 37 + 11) & 255; return buffer; };
const shared = (bytes) => filled(typeof SharedArrayBuffer === 'undefined' ? new ArrayBuffer(bytes) : new SharedArrayBuffer(bytes));
`;

/** One random graph: `shells` declare `n0`, `n1`, …; `fills` fill them; `root` is an expression. */
export function randomGraph(random) {
  const shells = [];
  const fills = [];
  const nodes = [];
  const count = random.weighted({ 1: 3, 3: 4, 8: 4, 20: 1 });
  const total = random.between(1, Number(count));
  const oddity = random.weighted({ none: 6, live: 1, refused: 2 });
  for (let i = 0; i < total; i += 1) node(`n${i}`);
  for (const { name, kind } of nodes) fill(name, kind);
  const freezable = nodes.filter(({ kind }) => !['refused', 'live', 'view'].includes(kind));
  if (freezable.length > 0 && random.chance(0.1)) fills.push(`Object.${random.pick(['freeze', 'seal', 'preventExtensions'])}(${random.pick(freezable).name});`);
  // A promise or a Proxy that is awaited alone is read by the language before it crosses.
  const root = ['live', 'refused'].includes(nodes[0].kind) ? '[n0]' : 'n0';
  return { shells, fills, root: random.chance(0.05) ? random.pick(PRIMITIVES) : root };

  function node(name) {
    const kinds = { object: 8, bare: 1, array: 5, map: 3, set: 2, date: 1, regexp: 1, error: 2, boxed: 1, buffer: 1.5, view: 2.5, refused: 0, live: 0 };
    if (oddity !== 'none') kinds[oddity] = 2;
    const kind = random.weighted(kinds);
    const expression = random.chance(0.08) ? disguised(shell(kind, name), kind) : shell(kind, name);
    shells.push(`const ${name} = ${expression};`);
    nodes.push({ name, kind });
  }

  /** The same kind of object with another prototype. */
  function disguised(expression, kind) {
    if (['refused', 'live', 'object', 'bare', 'boxed', 'error'].includes(kind)) return expression;
    return `Object.setPrototypeOf(${expression}, ${random.pick(['null', 'Object.prototype', 'Map.prototype', '{}', 'new Proxy({}, {})'])})`;
  }

  function shell(kind) {
    switch (kind) {
      case 'object':
        return random.pick(['{}', '{}', '{}', 'args(1, "two")']);
      case 'bare':
        return 'Object.create(null)';
      case 'array':
        return random.weighted({ '[]': 6, 'new (class List extends Array {})()': 1, 'new Array(3)': 1, 'new Array(5000)': 0.3, 'Array.from({ length: 200 }, (_, i) => i)': 0.3 });
      case 'map':
        return random.pick(['new Map()', 'new Map()', 'new (class Index extends Map { forEach() {} entries() { return []; } })()']);
      case 'set':
        return random.pick(['new Set()', 'new (class Bag extends Set { get size() { return 99; } })()']);
      case 'date':
        return `new Date(${random.pick(DATES)})`;
      case 'regexp':
        return `Object.assign(new RegExp(${quoted(random.pick(PATTERNS))}, ${quoted(random.pick(['', 'g', 'gimsuy', 'dy', 'u']))}), { lastIndex: ${random.below(3)} })`;
      case 'error':
        return error();
      case 'boxed':
        return `Object(${random.pick(PRIMITIVES.filter((text) => text !== 'undefined' && text !== 'null'))})`;
      case 'buffer':
        return buffer();
      case 'view':
        return view();
      case 'refused':
        return random.pick(REFUSED);
      default:
        return random.pick(LIVE);
    }
  }

  function error() {
    const kind = random.pick(ERRORS);
    const made = `new ${kind}(${random.pick(['', '"why"', '"\\ud800"', '"two\\nlines"'])})`;
    const own = random.pick(['', '', 'name: "Custom"', 'code: 42', 'code: "E"', 'code: null', 'name: 5', 'name: undefined', 'message: 7', 'name: "TypeError"', 'cause: { a: 1 }', 'extra: 1', 'name: ""']);
    if (random.chance(0.1)) return `new (class Odd extends ${kind} {})(${quoted('odd')})`;
    return own === '' ? made : `Object.assign(${made}, { ${own} })`;
  }

  function buffer() {
    const bytes = random.pick(NUMBERS);
    return random.chance(0.2) ? `filled(new ArrayBuffer(${bytes}, { maxByteLength: 32 }))` : `filled(new ArrayBuffer(${bytes}))`;
  }

  function view() {
    const kind = random.pick(VIEWS);
    const known = nodes.filter((known) => known.kind === 'buffer');
    if (known.length > 0 && random.chance(0.6)) {
      return random.chance(0.3) ? `new Uint8Array(${random.pick(known).name})` : `new Uint8Array(${random.pick(known).name}, 0, 0)`;
    }
    if (random.chance(0.15)) return `new Uint8Array(shared(16), ${random.below(8)}, ${random.below(8)})`;
    if (random.chance(0.2)) return `new ${kind}(filled(new ArrayBuffer(32, { maxByteLength: 64 })), ${8 * random.below(2)})`;
    return `new ${kind}(filled(new ArrayBuffer(48)), ${8 * random.below(3)}, ${random.below(3)})`;
  }

  function fill(name, kind) {
    const entries = random.below(kind === 'view' || kind === 'buffer' ? 2 : 5);
    for (let i = 0; i < entries; i += 1) {
      if (kind === 'object' || kind === 'bare') property(name);
      else if (kind === 'array') element(name);
      else if (kind === 'map') fills.push(`Map.prototype.set.call(${name}, ${member()}, ${value()});`);
      else if (kind === 'set') fills.push(`Set.prototype.add.call(${name}, ${member()});`);
      else if (kind !== 'refused' && kind !== 'live' && kind !== 'error' && random.chance(0.3)) fills.push(`hidden(${name}, 'unseen', 1);`);
    }
  }

  function property(name) {
    const key = random.pick(KEYS);
    // The language awaits a host function's result if its `then` can be called: this concerns no crossing.
    const text = key === 'then' ? random.pick(PRIMITIVES) : value();
    // The language reads `then` of an awaited value before it crosses.
    const how = random.weighted({ plainly: 10, getter: key === 'then' ? 0 : 1.5, hidden: 0.7, trap: key === 'then' ? 0 : 0.4, symbol: 0.5, fixed: 0.5, deleted: 0.4 });
    const known = `if (!Object.hasOwn(${name}, ${quoted(key)})) `;
    if (how === 'symbol') fills.push(`plainly(${name}, Symbol('key'), ${text});`);
    else if (how === 'trap') fills.push(`${known}trap(${name}, ${quoted(key)});`);
    else if (how === 'deleted') fills.push(`if (Object.getOwnPropertyDescriptor(${name}, ${quoted(key)})?.configurable) delete ${name}[${quoted(key)}];`);
    else fills.push(`${known}${how}(${name}, ${quoted(key)}, ${text});`);
  }

  function element(name) {
    const how = random.weighted({ push: 8, far: 0.6, extra: 0.6, getter: 0.6, hole: 0.8, hidden: 0.3, long: 0.3 });
    const at = random.pick([0, 1, 2, 5, 30]);
    const free = `if (!Object.hasOwn(${name}, ${at})) `;
    if (how === 'push') fills.push(`if (${name}.length < 2 ** 32 - 1) plainly(${name}, ${name}.length, ${value()});`);
    else if (how === 'far') fills.push(`plainly(${name}, ${random.pick([100, 5000, 70000, 2 ** 31, 2 ** 32 - 2])}, ${value()});`);
    else if (how === 'extra') fills.push(`extra(${name}, ${quoted(random.pick(['extra', '4294967295', '-1', '01', '1.0']))}, ${value()});`);
    else if (how === 'getter') fills.push(`${free}getter(${name}, ${at}, ${value()});`);
    else if (how === 'hidden') fills.push(`if (!Object.hasOwn(${name}, 40)) unseen(${name}, 40, ${value()});`);
    else if (how === 'long') fills.push(`if (${name}.length < 9000) ${name}.length = 9000;`);
    else fills.push(`if (${name}.length < 1e6) ${name}.length += 1;`);
  }

  /** A boxed primitive arrives as the primitive, and so as the same key. */
  function member() {
    const others = nodes.filter(({ kind }) => kind !== 'boxed');
    return others.length === 0 || random.chance(0.5) ? random.pick(PRIMITIVES) : random.pick(others).name;
  }

  function value() {
    return random.chance(0.5) ? random.pick(PRIMITIVES) : random.pick(nodes).name;
  }
}
