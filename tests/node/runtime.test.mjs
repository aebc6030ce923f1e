// Runtimes of the caller's own.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as after } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import vm from 'node:vm';

import { QueueFullError, RuntimeClosedError } from 'isolane';

import { Runtime, ofThreads, runCode } from '../isolation.mjs';

test('a runtime runs code, counts it, and closes', async () => {
  const runtime = new Runtime({ maxConcurrentRuns: 2 });
  const { runCode } = runtime;
  assert.equal((await runCode('export default 1')).result, 1);
  const live = runCode('for (;;) {}');
  const parked = runCode('await never()', { globals: { never: () => new Promise(() => {}) } });
  const closed = runtime.close();
  assert.equal(runtime.close(), closed);
  for (const start of [runCode, () => runtime.session()]) {
    assert.throws(() => start('export default 1'), (error) => {
      assert.ok(error instanceof RuntimeClosedError);
      assert.deepStrictEqual([error.name, error.code, error.message], ['RuntimeClosedError', 'RUNTIME_CLOSED', 'the runtime is closed']);
      return true;
    });
  }
  for (const { status, error } of await Promise.all([live, parked])) {
    assert.deepStrictEqual([status, error.name, error.message], ['terminated', 'Terminated', 'runtime closed']);
  }
  assert.equal(await closed, undefined);
  const { settled, computing, parked: waiting, queued } = runtime.stats();
  assert.deepStrictEqual([settled.success, settled.terminated, computing, waiting, queued], [1, 2, 0, 0, 0]);
});

test('the cap on CPU time ends a run and says so', async () => {
  const runtime = new Runtime({ safetyCapMs: 50 });
  const { status, error } = await runtime.runCode('for (;;) {}');
  assert.deepStrictEqual([status, error.name], ['terminated', 'SafetyCap']);
  await runtime.close();
});

test('modules that are too large for the cache are counted', { skip: ofThreads }, async () => {
  const runtime = new Runtime({ compileCacheBytes: 8000 });
  const large = `'${'a'.repeat(8000)}'; export default 1`;
  for (const source of ['export default 1', large, large]) assert.equal((await runtime.runCode(source)).result, 1);
  const { uncachedModules, compileCacheBytes } = runtime.stats();
  assert.equal(uncachedModules, 2);
  assert.ok(compileCacheBytes > 0 && compileCacheBytes < 8000, `${compileCacheBytes}`);
  await runtime.close();
});

test('with as many stuck threads as there may be, runs are ended until one comes back', { skip: ofThreads }, async () => {
  const runtime = new Runtime({ maxStuckThreads: 1 });
  assert.throws(() => new Runtime({ maxStuckThreads: 0 }), RangeError);
  let tell;
  const begun = new Promise((resolve) => { tell = resolve; });
  const slow = runtime.runCode('begun(); Array.prototype.reverse.call({ length: 2e8 })', { globals: { begun: () => tell() } });
  await begun;
  await after(20);
  slow.terminate();
  assert.equal((await slow).status, 'terminated');
  assert.equal(runtime.stats().stuckThreads, 1);
  assert.equal((await runtime.runCode('export default 1')).error.name, 'SafetyCap');
  while (runtime.stats().stuckThreads > 0) await after(5);
  assert.equal((await runtime.runCode('export default 1')).result, 1);
  await runtime.close();
});

test('a run keeps its runtime until it has settled', { timeout: 60_000 }, async () => {
  setFlagsFromString('--expose-gc');
  const gc = vm.runInNewContext('gc');
  const work = async () => {
    for (let turn = 0; turn < 10; turn += 1) {
      await after(2);
      gc();
    }
    return 1;
  };
  const start = () => new Runtime().runCode('export default await work()', { globals: { work } });
  for (const { status, error } of await Promise.all([start(), start(), start()])) assert.equal(status, 'success', error?.message);
});

test('timers that a test has replaced do not stop runs', { timeout: 60_000 }, async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout', 'setInterval', 'setImmediate'] });
  const { result } = await runCode('export default [await later(), [...Array(1e5).keys()].length]', { globals: { later: async () => 1 } });
  t.mock.timers.reset();
  assert.deepEqual(result, [1, 1e5]);
  assert.equal((await runCode('export default 1')).result, 1);
});

test('beyond the queue’s length runCode throws', async () => {
  const runtime = new Runtime({ maxConcurrentRuns: 1, maxQueuedRuns: 1 });
  const live = [];
  assert.throws(() => { for (let i = 0; i < 10; i += 1) live.push(runtime.runCode('for (;;) {}')); }, (error) => {
    assert.ok(error instanceof QueueFullError);
    assert.deepStrictEqual([error.name, error.code, error.message], ['QueueFullError', 'QUEUE_FULL', '1 runs are queued, as many as the runtime allows']);
    assert.deepStrictEqual(Object.keys(error), []);
    return true;
  });
  assert.ok(live.length >= 1 && live.length <= 3);
  await runtime.close();
});
