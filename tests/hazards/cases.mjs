// Programs that run long, or for ever: one for every kind of construct and builtin that can.
//
// Out: groups of `[name, program]`. A program is a statement that runs after `report('go')`; it can use the names
// below. It must not depend on the machine: it is long everywhere.

/** Declared in front of every program. */
export const PRELUDE = `
const HUGE = { length: 2 ** 53 - 1 };
const wide = () => Array.from({ length: 1_000_000 }, (_, i) => i);
const text = (n) => 'x'.repeat(n);
const bytes = (n) => new Uint8Array(n);
const endless = { *[Symbol.iterator]() { for (;;) yield 1; } };
const counting = { *[Symbol.iterator]() { for (let i = 0; ; i += 1) yield i; } };
const keys = (n) => Object.fromEntries(Array.from({ length: n }, (_, i) => ['k' + i, i]));
const dag = (depth) => { let node = {}; for (let i = 0; i < depth; i += 1) node = { a: node, b: node }; return node; };
`;

const on = (receiver, calls) => calls.map((call) => [call, `${receiver}.${call}`]);

/** A method of Array.prototype called on an object that claims a huge length. */
const generic = (calls) =>
  calls.map((call) => {
    const [, method, args] = /^(\w+)\((.*)\)$/.exec(call);
    return [`Array.prototype.${method} of a huge length`, `Array.prototype.${method}.call(${['HUGE', args].filter(Boolean).join(', ')})`];
  });

/** Repeats something that takes some milliseconds, for ever: the engine checks only at the loop around it. */
const again = (setup, bodies) => bodies.map((body) => [`for (;;) ${body}`, `${setup}; for (;;) ${body}`]);

export const GROUPS = {
  'control flow': [
    ['for (;;)', 'for (;;);'],
    ['while with try and finally', 'for (;;) { try { continue; } finally { continue; } }'],
    ['throw and catch', 'for (;;) { try { throw 1; } catch {} }'],
    ['recursion with catch', 'const f = () => { try { f(); } catch { f(); } }; f();'],
    ['mutual recursion', 'const a = (n) => (n ? b(n - 1) + b(n - 1) : 1), b = (n) => (n ? a(n - 1) + a(n - 1) : 1); a(60);'],
    ['labels', 'outer: for (;;) { for (;;) continue outer; }'],
    ['switch', 'for (let i = 0; ; i = (i + 1) % 3) switch (i) { case 0: case 1: break; default: }'],
    ['static block', 'class A { static { for (;;); } }'],
    ['getter', 'const o = { get x() { for (;;); } }; o.x;'],
    ['setter', 'const o = { set x(v) { for (;;); } }; o.x = 1;'],
    ['valueOf', '+{ valueOf() { for (;;); } };'],
    ['toString', '`${{ toString() { for (;;); } }}`;'],
    ['Symbol.toPrimitive', '1 + { [Symbol.toPrimitive]() { for (;;); } };'],
    ['Symbol.hasInstance', '1 instanceof { [Symbol.hasInstance]() { for (;;); } };'],
    ['garbage', 'for (;;) { const a = {}; a.a = a; }'],
    ['closures', 'let f = () => 0; for (;;) { const g = f; f = () => g; if (Math.random() < 1e-3) f = () => 0; }'],
    ['using and dispose', '{ using x = { [Symbol.dispose]() { for (;;); } }; }'],
  ],
  'arrays of a huge length': generic([
    'at(-1)', 'concat([1])', 'copyWithin(1, 0)', 'every(() => true)', 'fill(0)', 'filter(() => false)', 'find(() => false)',
    'findIndex(() => false)', 'findLast(() => false)', 'findLastIndex(() => false)', 'flat()', 'flatMap(() => [])', 'forEach(() => 0)',
    'includes(1)', 'indexOf(1)', 'join()', 'lastIndexOf(1)', 'map(() => 0)', 'pop()', 'push(1)', 'reduce((a) => a, 0)',
    'reduceRight((a) => a, 0)', 'reverse()', 'shift()', 'slice()', 'some(() => false)', 'sort()', 'splice(0, 1)', 'toLocaleString()',
    'toReversed()', 'toSorted()', 'toSpliced(0, 1)', 'unshift(1)', 'with(0, 1)', 'keys().toArray()', 'values().toArray()',
  ]).concat([
    ['Array.from of a huge length', 'Array.from(HUGE)'],
    ['Array.from of a Proxy', 'Array.from(new Proxy(HUGE, {}))'],
    ['Reflect.apply of a huge length', 'Reflect.apply(Math.max, null, HUGE)'],
    ['join of holes', 'new Array(2 ** 32 - 1).join("")'],
    ['forEach of holes', 'new Array(2 ** 32 - 1).forEach(() => 0)'],
    ['indexOf in holes', 'new Array(2 ** 32 - 1).indexOf(1)'],
    ['sort of holes', 'new Array(2 ** 32 - 1).sort()'],
    ['reverse of holes', 'new Array(2 ** 32 - 1).reverse()'],
    ['toString of nested holes', 'Array(5).fill(Array(2 ** 30)).toString()'],
    ['length as a getter', 'Array.prototype.indexOf.call({ get length() { for (;;); } }, 1)'],
    ['length that converts', 'Array.prototype.indexOf.call({ length: { valueOf() { for (;;); } } }, 1)'],
    ['Symbol.species', 'class A extends Array { static get [Symbol.species]() { for (;;); } } new A(1, 2).map((x) => x);'],
    ['isConcatSpreadable', '[].concat({ length: 2 ** 53 - 1, [Symbol.isConcatSpreadable]: true })'],
  ]),
  'arrays of a million': again('const a = wide()', [
    '[...a];', 'a.slice();', 'a.indexOf(-1);', 'a.lastIndexOf(-1);', 'a.includes(-1);', 'a.concat(a);', 'a.reverse();', 'a.toReversed();',
    'a.fill(0);', 'a.join();', 'a.flat();', 'a.copyWithin(1, 0);', 'a.toSpliced(0, 1);', 'a.with(0, 1);', 'a.unshift(1), a.shift();',
    'a.splice(1, 1, 1);', 'Array.from(a);', 'Math.max(...a.slice(0, 60_000));', 'new Set(a);', 'String(a);', 'a.toSorted((x, y) => y - x);',
    'Object.keys(a);', 'Object.entries(a);', 'Object.assign([], a);', 'Object.freeze(a.slice());', 'structuredClone(a);', 'JSON.stringify(a);',
  ]),
  sort: [
    ['comparator without end', '[2, 1].sort(() => { for (;;); })'],
    ['comparator at random', 'const a = wide(); for (;;) a.sort(() => Math.random() - 0.5);'],
    ['comparator that sorts', 'const a = wide(); a.sort(function f() { a.slice().sort(); return 1; });'],
    ['sort by text', 'const a = wide(); for (;;) a.sort();'],
    ['sort of a typed array', 'const a = new Float64Array(4_000_000).map(Math.random); for (;;) a.toSorted();'],
    ['sort of a typed array, by a comparator', 'new Uint8Array(4_000_000).sort(() => { for (;;); })'],
  ],
  strings: again('const s = text(2 ** 20), y = text(2 ** 16)', [
    's.padEnd(2 ** 25, "ab");', 's.repeat(20);', 's.replaceAll("x", "yy");', 's.split("");', 's.indexOf(y + "z");', 's.lastIndexOf("z" + y);',
    's.includes(y + "z");', 's.localeCompare(s + "a");', '(s + "é").normalize("NFD");', '(s + "é").toUpperCase();', 's.toLocaleLowerCase();',
    'encodeURIComponent(s + "é");', 'decodeURIComponent("%41".repeat(2 ** 18));', 'escape(s + "é");', 'unescape("%41".repeat(2 ** 18));',
    's.isWellFormed(), (s + "\\ud800").toWellFormed();', '" ".repeat(2 ** 22).trim();', 'String.fromCodePoint(...new Array(50_000).fill(65));',
    's.concat(s, s).charCodeAt(5);', 's.at(-1), [...s];', 'Number("1".repeat(2 ** 16));', 'parseFloat("1".repeat(2 ** 16));', 'Symbol.for(s + Math.random());',
  ]).concat([
    ['one indexOf, quadratic', '("a".repeat(2 ** 24)).indexOf("a".repeat(2 ** 22) + "b")'],
    ['one lastIndexOf, quadratic', '("a".repeat(2 ** 24)).lastIndexOf("b" + "a".repeat(2 ** 22))'],
    ['String.raw of a huge length', 'String.raw({ raw: HUGE })'],
    ['one replaceAll to a gigabyte', '"a".repeat(2 ** 20).replaceAll("a", "b".repeat(1000))'],
    ['one encodeURIComponent', 'encodeURIComponent("é".repeat(2 ** 25))'],
    ['one normalize', '("a" + "\\u0300\\u0316".repeat(2 ** 20)).normalize("NFC")'],
    ['a rope, flattened', 'let s = "ab"; for (let i = 0; i < 26; i += 1) s += s; for (;;) (s + Math.random()).indexOf("c");'],
    ['concatenation', 'let s = ""; for (;;) { s += "x"; if (s.length > 1e6) s = ""; }'],
    ['replace with a function', 'text(1e6).replaceAll("x", () => { for (;;); })'],
  ]),
  'regular expressions': [
    ['nested quantifiers', '/^(a+)+$/.test("a".repeat(40) + "b")'],
    ['alternatives', '/^(a|aa)+$/.test("a".repeat(80) + "b")'],
    ['back references', '/^(a*)*\\1$/.test("a".repeat(40) + "b")'],
    ['lookahead', '/^(?=(a+))*(a+)+$/.test("a".repeat(40) + "b")'],
    ['lookbehind', '/(?<=^(a|aa)+c)b/.test("a".repeat(80) + "db".repeat(9))'],
    ['lazy quantifiers', '/^(a+?)+?$/.test("a".repeat(40) + "b")'],
    ['Unicode classes', '/^(\\p{L}+)+$/iu.test("é".repeat(40) + "!")'],
    ['quadratic search', '/x*y/.test(text(2 ** 20))'],
    ['many starts', 'const s = text(2 ** 20); for (;;) /xxxxxxxxxxy/.test(s);'],
    ['replace', 'const s = text(2 ** 20); for (;;) s.replace(/x/g, "y");'],
    ['split', 'const s = text(2 ** 20); for (;;) s.split(/x/);'],
    ['matchAll', 'const s = text(2 ** 20); for (;;) [...s.matchAll(/x/g)];'],
    ['compiling', 'for (;;) new RegExp("(?:" + "a|".repeat(10_000) + "b)");'],
    ['compiling large repeats', 'for (;;) new RegExp("(?:a{1000}){1000}".repeat(100)).test("b");'],
    ['compiling classes', 'for (;;) new RegExp("[" + "\\\\p{L}".repeat(200) + "]", "u");'],
    ['an exec of its own', 'RegExp.prototype[Symbol.replace].call({ exec() { for (;;); }, flags: "g" }, "a", "b")'],
    ['lastIndex that converts', 'const r = /a/g; r.lastIndex = { valueOf() { for (;;); } }; r.test("a");'],
  ],
  bigints: [
    ['toString', 'const n = 1n << 1_000_000n; for (;;) n.toString();'],
    ['one toString', '((1n << 1_048_000n) - 1n).toString()'],
    ['toString of small ones', 'const n = 3n ** 20_000n; for (;;) n.toString();'],
    ['from text', 'const s = "9".repeat(300_000); for (;;) BigInt(s);'],
    ['multiplication', 'const n = (1n << 500_000n) - 1n; for (;;) n * n;'],
    ['division', 'const n = (1n << 1_000_000n) - 1n, d = (1n << 500_000n) - 3n; for (;;) n / d;'],
    ['remainder', 'const n = (1n << 1_000_000n) - 1n; for (;;) n % 1_000_003n;'],
    ['power', '7n ** 370_000n; for (;;) 7n ** 300_000n;'],
    ['shift', 'for (;;) (1n << 1_000_000n) >> 999_999n;'],
    ['asUintN', 'const n = -(1n << 1_000_000n); for (;;) BigInt.asUintN(999_999, n);'],
    ['greatest common divisor', 'let a = 1n << 200_000n, b = 3n ** 120_000n; for (;;) { while (b) [a, b] = [b, a % b]; a = 1n << 200_000n; b = 3n ** 120_000n; }'],
  ],
  json: [
    ['stringify a DAG', 'JSON.stringify(dag(40))'],
    ['stringify with toJSON', 'JSON.stringify({ toJSON() { for (;;); } })'],
    ['stringify with a replacer', 'JSON.stringify([1], () => { for (;;); })'],
    ['stringify growing', 'JSON.stringify({ a: 1 }, (key, value) => ({ a: 1 }))'],
    ['stringify a Proxy', 'JSON.stringify(new Proxy([], { get: (t, k) => (k === "length" ? 2 ** 53 - 1 : 1) }))'],
    ['parse', 'const s = JSON.stringify(wide()); for (;;) JSON.parse(s);'],
    ['parse nested', 'const s = "[".repeat(1000) + "]".repeat(1000); for (;;) JSON.parse(s);'],
    ['parse with a reviver', 'JSON.parse("[1]", () => { for (;;); })'],
    ['parse with a reviver that grows', 'JSON.parse("[[1,2],[3]]", function (key, value) { if (Array.isArray(value)) value.length = 2 ** 31; return value; })'],
  ],
  'typed arrays and buffers': again('const b = bytes(16_000_000)', [
    'b.fill(1);', 'b.set(b.subarray(1));', 'b.indexOf(9);', 'b.lastIndexOf(9);', 'b.includes(9);', 'b.reverse();', 'b.slice();', 'b.copyWithin(1, 0);',
    'b.toReversed();', 'b.with(0, 1);', 'b.buffer.slice(0);', 'new Float64Array(b.subarray(0, 1_000_000));', 'b.subarray(0, 200_000).join();', 'structuredClone(b);',
    'new DataView(b.buffer).getFloat64(8);', 'b.map((x) => x);',
  ]).concat([
    ['from an endless iterator', 'Uint8Array.from(endless)'],
    ['from a huge length', 'Uint8Array.from({ length: 2 ** 26 })'],
    ['set from a Proxy', 'bytes(1e6).set(new Proxy([], { get: (t, k) => (k === "length" ? 1e6 : (() => { for (;;); })()) }))'],
    ['resizing', 'const r = new ArrayBuffer(8, { maxByteLength: 2 ** 26 }); for (;;) { r.resize(2 ** 26); r.resize(0); }'],
    ['transfer', 'let r = new ArrayBuffer(2 ** 24); for (;;) r = r.transfer(2 ** 24 + 8), r = r.transfer(2 ** 24);'],
  ]),
  'Map and Set': [
    ['forEach that adds', 'const m = new Map([[0, 0]]); m.forEach((v, k) => { m.delete(k); m.set(k + 1, 0); });'],
    ['iteration that adds', 'const s = new Set([0]); for (const k of s) { s.delete(k); s.add(k + 1); }'],
    ['integer keys', 'const m = new Map(); for (let i = 0; ; i += 1) { m.set(i, i); if (m.size > 1e5) m.clear(); }'],
    ['colliding keys', 'const m = new Map(); for (let i = 0; ; i += 1) { m.set(i * 2 ** 32, i); if (m.size > 1e5) m.clear(); }'],
    ['from an endless iterator', 'new Set(endless)'],
    ['Map.groupBy', 'Map.groupBy(endless, () => 1)'],
    ['Object.groupBy', 'Object.groupBy(counting, (i) => i % 2)'],
    ['union', 'new Set().union({ size: 1, has: () => true, keys: () => endless[Symbol.iterator]() })'],
    ['isSupersetOf', 'new Set([1]).isSupersetOf({ size: 0, has: () => true, keys: () => endless[Symbol.iterator]() })'],
    ['intersection', 'new Set(wide()).intersection({ size: Infinity, has: () => { for (;;); }, keys: () => endless })'],
    ['symmetricDifference', 'const a = new Set(wide()); for (;;) a.symmetricDifference(a);'],
    ['delete and clear', 'const m = new Map(wide().map((i) => [i, i])); for (;;) { new Map(m).clear(); }'],
    ['WeakMap', 'const m = new WeakMap(); for (;;) m.set({}, {});'],
    ['FinalizationRegistry', 'const r = new FinalizationRegistry(() => 0); for (;;) r.register({}, 1);'],
  ],
  'iterators and generators': [
    ['spread', 'const a = [...endless]'],
    ['destructuring', 'const [...a] = endless'],
    ['arguments', 'Math.max(...endless)'],
    ['yield*', 'const g = (function* () { yield* endless; })(); for (const x of g);'],
    ['return that does not', 'for (const x of { [Symbol.iterator]: () => ({ next: () => ({}), return() { for (;;); } }) }) break;'],
    ['next that does not', 'for (const x of { [Symbol.iterator]: () => ({ next() { for (;;); } }) });'],
    ['Object.fromEntries', 'Object.fromEntries({ *[Symbol.iterator]() { for (;;) yield ["a", 1]; } })'],
    ['helpers: map', 'endless[Symbol.iterator]().map((x) => x).forEach(() => 0)'],
    ['helpers: filter', 'endless[Symbol.iterator]().filter(() => false).next()'],
    ['helpers: flatMap', 'endless[Symbol.iterator]().flatMap(() => []).next()'],
    ['helpers: drop', 'endless[Symbol.iterator]().drop(Infinity).next()'],
    ['helpers: take', 'endless[Symbol.iterator]().take(Infinity).toArray()'],
    ['helpers: reduce', 'endless[Symbol.iterator]().reduce((a) => a)'],
    ['helpers: some and every', 'endless[Symbol.iterator]().some(() => false)'],
    ['helpers: find', 'endless[Symbol.iterator]().find(() => false)'],
    ['Array.fromAsync', 'await Array.fromAsync(endless)'],
    ['async generator', 'for await (const x of (async function* () { for (;;) yield 1; })());'],
  ],
  'objects and proxies': [
    ['proxy traps', 'new Proxy({}, { get() { for (;;); } }).x'],
    ['ownKeys of a Proxy', 'const k = Object.keys(keys(100_000)); for (;;) Object.keys(new Proxy({}, { ownKeys: () => k }));'],
    ['a chain of proxies', 'let p = {}; for (let i = 0; i < 5_000; i += 1) p = new Proxy(p, {}); for (;;) p.x;'],
    ['a chain of prototypes', 'let o = null; for (let i = 0; i < 200_000; i += 1) o = Object.create(o); for (;;) o.x;'],
    ['a Proxy as prototype', 'const o = Object.create(new Proxy({}, { get() { for (;;); } })); o.x;'],
    ['for in', 'const o = keys(200_000); for (;;) for (const k in o);'],
  ].concat(
    again('const o = keys(200_000)', [
      'Object.assign({}, o);', 'Object.entries(o);', 'Object.freeze({ ...o });', 'Object.getOwnPropertyDescriptors(o);', 'Object.fromEntries(Object.entries(o));',
      'Reflect.ownKeys(o);', 'Object.isFrozen(o);', 'Object.defineProperties({}, Object.getOwnPropertyDescriptors(o));', 'structuredClone(o);', 'delete { ...o }.k5;',
    ]),
  ),
  promises: [
    ['await', 'for (;;) await 0;'],
    ['then, for ever', 'const f = () => Promise.resolve().then(f); await f();'],
    ['queueMicrotask', 'const f = () => queueMicrotask(f); f(); await new Promise(() => 0);'],
    ['more and more jobs', 'const f = () => { queueMicrotask(f); queueMicrotask(f); }; f(); await new Promise(() => 0);'],
    ['thenables', 'const t = { then(f) { f({ ...t }); } }; await t;'],
    ['a then that does not return', 'await { then() { for (;;); } };'],
    ['Promise.all', 'await Promise.all(endless)'],
    ['Promise.race', 'await Promise.race({ *[Symbol.iterator]() { for (;;) yield new Promise(() => 0); } })'],
    ['Promise.any', 'await Promise.any({ *[Symbol.iterator]() { for (;;) yield Promise.reject(1); } })'],
    ['rejections', 'for (;;) { Promise.reject(new Error("x")); await 0; }'],
    ['async recursion', 'const f = async (n) => { await 0; return f(n + 1); }; await f(0);'],
    ['dynamic import', 'for (;;) await import("nope").catch(() => 0);'],
    ['never settled', 'await new Promise(() => 0);'],
  ],
  'crossings to the host': [
    ['console', 'for (;;) console.log("x");'],
    ['console, large', 'const a = wide(); for (;;) console.log(a.length, a);'],
    ['report', 'for (let i = 0; ; i += 1) report(i);'],
    ['a synchronous call', 'for (;;) host(1);'],
    ['a call with a large value', 'const a = wide(); for (;;) host(a);'],
    ['a call with a getter', 'host({ get x() { for (;;); } });'],
    ['a call with a DAG', 'const d = dag(20); for (;;) host(d);'],
    ['a call with deep nesting', 'let d = []; for (let i = 0; i < 1e6; i += 1) d = [d]; for (;;) host(d);'],
    ['a call with a sparse array', 'const s = []; s[2 ** 32 - 2] = 1; for (;;) host(s);'],
    ['a call with a million keys', 'const o = keys(500_000); for (;;) host(o);'],
    ['a promise of the host that never settles', 'await never();'],
    ['calls that nobody awaits', 'for (;;) later(1);'],
    ['a call with sparse arrays of 33,554,432', 'const s = Array.from({ length: 40 }, () => new Array(33_554_432)); for (;;) host(s);'],
    ['logs of sparse arrays of 33,554,432', 'for (;;) console.log(Array.from({ length: 40 }, () => new Array(33_554_432)));'],
    ['a call with integer keys', 'const o = Array.from({ length: 50_000 }, () => ({ 330: null })); for (;;) host(o);'],
    ['a call with colliding bigints', 'const s = new Set(Array.from({ length: 60_000 }, (_, i) => (BigInt(i) << 64n) | 1n)); for (;;) { try { host(s); } catch {} }'],
    ['a call with colliding long texts', 'const s = new Set(Array.from({ length: 200 }, (_, i) => text(100_000) + (1_000 + i))); for (;;) { try { host(s); } catch {} }'],
    ['a call with patterns', 'const p = Array.from({ length: 20 }, () => new RegExp("[" + "\\\\p{RGI_Emoji}".repeat(40) + "]", "v")); for (;;) { try { host(p); } catch {} }'],
    ['reports of patterns', 'const p = Array.from({ length: 5 }, () => new RegExp("[" + "\\\\p{L}".repeat(200) + "]", "u")); for (;;) { try { report(p); } catch {} }'],
    ['a call with an array that changes its kind', 'const a = new Array(1_000_000).fill(0.5); a.push("x"); for (;;) host(a);'],
    ['promises of large values', 'const a = bytes(8_000_000); for (;;) await later(Promise.resolve(a));'],
    ['rejections with large values', 'const a = bytes(8_000_000); for (;;) { try { await later(Promise.reject(a)); } catch {} }'],
    ['structuredClone', 'const o = dag(18); for (;;) structuredClone(o);'],
    ['structuredClone of a getter', 'structuredClone({ get x() { for (;;); } });'],
    ['errors with large messages', 'for (;;) { try { throw new Error(text(1e6)); } catch (e) { e.stack; } }'],
    ['deep stacks', 'const f = (n) => (n ? f(n - 1) : new Error("x").stack); for (;;) f(500);'],
  ],
  'numbers and dates': again('', [
    'Number("0x" + "f".repeat(100_000));', '(1e300 + Math.random()).toString(2);', '(Math.random()).toString(36);', '(1e20).toFixed(100);', 'Number.MAX_VALUE.toPrecision(100);',
    'Date.parse(text(1e6));', 'new Date(1e15).toLocaleString();', 'Math.hypot(...new Array(10_000).fill(1));', 'Math.sumPrecise?.(wide());', 'Symbol(text(1e6)).toString();',
  ]),
};

/** Programs whose source is the hazard: nothing of them runs before it has been compiled. */
export const SOURCES = {
  'a source of 8 MB': () => 'a;'.repeat(4_000_000),
  'a source of 8 MB in one expression': () => `export default 1${' + 1'.repeat(7_000)}; ${'x = [1, 2, 3];\n'.repeat(500_000)}`,
  'a source of one long text': () => `export default ${JSON.stringify('x'.repeat(8_000_000))}`,
  'a source of one template': () => `export default \`${'${1}x'.repeat(500_000)}\``,
  'a source of many functions': () => Array.from({ length: 200_000 }, (_, i) => `function f${i}(a, b) { return a + b; }`).join('\n'),
  'a source of many classes': () => Array.from({ length: 60_000 }, (_, i) => `class C${i} { #x = 1; get x() { return this.#x; } }`).join('\n'),
  'a source of many types': () => Array.from({ length: 100_000 }, (_, i) => `type T${i}<A extends string> = { [K in A]: T${i}<K> };`).join('\n'),
  'a source of many enums': () => Array.from({ length: 20_000 }, (_, i) => `enum E${i} { A = ${i}, B, C = A | B }`).join('\n'),
  'a source that nests': () => `export default ${'['.repeat(15_000)}${']'.repeat(15_000)}`,
  'a regular expression of 1 MB': () => `export default /${'(a|b)'.repeat(200_000)}/`,
  'ambiguous arrows': () => `export default ${'(a = '.repeat(2_000)}1${')'.repeat(2_000)}`,
  'ambiguous type arguments': () => `export default ${'f<(a='.repeat(200)}`,
};
