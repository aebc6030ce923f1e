// Features of isolation by process alone: workers that can be seen, killed and outlived.
//
// Each test waits for an event, and has a time limit.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { setTimeout as after } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Worker } from 'node:worker_threads';

import { Runtime } from 'isolane';

import { alive, descendants, workersOf } from '../processes.mjs';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const WORKER = join(ROOT, 'bindings-node/isolane-worker');
const LONG = 'Array.prototype.reverse.call({ length: 2 ** 53 })';
const options = { timeout: 120_000, skip: process.platform !== 'linux' && 'looks at processes as Linux lists them' };

const never = () => new Promise(() => {});
const until = async (holds) => {
  while (!holds()) await after(5);
};

/** A runtime that is closed after the test, whether or not the test passed. */
function open(t, more) {
  const runtime = new Runtime({ isolation: 'process', ...more });
  t.after(() => runtime.close());
  return runtime;
}

/** Starts a run. Once it has begun, returns its handle, which must not be awaited for that. */
async function begin(runtime, source, globals = {}) {
  const { promise, resolve } = gate();
  const run = runtime.runCode(`begun(); ${source}`, { globals: { begun: () => resolve(), ...globals } });
  await promise;
  return { run };
}

function gate() {
  let resolve;
  return { promise: new Promise((settle) => { resolve = settle; }), resolve };
}

/** A host in a process and a process group of its own, once it has printed `ready`. */
async function host(t, program) {
  const prelude = `
    import { Runtime } from 'isolane';
    const runtime = new Runtime({ isolation: 'process', readyIsolates: 2 });
    const begin = (source, more) => new Promise((begun) => {
      const run = runtime.runCode('begun(); ' + source, { globals: { begun: () => begun({ run }), ...more } });
    });`;
  const args = ['--input-type=module', '-e', `${prelude}${program}`];
  const child = spawn(process.execPath, args, { cwd: ROOT, detached: true, stdio: ['ignore', 'pipe', 'inherit'] });
  t.after(() => child.kill('SIGKILL'));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const next = async () => (await lines.next()).value;
  assert.equal(await next(), 'ready');
  return { child, next, exited: new Promise((resolve) => child.once('exit', (code, signal) => resolve(signal ?? code))) };
}

test('counts show the workers and their protections', options, async (t) => {
  const threads = new Runtime();
  assert.equal((await threads.runCode('export default 1')).result, 1);
  assert.equal(threads.stats().workers, 0);
  assert.equal(Object.hasOwn(threads.stats(), 'confinement'), false);
  await threads.close();

  const runtime = open(t, { readyIsolates: 2 });
  const { run } = await begin(runtime, 'await never()', { never });
  await until(() => runtime.stats().parked === 1 && runtime.stats().readyIsolates === 2);
  const { workers, confinement } = runtime.stats();
  assert.equal(workers, 3);
  assert.equal(workersOf(process.pid).length, 3);
  assert.deepStrictEqual(Object.keys(confinement), [
    'environment', 'descriptors', 'privileges', 'user', 'capabilities', 'network', 'fileSystem', 'processes', 'ipc',
    'landlock', 'systemCalls', 'resources',
  ]);
  assert.ok(Object.values(confinement).every((item) => typeof item === 'boolean'));
  // Every machine has these.
  const { environment, descriptors, privileges } = confinement;
  assert.deepStrictEqual([environment, descriptors, privileges], [true, true, true]);
  run.terminate();
  assert.equal((await run).status, 'terminated');
  await runtime.close();
  assert.equal(runtime.stats().workers, 0);
});

test('a worker that is killed takes its run with it, and no other', options, async (t) => {
  // None is kept ready: the first worker serves the first run.
  const runtime = open(t, { readyIsolates: 0 });
  for (const source of ['for (;;);', 'await never()', LONG]) {
    const later = gate();
    const { run } = await begin(runtime, source, { never });
    const [victim, ...others] = workersOf(process.pid);
    assert.deepStrictEqual(others, []);
    const { run: beside } = await begin(runtime, 'export default await later()', { later: () => later.promise });
    process.kill(victim.pid, 'SIGKILL');
    const { status, error } = await run;
    assert.deepStrictEqual([status, error.name, error.message], ['error', 'WorkerLost', 'the worker was killed']);
    assert.equal(beside.running, true);
    later.resolve('well');
    assert.equal((await beside).result, 'well');
    await until(() => runtime.stats().workers === 0);
  }
  await runtime.close();
});

test('a zygote that is killed takes its runs with it, and the next run has another', options, async (t) => {
  const runtime = open(t, { readyIsolates: 1 });
  for (let depth = 0; depth < 2; depth += 1) {
    const begun = [await begin(runtime, 'for (;;);'), await begin(runtime, 'await never()', { never })];
    let [victim] = descendants(process.pid);
    if (depth === 1) [victim] = descendants(victim.pid);
    process.kill(victim.pid, 'SIGKILL');
    for (const { status, error } of await Promise.all(begun.map(({ run }) => run))) {
      assert.deepStrictEqual([status, error.name, error.message], ['error', 'WorkerLost', 'the worker was killed']);
    }
    assert.equal((await runtime.runCode('export default 1')).result, 1);
  }
  await runtime.close();
});

test('each run has a worker of its own, unless the runtime says otherwise', options, async (t) => {
  for (const [runsPerWorker, expected] of [[undefined, 4], [3, 2]]) {
    const runtime = open(t, { readyIsolates: 0, ...(runsPerWorker && { runsPerWorker }) });
    const seen = new Set();
    for (let i = 0; i < 4; i += 1) {
      const later = gate();
      const { run } = await begin(runtime, 'export default [typeof left, await later(), globalThis.left = 1]', { later: () => later.promise });
      for (const { pid } of workersOf(process.pid)) seen.add(pid);
      later.resolve(i);
      assert.deepStrictEqual((await run).result, ['undefined', i, 1]);
      // Until the worker has either ended or is ready again.
      await until(() => runtime.stats().workers === runtime.stats().readyIsolates);
    }
    assert.equal(seen.size, expected);
    await runtime.close();
  }
});

test('workers that nobody uses go, and come again', options, async (t) => {
  const runtime = open(t, { readyIsolates: 2, workerIdleMs: 50 });
  assert.equal((await runtime.runCode('export default 1')).result, 1);
  await until(() => runtime.stats().workers === 0);
  assert.deepStrictEqual(workersOf(process.pid), []);
  assert.equal((await runtime.runCode('export default 1')).result, 1);
  await runtime.close();
});

test('close leaves no process', options, async (t) => {
  const runtime = open(t, { readyIsolates: 2 });
  const begun = [await begin(runtime, 'for (;;);'), await begin(runtime, LONG), await begin(runtime, 'await never()', { never })];
  assert.ok(workersOf(process.pid).length >= begun.length);
  await runtime.close();
  assert.deepStrictEqual(descendants(process.pid), []);
  for (const { status, error } of await Promise.all(begun.map(({ run }) => run))) {
    assert.deepStrictEqual([status, error.name, error.message], ['terminated', 'Terminated', 'runtime closed']);
  }
});

test('a runtime that is dropped leaves no process in the end', options, async () => {
  setFlagsFromString('--expose-gc');
  const gc = runInNewContext('gc');
  const use = async () => assert.equal((await new Runtime({ isolation: 'process' }).runCode('export default 1')).result, 1);
  await use();
  assert.notDeepStrictEqual(descendants(process.pid), []);
  await until(() => {
    gc();
    return descendants(process.pid).length === 0;
  });
});

test('a thread that ends leaves no process of its runtimes', options, async (t) => {
  const program = `
    const { Runtime } = require('isolane');
    const runtime = new Runtime({ isolation: 'process' });
    const begun = () => require('node:worker_threads').parentPort.postMessage('begun');
    runtime.runCode('begun(); for (;;);', { globals: { begun } });`;
  const thread = new Worker(program, { eval: true });
  t.after(() => thread.terminate());
  await new Promise((resolve, reject) => thread.once('message', resolve).once('error', reject));
  assert.notDeepStrictEqual(workersOf(process.pid), []);
  await thread.terminate();
  await until(() => descendants(process.pid).length === 0);
});

test('a host that is killed leaves no process', options, async (t) => {
  const { child, exited } = await host(t, `
    const never = () => new Promise(() => {});
    await begin('for (;;);');
    await begin('await never()', { never });
    await begin('${LONG}');
    console.log('ready');`);
  const below = descendants(child.pid);
  assert.ok(below.length >= 5, `a launcher, a zygote and three workers among ${below.length}`);
  child.kill('SIGKILL');
  assert.equal(await exited, 'SIGKILL');
  await until(() => alive(below).length === 0);
});

test('a host that exits leaves no process', options, async (t) => {
  const { child, exited } = await host(t, `
    process.on('SIGTERM', () => process.exit(7));
    await begin('for (;;);');
    console.log('ready');`);
  const below = descendants(child.pid);
  child.kill('SIGTERM');
  assert.equal(await exited, 7);
  await until(() => alive(below).length === 0);
});

test('an interrupt of the host’s process group does not reach the workers', options, async (t) => {
  const { child, next, exited } = await host(t, `
    let go;
    const interrupted = new Promise((resolve) => { go = resolve; });
    process.on('SIGINT', () => go('interrupted'));
    const { run } = await begin('export default await interrupted()', { interrupted: () => interrupted });
    const { run: busy } = await begin('while (running()); export default "well"', { running: () => run.running });
    console.log('ready');
    console.log((await run).result, (await busy).result, (await runtime.runCode('export default 1')).result);
    await runtime.close();`);
  const below = descendants(child.pid);
  process.kill(-child.pid, 'SIGINT');
  assert.equal(await next(), 'interrupted well 1');
  assert.equal(await exited, 0);
  assert.deepStrictEqual(alive(below), []);
});

test('the executable is named by the option, by the environment, or beside the addon', options, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'isolane-worker-'));
  const works = async (more) => {
    const runtime = new Runtime({ isolation: 'process', ...more });
    assert.equal((await runtime.runCode('export default 1')).result, 1);
    await runtime.close();
  };
  try {
    const named = join(folder, 'named');
    symlinkSync(WORKER, named);
    await works({ worker: named });
    process.env.ISOLANE_WORKER = join(folder, 'absent');
    await works({ worker: named });
    const absent = { name: 'TypeError', message: `ISOLANE_WORKER: there is no file ${process.env.ISOLANE_WORKER}` };
    assert.throws(() => new Runtime({ isolation: 'process' }), absent);
    process.env.ISOLANE_WORKER = named;
    await works();
    delete process.env.ISOLANE_WORKER;
    await works();
    process.chdir(folder);
    await works({ worker: 'named' });
  } finally {
    delete process.env.ISOLANE_WORKER;
    process.chdir(ROOT);
    rmSync(folder, { recursive: true });
  }
});

test('a file that is no worker is said to be none', options, async (t) => {
  for (const worker of [process.execPath, join(ROOT, 'package.json')]) {
    const runtime = open(t, { worker });
    const { status, error } = await runtime.runCode('export default 1');
    assert.deepStrictEqual([status, error.name], ['error', 'WorkerLost']);
    assert.ok(error.message.startsWith(`no worker could be started: ${worker}: `), error.message);
    await runtime.close();
  }
  assert.deepStrictEqual(descendants(process.pid), []);
});

test('misuse of the options of workers', options, () => {
  for (const [more, name, message] of [
    [{ worker: 1 }, 'TypeError', 'worker must be a string, got a number'],
    [{ worker: '/absent' }, 'TypeError', 'worker: there is no file /absent'],
    [{ worker: '' }, 'TypeError', 'worker: there is no file '],
    [{ runsPerWorker: 0 }, 'RangeError', 'runsPerWorker must be a whole number from 1 to 1000000000, got 0'],
    [{ workerIdleMs: -1 }, 'RangeError', 'workerIdleMs must be a whole number from 0 to 1000000000, got -1'],
    [{ workers: 1 }, 'TypeError', "unknown option 'workers'; did you mean 'worker'?"],
  ]) {
    assert.throws(() => new Runtime({ isolation: 'process', ...more }), { name, message });
  }
  assert.throws(() => new Runtime({ runsPerWorker: 0 }), { name: 'RangeError' });
});
