// Published attacks that escaped or crashed other sandboxes. Against vm2: functions and errors of the host that carry
// its realm along, and hooks that its tools call. Against QuickJS: buffers and arrays that change while a builtin works
// on them. A wrong memory access ends the process, and with it the test.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { runCode } from '../isolation.mjs';

const CASES = {
  // Escapes by objects that the host hands in.
  'no constructor of anything compiles text': [
    `const said = [];
    for (const make of [() => host.constructor, () => host.constructor.constructor, () => host.__proto__.constructor, () => later().constructor.constructor,
      () => { try { fail(); } catch (e) { return e.constructor.constructor; } }, () => Object.getPrototypeOf(async () => {}).constructor, () => Object.getPrototypeOf(function* () {}).constructor]) {
      try { said.push(typeof make()('return process')()); } catch (e) { said.push(e.message); }
    }
    export default new Set(said)`,
    new Set(['eval is not supported']),
  ],
  'a host function has no caller and no arguments of another': ['const f = function () { try { return host.caller ?? host.arguments ?? null; } catch (e) { return e.name; } }; export default f()', 'TypeError'],
  'prepareStackTrace is no hook': [
    `Error.prepareStackTrace = (e, sites) => { report(typeof sites); return sites; };
    Error.stackTraceLimit = Infinity;
    try { fail(); } catch (e) { globalThis.host = typeof e.stack; }
    try { null.x; } catch (e) { globalThis.own = typeof e.stack; }
    export default [globalThis.host, globalThis.own]`,
    ['string', 'string'],
  ],
  'an error of the host carries nothing of it': [
    `const said = [];
    const own = (stack) => stack.split('\\n').slice(1).every((line) => line === '' || /^    at .* \\((<runCode>:\\d+:\\d+|native)\\)$/.test(line));
    try { fail(); } catch (e) { said.push(e.constructor === TypeError, own(e.stack), Object.getOwnPropertyNames(e)); }
    try { await laterFail(); } catch (e) { said.push(e.constructor === Error, own(e.stack), Object.getOwnPropertyNames(e)); }
    export default said`,
    [true, true, ['message'], true, true, ['message']],
  ],
  'an error at the end of the stack is the sandbox’s own': ['let own; const f = () => { try { f(); } catch (e) { own ??= e instanceof RangeError && e.constructor === RangeError; host(1); } }; try { f(); } catch {} export default own', true],
  'what tools call on values is data': ['host({ [Symbol.for("nodejs.util.inspect.custom")]: () => 1, inspect: 1, toJSON: 2, toString: 3, valueOf: 4 }); export default Object.keys(host({ toJSON: 1, [Symbol.iterator]: 2 }))', ['toJSON']],
  'a species of Promise meets no promise of the host': [
    'Object.defineProperty(Promise, Symbol.species, { get() { return function (run) { run(() => 1, () => 2); }; } }); export default [await later()]',
    [1],
  ],
  'recursion by way of the host ends in the sandbox': ['const o = { get a() { return host(o); } }; let name; try { host(o); } catch (e) { name = e.name; } export default name', 'RangeError'],
  'crossings at the end of the stack': [
    `let depth = 0;
    const deep = (o) => { depth += 1; try { return deep(o); } catch { structuredClone(o); host(o); report(1); console.log(o); return 1; } };
    try { deep({ get a() { return [new Map([[{ get b() { return new Error('x'); } }, 1]])]; } }); } catch {}
    export default depth > 1000`,
    true,
  ],
  // Accesses out of bounds by a buffer or an array that changes.
  'a sort whose comparison shrinks the buffer': [
    `const said = [];
    for (const end of ['resize', 'transfer']) for (const sort of ['sort', 'toSorted']) {
      const buffer = new ArrayBuffer(4096, { maxByteLength: 8192 }), view = new Float64Array(buffer);
      let calls = 0;
      try { view[sort]((a, b) => { calls += 1; if (calls === 9) buffer[end](8); return b - a; }); } catch (e) { report(e.name); }
      said.push(view.length);
    }
    export default said`,
    [1, 1, 0, 0],
  ],
  'a view whose constructor shrinks the buffer': [
    `const said = [];
    const buffer = new ArrayBuffer(64, { maxByteLength: 128 });
    const target = new Proxy(function () {}, { get(f, key) { if (key === 'prototype') buffer.resize(1); return f[key]; } });
    for (const View of [Int8Array, Float64Array, DataView]) { buffer.resize(64); try { Reflect.construct(View, [buffer, 8, 4], target); said.push('made'); } catch (e) { said.push(e.name); } }
    export default said`,
    ['RangeError', 'RangeError', 'RangeError'],
  ],
  'a view read at an index that shrinks the buffer': [
    `const buffer = new ArrayBuffer(64, { maxByteLength: 128 }), view = new Int32Array(buffer), data = new DataView(buffer);
    const at = (n) => ({ valueOf() { buffer.resize(4); return n; } });
    let ran = 0;
    for (const act of [() => view.fill(at(1)), () => view.set([1, at(1), 3]), () => view.copyWithin(0, at(4)), () => view.indexOf(1, at(0)), () => view.lastIndexOf(0, at(10)), () => view.includes(undefined, at(0)),
      () => view.with(at(9), 1), () => view.with(9, at(9)), () => view.at(at(9)), () => view.subarray(at(2), 8), () => view.slice(at(2)), () => data.setInt32(at(20), 1), () => data.setFloat64(20, at(1)), () => data.getInt32(at(20)),
      () => buffer.slice(at(2), 60), () => new Uint8Array(buffer, at(8), 20), () => buffer.resize(at(100))]) {
      buffer.resize(64);
      try { act(); } catch (e) { if (!['RangeError', 'TypeError'].includes(e.name)) throw e; }
      ran += 1;
    }
    export default ran`,
    17,
  ],
  'an array emptied by the index that is looked for': [
    `const list = Array.from({ length: 100000 }, () => ({}));
    export default ['lastIndexOf', 'indexOf', 'includes'].map((find) => { const copy = list.slice(); return copy[find](1, { valueOf() { copy.length = 1; return 90000; } }); })`,
    [-1, -1, false],
  ],
  'an array emptied by an argument of the builtin at work on it': [
    `let ran = 0;
    for (const name of ['concat', 'slice', 'splice', 'copyWithin', 'fill', 'flat', 'join', 'toSpliced', 'with', 'sort', 'toSorted', 'at']) {
      const list = Array.from({ length: 1000 }, (_, i) => i);
      const empty = (n) => ({ valueOf() { list.length = 0; return n; }, toString() { list.length = 0; return ','; } });
      try { list[name](name.endsWith('ort') || name === 'toSorted' ? () => { list.length = 0; return 1; } : empty(1), empty(2)); } catch (e) { if (!['RangeError', 'TypeError'].includes(e.name)) throw e; }
      ran += 1;
    }
    export default ran`,
    12,
  ],
  'a Map cleared under its iterator': ['const map = new Map(); for (let i = 0; i < 1000; i += 1) map.set(i, i); const all = map.entries(); all.next(); map.clear(); for (let i = 0; i < 10; i += 1) map.set({}, 1); let n = 0; for (const [key] of all) { n += 1; map.delete(key); } export default n', 10],
  'a Set changed by the set that it is compared with': [
    `const set = new Set(), other = { size: 3, has() { set.clear(); return true; }, keys() { set.clear(); return [1, 2].values(); } };
    export default ['union', 'intersection', 'difference', 'symmetricDifference', 'isSubsetOf', 'isSupersetOf', 'isDisjointFrom'].map((name) => { set.add(1).add(2).add(3); return typeof set[name](other); })`,
    ['object', 'object', 'object', 'object', 'boolean', 'boolean', 'boolean'],
  ],
  'a generator that resumes itself': ['function* g() { try { it.next(); } catch (e) { yield e.name; } } const it = g(); export default it.next().value', 'TypeError'],
  'numbers whose digits do not fit': [
    `export default [() => 1n << 2n ** 40n, () => 2n ** 2n ** 20n, () => BigInt('0x' + 'f'.repeat(3e5)), () => BigInt('0b')].map((make) => { try { return typeof make(); } catch (e) { return e.name; } })`,
    ['RangeError', 'RangeError', 'RangeError', 'SyntaxError'],
  ],
};

for (const [name, [source, expected]] of Object.entries(CASES)) {
  test(name, { timeout: 60_000 }, async () => {
    const { status, result, error, reports, logs } = await runCode(source, {
      language: 'javascript',
      memoryLimitBytes: 64 << 20,
      report: () => {},
      globals: {
        host: (x) => x,
        later: async () => 1,
        fail: () => {
          throw new TypeError('host');
        },
        laterFail: async () => {
          throw new Error('host');
        },
      },
    });
    assert.deepEqual({ status, result, error }, { status: 'success', result: expected, error: undefined });
    assert.ok(!reports.includes('object'), 'a hook was called');
    assert.ok(!/file:|node:|\.mjs/.test(JSON.stringify(logs)));
  });
}
