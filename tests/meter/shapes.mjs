// Shapes of values whose weight is measured.
//
// Out: for each shape the text of a function that makes a fresh value, from the number of the copy. `setup` comes
// before it in the program; `live` shapes cannot be reported and are arguments; `outside` shapes take memory outside of
// V8's heap, so that the resident memory of the process is measured too; `alone` shapes must not occur often in a
// message.

const SETUP = `
  const random = (seed) => { let s = (seed + 1) * 0x9e3779b1 >>> 0; return () => { s = s + 0x6d2b79f5 | 0; let t = Math.imul(s ^ s >>> 15, s | 1); t = t + Math.imul(t ^ t >>> 7, t | 61) ^ t; return ((t ^ t >>> 14) >>> 0) / 4294967296; }; };
  const shuffled = (keys, i) => { const r = random(i); const a = [...keys]; for (let k = a.length - 1; k > 0; k -= 1) { const at = Math.floor(r() * (k + 1)); [a[k], a[at]] = [a[at], a[k]]; } return a; };
  const names = (n, prefix = 'k') => Array.from({ length: n }, (_, i) => prefix + i);
  const object = (keys, value = 1) => { const o = {}; for (const key of keys) o[key] = value; return o; };
  const array = (n, f) => { const a = []; for (let i = 0; i < n; i += 1) a.push(f(i)); return a; };
  const holes = (length, ...at) => { const a = []; for (const index of at) a[index] = 1; a.length = length; return a; };
  const nest = (depth, f, inner) => { let v = inner; for (let i = 0; i < depth; i += 1) v = f(v); return v; };
  const own = (o, key, value) => Object.defineProperty(o, key, { value, writable: true, enumerable: true, configurable: true });
`;

export const SHAPES = {};

function shape(name, make, more = {}) {
  const { setup = '', ...rest } = more;
  SHAPES[name] = { make, setup: SETUP + setup, ...rest };
}

const outside = { outside: true };

// Numbers and other scalars, by their container.
for (const [name, text] of Object.entries({ 'small integers': 'k', 'integers of 31 bits': '2 ** 30 + k', 'integers from 2^31': '2 ** 31 + k', doubles: 'k + 0.5', undefined: 'undefined', true: 'true', null: 'null' })) {
  shape(`array of 1000 ${name}`, `(i) => array(1000, (k) => ${text})`);
  shape(`array of 8 ${name}`, `(i) => array(8, (k) => ${text})`);
  shape(`object of 3 ${name}`, `(i) => { const k = i % 1000; return { a: ${text}, b: ${text}, c: ${text} }; }`);
  shape(`object of 30 ${name}`, `(i) => { const o = {}; for (let k = 0; k < 30; k += 1) o['k' + k] = ${text}; return o; }`);
}
shape('mixed array: integers and doubles', '(i) => array(1000, (k) => (k % 2 ? k : k + 0.5))');
shape('mixed array: integers, then a string', "(i) => array(1000, (k) => (k === 999 ? 'x' : k))");
shape('mixed array: doubles, then a string', "(i) => array(1000, (k) => (k === 999 ? 'x' : k + 0.5))");
shape('mixed array: a string, then doubles', "(i) => array(1000, (k) => (k === 0 ? 'x' : k + 0.5))");
shape('mixed array: doubles and null', '(i) => array(1000, (k) => (k % 2 ? null : k + 0.5))');

// Strings.
for (const length of [0, 1, 2, 10, 15, 16, 17, 100, 10_000]) {
  for (const [width, unit] of Object.entries({ ASCII: 'a', 'Latin-1': 'é', 'two-byte': '€', 'four-byte': '😀' })) {
    shape(`string of ${length}, ${width}`, `(i) => (${JSON.stringify(unit)}.repeat(${length})${length < 3 ? '' : " + i"}).slice(-${length} || 0)`);
  }
}
shape('string of 10000 ASCII and one two-byte', "(i) => 'a'.repeat(10000) + i + '€'");
shape('string of 100 ASCII and one two-byte', "(i) => 'a'.repeat(100) + i + '€'");
shape('string of 10 ASCII and one two-byte', "(i) => 'a'.repeat(3) + i + '€'");
shape('string of 10000 with a lone surrogate', "(i) => 'a'.repeat(10000) + i + '\\ud800'");
shape('string of 10 with a lone surrogate', "(i) => 'aa' + i + '\\ud800'");
shape('string of 3,000,000', "(i) => 'a'.repeat(3e6) + i", outside);

// Big integers, by bits.
for (const bits of [0, 1, 31, 63, 64, 65, 128, 1000, 8000, 80_000, 1_000_000]) shape(`bigint of ${bits} bits`, `(i) => ${bits === 0 ? '0n' : `(1n << ${bits - 1}n) + BigInt(i % ${Math.min(1000, 2 ** Math.min(20, bits - 1))})`}`);

// Objects, by number of properties and by kind of keys.
for (const count of [0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 13, 16, 17, 18, 20, 21, 22, 24, 30, 33, 43, 44, 64, 86, 128, 200, 342, 1000, 1366, 2000]) {
  const keys = { setup: `const KEYS = names(${count}), MORE = names(20 + ${count} * 2, 'm');` };
  shape(`object of ${count}, keys known`, '(i) => object(KEYS)', keys);
  if (count === 0) continue;
  shape(`object of ${count}, keys new`, `(i) => object(names(${count}, 'n' + i + '_'))`);
  if (count <= 2000 && count > 1) shape(`object of ${count}, keys in another order`, '(i) => object(shuffled(KEYS, i))', keys);
  if (count <= 30) shape(`object of ${count}, a subset of many keys`, `(i) => object(shuffled(MORE, i).slice(0, ${count}))`, keys);
  if (count > 1 && count <= 64) shape(`object of ${count}, the last key new`, `(i) => own(object(KEYS.slice(1)), 'n' + i, 1)`, keys);
  if (count > 1 && count <= 64) shape(`object of ${count}, the first key new`, `(i) => object(['n' + i, ...KEYS.slice(1)])`, keys);
}
for (const count of [2, 4, 8, 12, 16]) shape(`object of ${count}, of 1500 transitions`, `(i) => object([...names(${count - 1}), 'm' + (i % 1500)])`);
for (const count of [4, 8, 12, 16]) shape(`object of ${count}, values of other kinds`, `(i) => { const r = random(i), o = {}; for (let k = 0; k < ${count}; k += 1) o['k' + k] = [1, 0.5, 'x', {}, true][Math.floor(r() * 5)]; return o; }`);
shape('object of subsets of 20 keys', "(i) => object(names(20).filter((_, k) => (i * 2654435761 >>> 0) >> k & 1))");
shape('object of new keys of 100 characters', "(i) => object(['x'.repeat(100) + i])");
shape('object of new keys, two-byte', "(i) => object(['€' + i])");
shape('object of new keys of a lone surrogate', "(i) => object(['\\ud800' + i])");
shape('object __proto__', "(i) => own({}, '__proto__', 1)");
shape('object __proto__ of an object', "(i) => own({}, '__proto__', {})");
shape('object constructor', "(i) => own({}, 'constructor', 1)");
shape('object constructor, toString, valueOf', "(i) => ['constructor', 'toString', 'valueOf', '__proto__', 'hasOwnProperty'].reduce((o, k) => own(o, k, 1), {})");
shape('object of 30, one of them __proto__', "(i) => own(object(names(29)), '__proto__', 1)");
shape('object then', '(i) => ({ then: 1 })');

// Objects whose keys are integers.
for (const keys of [[0], [1], [2], [5], [16], [17], [18], [50], [100], [300], [330], [500], [1000], [1023], [1024], [1025], [2000], [10_000], [1_000_000], [2 ** 31], [4294967294], [4294967295], [4294967296], [2 ** 53], [-1], [1.5]]) {
  shape(`object {${keys[0]}: 1}`, `(i) => ({ [${keys[0]}]: 1 })`);
}
shape('object {330: null}', '(i) => ({ 330: null })');
for (const keys of [[0, 1, 2], [0, 100], [0, 300], [300, 0], [100, 200, 300], [300, 600, 900], [1000, 2000, 3000], [0, 1023], [1, 10, 100, 1000], [1e6, 2e6, 3e6]]) {
  shape(`object {${keys.join(', ')}}`, `(i) => object(${JSON.stringify(keys)})`);
}
for (const count of [10, 100, 1000]) {
  shape(`object of ${count} integers`, `(i) => object(array(${count}, (k) => k))`);
  for (const step of [2, 3, 4, 5, 8, 9, 10, 20, 100, 1000]) shape(`object of ${count} integers, each ${step}th`, `(i) => object(array(${count}, (k) => k * ${step}))`);
}
shape('object of 10 new integers', '(i) => object(array(10, (k) => 1e6 + i * 10 + k))');
shape('object of an integer and a name', '(i) => ({ 100: 1, a: 1 })');
shape('object of 20 names and an integer', '(i) => object([...names(20), 0])');

// Arrays.
for (const count of [0, 1, 2, 3, 4, 5, 8, 16, 17, 18, 25, 41, 42, 100, 1000]) {
  shape(`array of ${count}`, `(i) => array(${count}, () => 1)`);
  shape(`array of ${count} doubles`, `(i) => array(${count}, () => 0.5)`);
  shape(`array of ${count} strings`, `(i) => array(${count}, () => 'x')`);
}
for (const [length, ...at] of [[1], [2], [5], [17], [18], [100], [1000], [3, 2], [300, 0], [300, 299], [100, 99], [1000, 999], [5, 0], [18, 0, 17], [300, 0, 150, 299]]) {
  shape(`holes: ${length} long, elements at ${at.join(', ') || 'none'}`, `(i) => holes(${[length, ...at].join(', ')})`);
}
shape('holes: each second of 100', '(i) => { const a = []; for (let k = 0; k < 100; k += 2) a[k] = 1; return a; }');
shape('holes: each tenth of 1000', '(i) => { const a = []; for (let k = 0; k < 1000; k += 10) a[k] = 1; return a; }');
shape('holes: each fiftieth of 10000', '(i) => { const a = []; for (let k = 0; k < 10000; k += 50) a[k] = 1; return a; }');
for (const length of [256, 300, 1024, 1025, 5000, 100_000, 1_000_000, 33_554_432, 33_554_433, 2 ** 32 - 1]) {
  shape(`sparse: new Array(${length})`, `(i) => new Array(${length})`, outside);
  if (length < 2 ** 32) shape(`sparse: ${length} long, the last set`, `(i) => { const a = new Array(${length}); a[${length - 1}] = 1; return a; }`, outside);
  if (length > 5000) shape(`sparse: ${length} long, the first set`, `(i) => { const a = new Array(${length}); a[0] = 1; return a; }`, outside);
}
shape('sparse: 100 far apart', '(i) => { const a = []; for (let k = 0; k < 100; k += 1) a[k * 100000] = 1; return a; }');

// Collections.
for (const count of [0, 1, 2, 3, 4, 5, 8, 9, 16, 17, 33, 65, 100, 1000, 1025]) {
  shape(`Map of ${count}`, `(i) => new Map(array(${count}, (k) => [k, k]))`);
  shape(`Set of ${count}`, `(i) => new Set(array(${count}, (k) => k))`);
}
shape('Map of 5, doubles', '(i) => new Map(array(5, (k) => [k + 0.5, k + 0.5]))');
shape('Set of 5, strings', "(i) => new Set(array(5, (k) => 'k' + k))");
shape('Set of 5, objects', '(i) => new Set(array(5, () => ({})))');
shape('Map of 5, objects', '(i) => new Map(array(5, () => [{}, {}]))');
shape('Set of 100, objects', '(i) => new Set(array(100, () => ({})))');
shape('Set of 1000, arrays', '(i) => new Set(array(1000, () => []))');
shape('Map of 100, a key that is a Map', '(i) => new Map(array(100, () => [new Map(), 0]))');
shape('Set of a Date', '(i) => new Set([new Date(0)])');
shape('Set of 5, dates', '(i) => new Set(array(5, () => new Date(0)))');
shape('Set of 5, buffers', '(i) => new Set(array(5, () => new ArrayBuffer(0)))', outside);

// Dates, patterns and errors.
shape('Date', '(i) => new Date(i)');
shape('Date, invalid', '(i) => new Date(NaN)');
shape('RegExp, empty', '(i) => new RegExp("")');
shape('RegExp, one text', '(i) => /abc/');
shape('RegExp, one text and flags', '(i) => /abc/dgimsuy');
shape('RegExp, one class', '(i) => /[a-z]+/');
shape('RegExp, new text', "(i) => new RegExp('a' + i)", { alone: true });
shape('RegExp, new class', "(i) => new RegExp('[ab]' + i)", { alone: true });
shape('RegExp, new with flags v', "(i) => new RegExp('[ab]' + i, 'v')", { alone: true });
shape('RegExp, 10 named groups, new', "(i) => new RegExp(array(10, (k) => '(?<g' + k + '_' + i + '>a)').join(''))", { alone: true });
shape('RegExp, 100 named groups, new', "(i) => new RegExp(array(100, (k) => '(?<g' + k + '_' + i + '>a)').join(''))", { alone: true });
shape('RegExp, 100 groups, new', "(i) => new RegExp('(a)'.repeat(100) + i)", { alone: true });
shape('RegExp, properties of Unicode, new', "(i) => new RegExp('\\\\p{L}' + i, 'u')", { alone: true });
shape('RegExp, 10,000 characters, new', "(i) => new RegExp('[ab]'.repeat(2500) + i)", { alone: true });
shape('RegExp, escaped slashes and breaks', "(i) => new RegExp('/'.repeat(1000) + '\\n'.repeat(1000) + i)", { alone: true });
shape('Error', "(i) => new Error('why')");
shape('Error, empty', '(i) => { const e = new Error(); delete e.stack; return e; }');
shape('Error, new message', "(i) => new Error('why' + i)");
shape('Error, no stack', "(i) => { const e = new Error('why'); delete e.stack; return e; }");
shape('Error, code', "(i) => Object.assign(new Error('why'), { code: 'E' })");
shape('Error, code a double', "(i) => Object.assign(new Error('why'), { code: 0.5 })");
shape('Error, name', "(i) => Object.assign(new Error('why'), { name: 'Custom' })");
shape('Error, new name and code', "(i) => Object.assign(new Error('why'), { name: 'Custom' + i, code: 'E' + i })");
shape('TypeError, name, code', "(i) => Object.assign(new TypeError('why'), { name: 'Custom', code: 'E' })");
shape('Error, stack of its own', "(i) => Object.assign(new Error('why'), { stack: 'x'.repeat(100) + i })");
shape('Error, two-byte', "(i) => Object.assign(new Error('€' + i), { stack: '€'.repeat(100) + i })");

// Buffers and views.
for (const size of [0, 1, 8, 64, 100, 1000, 4096, 10_000, 100_000, 1_000_000]) {
  shape(`ArrayBuffer of ${size}`, `(i) => new Uint8Array(${size}).fill(1).buffer`, outside);
  if (size !== 8) shape(`Uint8Array of ${size}`, `(i) => new Uint8Array(${size}).fill(1)`, outside);
}
for (const kind of ['DataView', 'Int8Array', 'Uint8Array', 'Uint8ClampedArray', 'Int16Array', 'Uint16Array', 'Int32Array', 'Uint32Array', 'BigInt64Array', 'BigUint64Array', 'Float16Array', 'Float32Array', 'Float64Array']) {
  shape(`${kind} over 8 bytes`, `(i) => new ${kind}(new ArrayBuffer(8))`, outside);
}
shape('buffer with 10 views', '(i) => { const b = new ArrayBuffer(8); return [b, ...array(10, () => new Uint8Array(b))]; }', outside);
shape('10 views of one buffer', '(i) => { const b = new ArrayBuffer(8); return array(10, () => new Uint8Array(b)); }', outside);
shape('1000 views of one buffer', '(i) => { const b = new ArrayBuffer(1000); return [b, array(1000, (k) => new Uint8Array(b, k))]; }', outside);
shape('1000 views of part of a large buffer', '(i) => { const b = new ArrayBuffer(100000); return array(1000, (k) => new Uint8Array(b, k, 1)); }', outside);

// Nesting and sharing.
for (let depth = 1; depth <= 6; depth += 1) {
  shape(`nested ${depth} deep: arrays`, `(i) => nest(${depth}, (v) => [v], 1)`);
  shape(`nested ${depth} deep: objects`, `(i) => nest(${depth}, (v) => ({ a: v }), 1)`);
  shape(`nested ${depth} deep: pairs of objects`, `(i) => { const f = (d) => (d === 0 ? 1 : { a: f(d - 1), b: f(d - 1) }); return f(${depth}); }`);
  shape(`nested ${depth} deep: Maps`, `(i) => nest(${depth}, (v) => new Map([[v, v]]), 1)`);
  shape(`nested ${depth} deep: Sets`, `(i) => nest(${depth}, (v) => new Set([v]), 1)`);
  shape(`nested ${depth} deep: a mix`, `(i) => { let v = i; for (let d = 0; d < ${depth}; d += 1) v = [[v, 'x'], { a: v, ['k' + d]: 1 }, new Map([[d, v]]), new Set([v, d]), [v, , new Date(d)], { 100: v }][(i + d) % 6]; return v; }`);
}
shape('nested 10,000 deep: arrays', '(i) => nest(10000, (v) => [v], 1)');
shape('nested 10,000 deep: objects', '(i) => nest(10000, (v) => ({ a: v }), 1)');
shape('shared: an array of 100 of one object', '(i) => { const o = {}; return array(100, () => o); }');
shape('shared: an array of 1000 of one string', "(i) => { const o = 'shared' + i; return array(1000, () => o); }");
shape('shared: cycle', '(i) => { const o = {}; o.o = o; return o; }');

// Values that stay in the sandbox: the host holds a function or a promise for them.
shape('function', '(i) => () => i', { live: true });
shape('function, name', "(i) => ({ ['name' + i]: () => i })['name' + i]", { live: true });
shape('function, name of 1000', "(i) => { const key = 'n'.repeat(1000) + i; return { [key]: () => i }[key]; }", { live: true });
shape('promise, pending', '(i) => new Promise(() => {})', { live: true });
shape('promise, fulfilled', '(i) => Promise.resolve(i)', { live: true });
shape('promise, rejected', '(i) => { const p = Promise.reject(i); p.catch(() => {}); return p; }', { live: true });
shape('promise, of an object', '(i) => Promise.resolve({ a: i })', { live: true });
