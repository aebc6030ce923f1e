// Misuse that only JavaScript can commit; the rest is in the contract table.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Runtime as Plain } from 'isolane';

import { Runtime, SerializationError, runCode } from '../isolation.mjs';

test('options of the wrong type throw before anything starts', () => {
  const source = 'export default 1';
  for (const [options, message] of [
    [null, 'options must be an object, got null'],
    [[], 'options must be an object, got an array'],
    [{ execute: 'default' }, "execute must be an object, got 'default'"],
    [{ execute: { fn: 1 } }, 'execute.fn must be a string, got a number'],
    [{ execute: { args: new Set() } }, 'execute.args must be an array, got an instance of Set'],
    [{ execute: { arg: [] } }, "unknown option 'execute.arg'; did you mean 'execute.args'?"],
    [{ imports: { fs: [] } }, 'imports.fs must be an object, got an array'],
    [{ imports: { '@a/b': () => 1 } }, 'imports["@a/b"] must be an object, got a function'],
    [{ modules: { './a.js': 1 } }, 'modules["./a.js"] must be a string, got a number'],
    [{ globals: [] }, 'globals must be an object, got an array'],
    [Promise.resolve({}), 'options must be an object, got an instance of Promise'],
    [{ globals: new Map([['a', 1]]) }, 'globals must be an object, got an instance of Map'],
    [{ imports: { m: new Date(0) } }, 'imports.m must be an object, got an instance of Date'],
    [{ modules: new WeakMap() }, 'modules must be an object, got a WeakMap'],
    [{ execute: new Uint8Array(1) }, 'execute must be an object, got an instance of Uint8Array'],
    [{ language: 'python' }, "language must be 'javascript' or 'typescript', got 'python'"],
    [{ memoryLimitBytes: '1' }, "memoryLimitBytes must be a number, got '1'"],
    [{ filename: 1n }, 'filename must be a string, got a bigint'],
    [{ report: true }, 'report must be a function, got a boolean'],
    [{ timeout: 1 }, /^unknown option 'timeout'; a run has no time limit of its own: call terminate/],
    [{ global: {} }, "unknown option 'global'; did you mean 'globals'?"],
  ]) {
    assert.throws(() => runCode(source, options), { name: 'TypeError', message });
  }
  assert.throws(() => runCode(1), { name: 'TypeError', message: 'source must be a string, got a number' });
  assert.throws(() => runCode(source, { memoryLimitBytes: NaN }), { name: 'RangeError' });
  assert.throws(() => new Plain(Promise.resolve({})), { name: 'TypeError', message: 'options must be an object, got an instance of Promise' });
  assert.throws(() => new Runtime({ isolation: 'vm' }), { name: 'TypeError', message: "isolation must be 'thread' or 'process', got 'vm'" });
  assert.throws(() => new Runtime({ safetyCap: 1 }), { name: 'TypeError', message: "unknown option 'safetyCap'; did you mean 'safetyCapMs'?" });
});

test('each option is read once, and the error that a getter throws is thrown', async () => {
  const reads = {};
  const counting = (values) =>
    Object.defineProperties({}, Object.fromEntries(Object.entries(values).map(([key, value]) => [
      key, { enumerable: true, get() { reads[key] = (reads[key] ?? 0) + 1; return value; } },
    ])));
  const { result } = await runCode(`import { b } from 'm'; import c from './c.js'; export default (d) => a + b + c + d`, counting({
    execute: counting({ fn: 'default', args: ['d'] }),
    imports: counting({ m: counting({ b: 'b' }) }),
    modules: counting({ './c.js': 'export default "c"' }),
    globals: counting({ a: 'a' }),
    language: 'javascript',
    memoryLimitBytes: 1e8,
    filename: 'main.js',
    report: () => {},
  }));
  assert.equal(result, 'abcd');
  assert.deepStrictEqual(new Set(Object.values(reads)), new Set([1]));
  const mine = new Error('mine');
  assert.throws(() => runCode('', { get globals() { throw mine; } }), (error) => error === mine);
  assert.throws(() => runCode('', { globals: { get a() { throw mine; } } }), (error) => error === mine);
});

test('a getter may start a run of its own', async () => {
  let inner;
  const outer = runCode('export default { a, b }', {
    globals: { a: 'x'.repeat(100), get b() { inner = runCode('export default a', { globals: { a: [1, 2, 3] } }); return 'y'; } },
  });
  assert.deepStrictEqual((await outer).result, { a: 'x'.repeat(100), b: 'y' });
  assert.deepStrictEqual((await inner).result, [1, 2, 3]);
});

test('a value that cannot be cloned is named with its place', () => {
  class Pool {}
  for (const [options, message] of [
    [{ globals: { db: { pool: new Pool() } } }, 'globals.db.pool: an instance of Pool cannot be cloned'],
    [{ imports: { fs: { readFile: Symbol('x') } } }, 'imports.fs.readFile: a symbol cannot be cloned'],
    [{ imports: { '@scope/pkg': { x: new WeakMap() } } }, 'imports["@scope/pkg"].x: a WeakMap cannot be cloned'],
    [{ execute: { args: [1, new Pool()] } }, 'execute.args[1]: an instance of Pool cannot be cloned'],
    [{ globals: new Proxy({}, {}) }, 'globals: a Proxy cannot be cloned'],
  ]) {
    assert.throws(() => runCode('export default 1', options), (error) => {
      assert.ok(error instanceof SerializationError && error instanceof TypeError);
      assert.deepStrictEqual([error.name, error.message], ['SerializationError', message]);
      return true;
    });
  }
});

test('a run that was refused leaves nothing behind', async () => {
  const rejected = Promise.reject(new Error('nobody looks'));
  assert.throws(() => runCode('1', { globals: { rejected, bad: Symbol('s') } }), SerializationError);
  await new Promise((resolve) => setImmediate(resolve));
});

test('options are never read from Object.prototype', async () => {
  const names = ['execute', 'imports', 'modules', 'globals', 'language', 'memoryLimitBytes', 'filename', 'report', 'fn', 'args', 'isolation', 'safetyCapMs'];
  for (const name of names) Object.prototype[name] = 'polluted';
  try {
    const options = new (class { get globals() { return { a: 1 }; } })();
    assert.equal((await runCode('export const f = () => a; export default 2', options)).result, 2);
    assert.equal((await runCode('export default 3', {})).result, 3);
    assert.equal((await runCode('export default a', options)).result, 1);
    assert.equal((await runCode('export const f = () => 4', { execute: { fn: 'f', __proto__: null }, __proto__: null })).result, 4);
    const runtime = new Runtime({ maxConcurrentRuns: 1 });
    assert.equal((await runtime.runCode('export default 5')).result, 5);
    await runtime.close();
  } finally {
    for (const name of names) delete Object.prototype[name];
  }
});

test('refusals come from no polluted prototype', () => {
  const polluted = { message: 'owned', kind: 'range', cause: { message: 'owned', number: 2 } };
  for (const [name, value] of Object.entries(polluted)) Object.defineProperty(Object.prototype, name, { value, configurable: true });
  let [opened, refused] = [];
  try {
    opened = new Plain();
    try {
      runCode('export default 1', { globals: { 'not a name': 1 } });
    } catch (error) {
      refused = error;
    }
  } finally {
    for (const name of Object.keys(polluted)) delete Object.prototype[name];
  }
  assert.ok(opened instanceof Plain);
  assert.ok(refused instanceof TypeError);
  assert.deepStrictEqual([refused.message.includes('not a name'), Object.hasOwn(refused, 'cause')], [true, false]);
});
