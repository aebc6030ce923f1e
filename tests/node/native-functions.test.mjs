// Functions that are answered in Rust, handed over beside JavaScript's own.

import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';

import { runCode } from '../isolation.mjs';

const require = createRequire(import.meta.url);
const { kitFunction } = require('../../bindings-node/dist/crossing/native-functions.js');

const [atob, btoa, delay] = ['atob', 'btoa', 'delay'].map(kitFunction);

async function run(source, globals) {
  const { status, result, error } = await runCode(source, { globals });
  assert.equal(status, 'success', error?.message);
  return result;
}

test('they answer in Rust', async () => {
  const source = "export default [btoa('abc'), atob(btoa('abc')), btoa.name, btoa('a') instanceof Promise]";
  assert.deepEqual(await run(source, { atob, btoa }), ['YWJj', 'abc', 'btoa', false]);
});

test('promises are awaited beside those of JavaScript', async () => {
  const source = `const p = delay(1);
    export default [p instanceof Promise, await p === undefined, await own(4), btoa('a')]`;
  const own = async (n) => n * 2;
  assert.deepEqual(await run(source, { delay, own, btoa }), [true, true, 8, 'YQ==']);
});

test('they come back as themselves and cross in answers', async () => {
  const seen = [];
  const source = `take(btoa); take([delay]);
    export default [give() === btoa, give()('a'), await (await later())(1)]`;
  const globals = { take: (value) => void seen.push(value), give: () => btoa, later: async () => delay, btoa, delay };
  assert.deepEqual(await run(source, globals), [true, 'YQ==', undefined]);
  assert.equal(seen[0], btoa);
  assert.equal(seen[1][0], delay);
});

test('one that is handed over later alone works too', async () => {
  assert.equal(await run("export default give()('a')", { give: () => btoa }), 'YQ==');
});

test('errors are thrown inside', async () => {
  const source = "let name; try { atob('*') } catch (e) { name = e.name } export default name";
  assert.equal(await run(source, { atob }), 'InvalidCharacterError');
});

test('a wait ends with its run and keeps no process alive', async () => {
  const execution = runCode('export default await delay(30_000)', { globals: { delay } });
  await wait(20);
  execution.terminate();
  assert.equal((await execution).status, 'terminated');
});

test('an imitation of one is none', async () => {
  const fake = Object.create(Object.getPrototypeOf(btoa));
  await assert.rejects(async () => runCode('export default 1', { globals: { fake } }), { name: 'SerializationError' });
});
