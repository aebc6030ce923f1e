// The handle: a thenable that never rejects, ends a run on request, and shows its reports.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { runCode } from '../isolation.mjs';

const FOREVER = 'await new Promise(() => {}); export default 1;';
const never = () => new Promise(() => {});

test('a handle is a thenable that can be awaited twice', async () => {
  const handle = runCode('export default { a: 1 }');
  assert.equal(handle.running, true);
  const [first, second] = await Promise.all([handle, handle]);
  assert.equal(first, second);
  assert.equal(await handle, first);
  assert.equal(handle.running, false);
  assert.equal(await handle.then((result) => result.status), 'success');
});

test('a handle has catch and finally, and never rejects', async () => {
  let settled = 0;
  const result = await runCode('throw new TypeError("no")')
    .finally(() => { settled += 1; })
    .catch(() => assert.fail('a handle rejected'));
  assert.equal(settled, 1);
  assert.equal(result.status, 'error');
  assert.equal(result.error.name, 'TypeError');
});

test('a result has exactly the fields of its status', async () => {
  const began = performance.now();
  const success = await runCode('export default undefined');
  const tookMs = performance.now() - began;
  assert.deepStrictEqual(Object.keys(success), ['status', 'result', 'reports', 'logs', 'durationMs', 'memoryUsedBytes']);
  assert.deepStrictEqual([success.result, success.reports, success.logs], [undefined, [], []]);
  // A part of what the caller saw; a millisecond for the two clocks.
  assert.ok(success.durationMs > 0 && success.durationMs <= tookMs + 1, `${success.durationMs}`);
  const failure = await runCode('throw new Error("x")');
  assert.deepStrictEqual(Object.keys(failure), ['status', 'reports', 'logs', 'error', 'durationMs', 'memoryUsedBytes']);
  assert.ok(!Object.values(failure.error).includes(undefined));
});

test('terminate is idempotent and never throws, with any reason', async () => {
  const hostile = { toString() { throw new Error('hostile'); }, get [Symbol.toPrimitive]() { throw new Error('hostile'); } };
  for (const [reason, message] of [
    [undefined, 'terminated by the caller'],
    ['why', 'why'],
    ['', ''],
    [null, 'null'],
    [7, '7'],
    [Symbol('s'), 'Symbol(s)'],
    [new Error('budget'), 'Error: budget'],
    [hostile, 'a reason of type object'],
    [Object.create(null), 'a reason of type object'],
  ]) {
    const handle = runCode(FOREVER, { globals: { never } });
    handle.terminate(reason);
    handle.terminate('a later reason');
    const result = await handle;
    assert.deepStrictEqual([result.status, result.error.name, result.error.message], ['terminated', 'Terminated', message]);
    handle.terminate('after the end');
  }
});

test('terminate works while a loop computes and while a host function is being awaited', async () => {
  const looping = runCode('for (;;) {}');
  setTimeout(() => looping.terminate('loop'), 20);
  assert.equal((await looping).error.message, 'loop');
  const waiting = runCode('await never(); export default 1', { globals: { never } });
  setTimeout(() => waiting.terminate('wait'), 20);
  assert.equal((await waiting).error.message, 'wait');
});

test('a run that was ended while it waited has its peak of memory', async () => {
  const source = 'const bytes = new Uint8Array(2e6); await stop(); export default bytes;';
  const handle = runCode(source, { globals: { stop: async () => { handle.terminate(); await never(); } } });
  const waiting = runCode(source, { globals: { stop: () => { setTimeout(() => waiting.terminate(), 20); return never(); } } });
  for (const result of [await handle, await waiting]) {
    assert.equal(result.status, 'terminated');
    assert.ok(result.memoryUsedBytes > 2e6 && result.memoryUsedBytes < 6e6, `${result.memoryUsedBytes}`);
  }
});

test('no host function starts once terminate was called', async () => {
  const calls = [];
  const handle = runCode('for (let i = 0; ; i++) call(i)', {
    globals: {
      call(i) {
        calls.push(i);
        if (i === 3) handle.terminate('enough');
      },
    },
  });
  const { status } = await handle;
  assert.deepStrictEqual([status, calls], ['terminated', [0, 1, 2, 3]]);
});

test('reports are the values that the sink got, in arrays of the caller’s own', async () => {
  const seen = [];
  let handle;
  const sink = (value) => {
    seen.push(value);
    assert.equal(handle.reports.at(-1), value);
    handle.reports.length = 0;
    handle.reports.push('mine');
  };
  handle = runCode('for (let i = 0; i < 5; i++) report({ i }); export default report.name', { report: sink });
  const result = await handle;
  assert.deepStrictEqual(seen, [0, 1, 2, 3, 4].map((i) => ({ i })));
  assert.ok(result.reports.every((value, i) => value === seen[i]));
  assert.ok(handle.reports.every((value, i) => value === seen[i]));
  assert.notEqual(handle.reports, handle.reports);
  result.reports.push('mine');
  assert.equal(handle.reports.length, 5);
});

test('report returns the result of its sink, or throws its error', async () => {
  const { result, reports } = await runCode(
    `const out = [report(1), await report(2)];
     try { report(3) } catch (error) { out.push(error.message) }
     export default out`,
    { report: (n) => { if (n === 3) throw new Error('sink'); return n === 2 ? Promise.resolve('later') : 'now'; } },
  );
  assert.deepStrictEqual(result, ['now', 'later', 'sink']);
  assert.deepStrictEqual(reports, [1, 2, 3]);
});
