// The bounds of the messages that name expressions: what is read again for them, and what never runs.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { runCode } from '../isolation.mjs';

const KIB = 1024;
const run = (source, options) => runCode(source, { language: 'javascript', ...options });
const missing = 'const order = { id: 1 };\norder.lines.length;';

test('a long source keeps the messages of the engine, at the line of the failure', async () => {
  const padded = (bytes) => `${missing}\n${'// filler\n'.repeat(Math.ceil(bytes / 10))}`;
  const short = await run(padded(28 * KIB));
  assert.match(short.error.message, /order\.lines is undefined; order has: id/);
  const long = await run(padded(36 * KIB));
  assert.equal(long.error.message, "cannot read property 'length' of undefined");
  assert.equal(long.error.line, 2);
});

test('a run reads at most 4 MiB of text again', async () => {
  const places = Array.from({ length: 300 }, (_, index) => `() => row.a${index}.x`);
  const source = `
    const row = { id: 1 };
    export default [${places}].map((fail) => {
      try { return fail(); } catch (error) { return error.message.includes('row has'); }
    });
    ${'// filler\n'.repeat(2 * KIB)}`;
  const { result } = await run(source);
  assert.deepEqual([result[0], result.at(-1)], [true, false]);
  const named = result.filter(Boolean).length;
  assert(named > 50 && named <= (4 * KIB * KIB) / source.length, `${named} messages`);
});

test('a message is made on a full stack, and near the limit of memory', async () => {
  const deep = await run(`
    const row = {};
    const fall = () => { try { fall(); } finally { row.a.b; } };
    fall();`);
  assert.equal(deep.status, 'error');
  const full = await run(
    `const kept = []; for (;;) { kept.push('x'.repeat(1000)); try { kept.row.id; } catch {} }`,
    { memoryLimitBytes: 2 * KIB * KIB },
  );
  assert.equal(full.status, 'memory');
});

test('errors of every kind of frame have their place', async () => {
  const frames = {
    generator: 'function* rows() { yield 1; none.x; }\nexport default [...rows()];',
    'async function': 'const f = async () => { await null; none.x; };\nexport default await f();',
    'async generator': 'async function* rows() { yield 1; none.x; }\nfor await (const row of rows()) row;',
    'class field': 'class A { rows = none.x; }\nnew A();',
    'static block': 'class A { static { none.x; } }',
    'computed key': 'const a = { [none.x]: 1 };',
    'default of a parameter': 'const f = (a = none.x) => a;\nf();',
    getter: 'const a = { get b() { return none.x; } };\na.b;',
    'callback of a builtin': '[1].map(() => none.x);',
    comparison: '[2, 1].sort(() => none.x);',
    reviver: "JSON.parse('[1]', () => none.x);",
    'trap of a Proxy': 'new Proxy({}, { get: () => none.x }).a;',
    'conversion to text': '`${{ toString: () => none.x }}`;',
    iterator: 'for (const a of { [Symbol.iterator]: () => none.x }) a;',
    job: 'export default await Promise.resolve().then(() => none.x);',
    'dynamic import': "export default await import('./b.js');",
  };
  for (const [name, source] of Object.entries(frames)) {
    const text = `const none = undefined; ${source}`;
    const { error } = await run(text, { modules: { './b.js': 'const none = undefined; none.x;' } });
    const at = name === 'dynamic import' ? [1, 30] : [1, text.split('\n')[0].indexOf('none.x') + 6];
    assert.equal(error?.message, "cannot read property 'x' of undefined (none is undefined)", name);
    assert.deepEqual([error.line, error.column], at, name);
  }
});
