// Runs and the life of the process: handles that keep it alive, and its exit.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { test } from 'node:test';
import { Worker } from 'node:worker_threads';

import * as esm from 'isolane';

const CEILING_MS = 120_000;
const PARKED_RUNS = 10_000;

/** Runs a program in a process of its own. Returns its exit code and its output. */
function child(program, flags = []) {
  return new Promise((resolve) => {
    const args = [...flags, '--input-type=module', '-e', program];
    execFile(process.execPath, args, { cwd: new URL('../..', import.meta.url), timeout: CEILING_MS }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : (error.code ?? error.signal), stdout: stdout.trim(), stderr: stderr.trim() });
    });
  });
}

test('import and require give one and the same', () => {
  const cjs = createRequire(import.meta.url)('isolane');
  const errors = ['LinkError', 'MemoryLimitError', 'QueueFullError', 'RuntimeClosedError', 'SerializationError', 'StatusError', 'TerminatedError', 'UncaughtError'];
  assert.deepStrictEqual(Object.keys(cjs).sort(), ['Runtime', 'Session', ...errors, 'current', 'describe', 'runCode', 'unwrap'].sort());
  assert.deepStrictEqual({ ...esm }, { ...cjs });
  const { runCode } = cjs;
  assert.doesNotReject(async () => runCode('export default 1'));
});

test('a settled run does not keep the process alive, a pending one does', { timeout: CEILING_MS }, async () => {
  const settled = await child(`
    import { runCode } from 'isolane';
    console.log((await runCode('export default 1')).result);`);
  assert.deepStrictEqual(settled, { code: 0, stdout: '1', stderr: '' });
  const pending = await child(`
    import { runCode } from 'isolane';
    runCode('let n = 0; for (let i = 0; i < 3e6; i++) n++; export default n').then((r) => console.log(r.result));`);
  assert.deepStrictEqual(pending, { code: 0, stdout: '3000000', stderr: '' });
});

test('a process that ends with runs live neither hangs nor crashes', { timeout: CEILING_MS }, async () => {
  const start = `
    import { runCode } from 'isolane';
    const never = () => new Promise(() => {});
    for (let i = 0; i < 20; i++) {
      runCode('for (;;) {}');
      runCode('await never()', { globals: { never } });
      runCode('for (;;) tick()', { globals: { tick() {} } });
    }`;
  for (const end of ['process.exit(7)', 'setTimeout(() => process.exit(7), 50)', 'setTimeout(() => { throw new Error("out") }, 50)']) {
    const { code, stderr } = await child(`${start}${end}`);
    assert.equal(code, end.includes('throw') ? 1 : 7, stderr);
  }
});

test('a worker thread has runs of its own, and may be ended while they are pending', { timeout: CEILING_MS }, async () => {
  const program = `
    const { parentPort } = require('node:worker_threads');
    const { runCode } = require('isolane');
    const never = () => new Promise(() => {});
    runCode('export default f(20)', { globals: { f: (n) => n + 1 } }).then(({ result }) => {
      for (let i = 0; i < 10; i++) {
        runCode('for (;;) {}');
        runCode('await never()', { globals: { never } });
        runCode('for (;;) tick()', { globals: { tick() {} } });
        runCode('for (;;) await tick()', { globals: { async tick() {} } });
      }
      setTimeout(() => parentPort.postMessage(result), 20);
    });`;
  for (let round = 0; round < 5; round += 1) {
    const worker = new Worker(program, { eval: true });
    const result = await new Promise((resolve, reject) => worker.once('message', resolve).once('error', reject));
    assert.equal(result, 21);
    await worker.terminate();
  }
  const { result } = await esm.runCode('export default "still here"');
  assert.equal(result, 'still here');
});

test('a worker that is done ends by itself', { timeout: CEILING_MS }, async () => {
  const worker = new Worker(`require('isolane').runCode('export default 1')`, { eval: true });
  assert.equal(await new Promise((resolve) => worker.once('exit', resolve)), 0);
});

test('thousands of runs that wait for their host hold few threads', { timeout: 120_000, skip: process.platform !== 'linux' }, async () => {
  let waiting = 0;
  let release;
  const gate = new Promise((resolve) => { release = resolve; });
  const handles = Array.from({ length: PARKED_RUNS }, (_, i) =>
    esm.runCode('await wait(); export default i', { globals: { i, wait: () => { waiting += 1; return gate; } } }));
  while (waiting < PARKED_RUNS) await new Promise((resolve) => setImmediate(resolve));
  // On a slow machine some runs took so long that they yielded, which takes threads for that time.
  while (readdirSync('/proc/self/task').length >= 100) await new Promise((resolve) => setTimeout(resolve, 10));
  release();
  const results = await Promise.all(handles);
  assert.deepStrictEqual(results.map(({ result }) => result), Array.from({ length: PARKED_RUNS }, (_, i) => i));
});
