// Errors keep their causes: the `cause` of a run's error and of the exception that `unwrap` throws.

import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { inspect } from 'node:util';
import { setFlagsFromString } from 'node:v8';
import vm from 'node:vm';

import * as isolane from 'isolane';

import { SerializationError, runCode, unwrap } from '../isolation.mjs';

const require = createRequire(import.meta.url);
const { kitFunction } = require('../../bindings-node/dist/crossing/native-functions.js');

const CEILING_MS = 120_000;
const LARGE = 1 << 17;

class Broken extends Error {}

/** The host's side of a case: it throws `made`. */
function host(made) {
  const fail = () => {
    throw made();
  };
  const failLater = async () => fail();
  const rejected = Promise.reject(made());
  rejected.catch(() => {});
  return {
    fail,
    failLater,
    failSoon: () => new Promise((_, reject) => setTimeout(() => reject(made()), 1)),
    thenable: () => ({ then: (_, reject) => reject(made()) }),
    rejected,
    fine() {},
    each: async (f) => void (await f()),
    deep: { fail },
    native: kitFunction('atob'),
  };
}

/** Sources that end by the last thing that the host threw. */
const CAUSED = [
  'fail()',
  'deep.fail()',
  'await failLater()',
  'await failSoon()',
  'await thenable()',
  'await rejected',
  'report(1)',
  'export default failSoon()',
  'export default () => fail()',
  'try { native("*") } catch {} try { fail() } catch {} try { native("*") } catch {} fail()',
  `fail('x'.repeat(${LARGE}))`,
  `await failLater('x'.repeat(${LARGE}))`,
  'for (let i = 0; i < 100; i++) try { fail() } catch {} fail()',
  'fine(); try { fail() } catch (e) { fine(); await null; e.message = "said otherwise"; throw e }',
  'const { f } = { get f() { return fail() } }; f',
  'fine({ get f() { return fail() } })',
  'let kept; try { fail() } catch (e) { kept = e } fine("small"); await each(() => 1); fine(); throw kept',
];

/** Sources that end by something else. */
const UNCAUSED = [
  'throw new Error("over")',
  'try { fail() } catch (e) { throw new Error(e.message) }',
  'try { fail() } catch (e) { throw { name: e.name, message: e.message } }',
  'const kept = []; for (let i = 0; i < 9; i++) try { fail() } catch (e) { kept.push(e) } throw kept[0]',
  // After a large message only the latest is kept, until the next call.
  `try { fail('x'.repeat(${LARGE})) } catch (e) { fine(); throw e }`,
  `let kept; try { fail() } catch (e) { kept = e } fine(new Uint8Array(${LARGE})); throw kept`,
  `let kept; try { fail() } catch (e) { kept = e } fine(new Uint8Array(${LARGE})); fine(); throw kept`,
  `let kept; try { fail() } catch (e) { kept = e } await each(() => new Uint8Array(${LARGE})); fine(); throw kept`,
  `let kept; try { fail() } catch (e) { kept = e } await each(() => 'x'.repeat(${LARGE})); try { fail() } catch {} throw kept`,
  'import "nowhere"',
  'native("*")',
  'try { fail() } catch {} native("*")',
  'report(() => {})',
];

const THROWN = [
  ['an error', () => new Broken('over')],
  ['a built-in error', () => new RangeError('over', { cause: new Error('inner') })],
  ['a plain object', () => ({ message: 'over' })],
  ['an array', () => ['over']],
  ['a function', () => () => 'over'],
  ['what cannot cross', () => new (class Pool {})()],
];

async function failed(source, made) {
  let last;
  const remember = () => (last = made());
  const globals = host(remember);
  if (source === 'await rejected') globals.rejected.catch((reason) => (last = reason));
  const report = globals.fail;
  const result = await runCode(source, { globals, report });
  assert.equal(result.status, source.startsWith('import') ? 'link_error' : 'error', source);
  return { result, last };
}

for (const source of CAUSED) {
  test(`caused: ${source}`, { timeout: CEILING_MS }, async () => {
    const { result, last } = await failed(source, () => new Broken('over'));
    assert.ok(last instanceof Broken);
    assert.equal(result.error.cause, last);
    assert.throws(() => unwrap(result), (error) => error.cause === last);
  });
}

for (const source of UNCAUSED) {
  test(`not caused: ${source}`, { timeout: CEILING_MS }, async () => {
    const { result } = await failed(source, () => new Broken('over'));
    assert.ok(!Object.hasOwn(result.error, 'cause'), inspect(result.error.cause));
    assert.throws(() => unwrap(result), (error) => !Object.hasOwn(error, 'cause'));
  });
}

for (const [what, made] of THROWN) {
  test(`thrown: ${what}`, { timeout: CEILING_MS }, async () => {
    const { result, last } = await failed('fail()', made);
    if (what === 'what cannot cross') {
      assert.ok(result.error.cause instanceof SerializationError);
      assert.equal(result.error.cause.message, 'error: an instance of Pool cannot be cloned');
    } else {
      assert.equal(result.error.cause, last);
    }
  });
}

test('a primitive has no identity', { timeout: CEILING_MS }, async () => {
  for (const primitive of ['over', 7, null, undefined]) {
    const { result } = await failed('fail()', () => primitive);
    assert.ok(!Object.hasOwn(result.error, 'cause'));
  }
});

test('a function result that cannot be cloned is the cause, and so is an error that a getter of it throws', { timeout: CEILING_MS }, async () => {
  const thrown = new Broken('in a getter');
  const getter = await runCode('give()', { globals: { give: () => ({ get a() { throw thrown; } }) } });
  assert.equal(getter.error.cause, thrown);
  const refused = await runCode('give()', { globals: { give: () => new WeakMap() } });
  assert.ok(refused.error.cause instanceof SerializationError);
  assert.equal(refused.error.message, refused.error.cause.message);
});

test('no copy of a result has it, and nothing that compares or prints results sees it', { timeout: CEILING_MS }, async () => {
  const { result } = await failed('fail()', () => new Broken('over'));
  assert.ok(!Object.keys(result.error).includes('cause'));
  for (const copy of [structuredClone(result), JSON.parse(JSON.stringify(result))]) {
    assert.deepStrictEqual(copy.error, { ...result.error });
    assert.throws(() => unwrap(copy), (error) => !Object.hasOwn(error, 'cause'));
  }
});

test('nothing of a cause reaches the sandbox', { timeout: CEILING_MS }, async () => {
  const globals = { fail() { throw new Broken('over', { cause: new Error('inner') }); } };
  const source = `
    let shown;
    try { fail() } catch (e) { shown = [Reflect.ownKeys(e).filter((key) => key !== 'stack').map(String).sort().join(), 'cause' in e] }
    export default shown`;
  const { result } = await runCode(source, { globals });
  assert.deepStrictEqual(result, ['message', false]);
});

test('exceptions keep no more than one large value alive', { timeout: CEILING_MS }, async () => {
  setFlagsFromString('--expose-gc');
  const gc = vm.runInNewContext('gc');
  let alive = 0;
  let most = 0;
  const registry = new FinalizationRegistry(() => { alive -= 1; });
  const each = async (f) => {
    const value = await f();
    alive += 1;
    registry.register(value);
    throw Object.assign(new Error('over'), { value });
  };
  const count = async () => {
    for (let turn = 0; turn < 1_000 && alive > 1; turn += 1) {
      gc();
      await new Promise((resolve) => setImmediate(resolve));
    }
    most = Math.max(most, alive);
  };
  const source = `for (let i = 0; i < 12; i++) {
    try { await each(() => new Uint8Array(${LARGE})) } catch {}
    await count();
  }
  export default 1`;
  assert.equal((await runCode(source, { globals: { each, count } })).status, 'success');
  assert.ok(most <= 1, `${most} are alive`);
});

test('a worker that cannot be started', { timeout: CEILING_MS }, async () => {
  const runtime = new isolane.Runtime({ isolation: 'process', worker: fileURLToPath(import.meta.url) });
  const result = await runtime.runCode('export default 1');
  assert.equal(result.error.name, 'WorkerLost');
  assert.ok(result.error.cause instanceof Error);
  assert.equal(result.error.cause.code, 'EACCES');
  assert.throws(() => unwrap(result), (error) => error.cause === result.error.cause);
  await runtime.close();
  const missing = () => new isolane.Runtime({ isolation: 'process', worker: '/nowhere/isolane-worker' });
  assert.throws(missing, (error) => error instanceof TypeError && error.cause.code === 'ENOENT');
});
