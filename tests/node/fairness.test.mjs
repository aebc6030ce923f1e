// Fairness of a sandbox that computes, or sends a lot, to other runs and to the host's event loop.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Runtime } from '../isolation.mjs';

const COUNT = 20_000;
const FLOOD = `take(Array.from({ length: ${COUNT} }, (_, i) => Promise.resolve(i))); await go(); export default 'over';`;

/** A run that hands over promises by the thousand, and the number that has arrived. */
function flood(runtime) {
  const heard = { promises: 0, turns: 0, first: undefined };
  const began = new Promise((resolve) => { heard.first = resolve; });
  let over = false;
  const turn = () => {
    heard.turns += 1;
    if (!over) setImmediate(turn);
  };
  const take = (promises) => {
    for (const promise of promises) {
      promise.then(() => {
        if (heard.promises === 0) setImmediate(turn);
        heard.promises += 1;
        heard.first();
        over = heard.promises === COUNT;
      }, () => { over = true; });
    }
  };
  let go;
  let ask;
  const asked = new Promise((resolve) => { ask = resolve; });
  const run = runtime.runCode(FLOOD, { globals: { take, go: () => new Promise((resolve) => { go = resolve; ask(); }) } });
  return { run, heard, began, asked, go: () => go() };
}

for (const [name, source] of [['loops', 'for (;;);'], ['sync calls', 'for (;;) f();'], ['async calls', 'for (;;) await g();'], ['reports', 'for (;;) report(1);'], ['logs', 'for (let i = 0; ; i += 1) if (i % 1e4 === 0) console.log(i);']]) {
  test(`64 runs that spin with ${name} keep no other from its result`, async () => {
    const runtime = new Runtime();
    const given = { globals: { f: () => 1, g: async () => 1 }, ...(name === 'reports' && { report: () => {} }) };
    const spinning = Array.from({ length: 64 }, () => runtime.runCode(source, given));
    for (let i = 0; i < 5; i += 1) {
      const { result } = await runtime.runCode('let sum = 0; for (let i = 0; i < 3; i += 1) sum += f() + await g(); export default sum;', given);
      assert.equal(result, 6);
    }
    assert.ok(spinning.every(({ running }) => running));
    await runtime.close();
    for (const { status } of await Promise.all(spinning)) assert.equal(status, 'terminated');
  });
}

test('one that settles promises by the thousand leaves the event loop its turns', async () => {
  const runtime = new Runtime();
  const { run, heard, began, asked, go } = flood(runtime);
  await began;
  // Another run is handled before all of them.
  const other = runtime.runCode('export default 1');
  // The loop has no turn until the other run is over.
  while (runtime.stats().settled.success < 1);
  assert.equal((await other).result, 1);
  assert.ok(heard.promises < COUNT, `${heard.promises}`);
  await asked;
  go();
  assert.equal((await run).result, 'over');
  assert.equal(heard.promises, COUNT);
  assert.ok(heard.turns > COUNT / 1_000, `${heard.turns} turns of the event loop`);
  await runtime.close();
});

test('one that has told a lot is ended before all of that is heard', async () => {
  const runtime = new Runtime();
  const { run, heard, began } = flood(runtime);
  await began;
  run.terminate('enough');
  assert.equal((await run).error.message, 'enough');
  assert.ok(heard.promises < COUNT, `${heard.promises}`);
  await runtime.close();
});

test('a queue of thousands is ended at once, and has room again', async () => {
  const runtime = new Runtime({ maxConcurrentRuns: 1, maxQueuedRuns: 3_000 });
  const runs = [];
  assert.throws(() => { for (;;) runs.push(runtime.runCode('for (;;);')); }, /3000 runs are queued/);
  assert.ok(runtime.stats().queued >= 2_999, `${runtime.stats().queued}`);
  for (const run of runs) run.terminate('enough');
  for (const { status, error } of await Promise.all(runs)) assert.deepStrictEqual([status, error.message], ['terminated', 'enough']);
  assert.equal((await runtime.runCode('export default 1')).result, 1);
  assert.equal(runtime.stats().queued, 0);
  await runtime.close();
});
