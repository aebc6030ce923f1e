// Asynchronous functions of the host, for whose start the sandbox does not wait.

import assert from 'node:assert/strict';
import { AsyncLocalStorage } from 'node:async_hooks';
import { test } from 'node:test';

import { runCode } from '../isolation.mjs';

const CEILING_MS = 120_000;

/** Runs a program with these globals. Returns its result and the arguments of their calls, in order. */
async function calls(source, globals, options = {}) {
  const seen = [];
  const note = (f) => (f.constructor.name === 'AsyncFunction' ? async (...args) => (seen.push(args), f(...args)) : (...args) => (seen.push(args), f(...args)));
  const noted = Object.fromEntries(Object.entries(globals).map(([name, f]) => [name, note(f)]));
  const outcome = await runCode(source, { globals: noted, ...options });
  return { outcome, seen, atSettlement: seen.length };
}

test('calls that nobody awaits have all started when the run settles', { timeout: CEILING_MS }, async () => {
  for (const end of ['export default 1', 'throw new Error("over")']) {
    const { atSettlement } = await calls(`for (let i = 0; i < 1000; i += 1) f(i); ${end}`, { f: async () => {} });
    assert.equal(atSettlement, 1000);
  }
});

test('they start in the order of the calls, among those of other functions', { timeout: CEILING_MS }, async () => {
  const source = 'for (let i = 0; i < 600; i += 3) { f(i); f(i + 1); g(i + 2) } export default 1';
  const { seen } = await calls(source, { f: async () => {}, g: () => {} });
  assert.deepEqual(seen.flat(), Array.from({ length: 600 }, (_, i) => i));
});

test('each call has its own outcome, in any order', { timeout: CEILING_MS }, async () => {
  const late = async (n) => {
    await new Promise((resolve) => setTimeout(resolve, 20 - n));
    if (n % 2 === 1) throw new RangeError(`no ${n}`);
    return { n };
  };
  const source = `const all = await Promise.allSettled(Array.from({ length: 20 }, (_, i) => late(i)));
    export default all.map(({ value, reason }) => value?.n ?? [reason instanceof RangeError, reason.message])`;
  const { outcome } = await calls(source, { late });
  assert.deepEqual(outcome.result, Array.from({ length: 20 }, (_, i) => (i % 2 === 1 ? [true, `no ${i}`] : i)));
});

test('none starts once the run was told to end', { timeout: CEILING_MS }, async () => {
  let started = 0;
  const handle = runCode('for (;;) { f(); g() }', {
    globals: { f: async () => { started += 1; }, g: () => handle.terminate() },
  });
  assert.equal((await handle).status, 'terminated');
  assert.equal(started, 1);
});

test('arguments that cannot be cloned are thrown at the call', { timeout: CEILING_MS }, async () => {
  const source = 'let name; try { f(Symbol()) } catch (error) { name = error.name } export default name';
  const { outcome, seen } = await calls(source, { f: async () => {} });
  assert.deepEqual([outcome.result, seen.length], ['SerializationError', 0]);
});

test('such a function comes back as itself, and its promise may cross again', { timeout: CEILING_MS }, async () => {
  const f = async () => 'came';
  const source = 'export default [same(f), await g(f()), f.name, f.length]';
  const outcome = await runCode(source, { globals: { f, same: (x) => x === f, g: async (x) => x } });
  assert.deepEqual(outcome.result, [true, 'came', 'f', 0]);
});

test('they run in the context of the runCode call', { timeout: CEILING_MS }, async () => {
  const storage = new AsyncLocalStorage();
  const outcome = await storage.run('mine', () =>
    runCode('export default await f()', { globals: { f: async () => storage.getStore() } }));
  assert.equal(outcome.result, 'mine');
});

test('a flood of them is held by the memory limit, large arguments and small', { timeout: CEILING_MS }, async () => {
  for (const argument of ['1', "'x'.repeat(10_000)", "'x'.repeat(100_000)"]) {
    const { outcome } = await calls(`for (;;) f(${argument})`, { f: () => new Promise(() => {}) }, { memoryLimitBytes: 8 << 20 });
    assert.equal(outcome.status, 'memory', argument);
    const later = await runCode(`for (;;) f(${argument})`, { globals: { f: async () => new Promise(() => {}) }, memoryLimitBytes: 8 << 20 });
    assert.equal(later.status, 'memory', argument);
  }
});
