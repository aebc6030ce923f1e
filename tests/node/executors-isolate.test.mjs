// The executor of isolates: the cases that all languages share, and what Node alone can see.

import assert from 'node:assert/strict';
import { AsyncLocalStorage } from 'node:async_hooks';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import process from 'node:process';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Worker } from 'node:worker_threads';

import { SerializationError } from 'isolane';
import { CodeExecutionResult, CodeLoop, IsolateCodeExecutor, ScriptedModel } from 'isolane/executors';

import { Runtime, Session, isolation } from '../isolation.mjs';
import { alive, descendants } from '../processes.mjs';

const CEILING_MS = 120_000;
setFlagsFromString('--expose-gc');
const gc = runInNewContext('gc');
const runtime = new Runtime();

function readCases() {
  const cases = [];
  const lines = readFileSync(new URL('../../crates/executors/tests/cases/isolate.md', import.meta.url), 'utf8').split('\n');
  for (let at = 0; at < lines.length; at += 1) {
    if (lines[at].startsWith('## ')) cases.push({ name: lines[at].slice(3), options: {}, files: {}, steps: [] });
    if (!lines[at].startsWith('```')) continue;
    const tag = lines[at].slice(3);
    const end = lines.indexOf('```', at + 1);
    const text = lines.slice(at + 1, end).join('\n');
    at = end;
    const one = cases.at(-1);
    if (tag === 'js' || tag === 'ts' || tag === 'code' || tag.startsWith('code ')) {
      const language = tag === 'code' ? '' : tag.replace('code ', '');
      one.steps.push({ language, code: text, stdout: '', stderr: '', files: {}, exit: '0' });
    } else if (tag === 'json options') one.options = JSON.parse(text);
    else if (tag === 'json files') one.files = JSON.parse(text);
    else if (tag === 'json files out') one.steps.at(-1).files = JSON.parse(text);
    else {
      assert.ok(['stdout', 'stderr', 'exit'].includes(tag), tag);
      one.steps.at(-1)[tag] = text;
    }
  }
  return cases;
}

const cases = readCases();

/** Whether a text is as expected, where a line `…` stands for any lines. */
function matches(expected, actual) {
  const had = actual.endsWith('\n') ? actual.slice(0, -1) : actual;
  const parts = expected
    .replaceAll('\\u{0}', '\0')
    .replaceAll('\\u{1b}', '\x1b')
    .split('…')
    .map((part, _, all) => (all.length === 1 ? part : part.replace(/^\n+|\n+$/g, '')));
  if (parts.length === 1) return had === parts[0];
  return had.startsWith(parts[0]) && had.endsWith(parts.at(-1)) && parts.every((part) => had.includes(part));
}

test('there are cases', () => assert.ok(cases.length > 30, String(cases.length)));

for (const one of cases) {
  test(one.name, { timeout: CEILING_MS }, async () => {
    const executor = new IsolateCodeExecutor({ runtime, ...one.options });
    let inputFiles = Object.entries(one.files).map(([name, text]) => ({ name, content: new TextEncoder().encode(text) }));
    for (const { code, language, stdout, stderr, files, exit } of one.steps) {
      const result = await executor.executeCode(undefined, { code, language, inputFiles, executionId: 'an id' });
      inputFiles = [];
      assert.ok(matches(stdout, result.stdout), JSON.stringify(result));
      assert.ok(matches(stderr, result.stderr), JSON.stringify(result));
      if (typeof files === 'string') assert.equal(`${result.outputFiles.length} files`, files);
      else assert.deepStrictEqual(Object.fromEntries(result.outputFiles.map(({ name, content }) => [name, Buffer.from(content).toString()])), files);
      assert.equal(String(result.exitCode), exit);
    }
    await executor.close();
  });
}

const made = (options) => new IsolateCodeExecutor({ runtime, ...options });
const run = (executor, code, fields) => executor.executeCode(undefined, { code, ...fields });

test('functions of the host', async () => {
  const storage = new AsyncLocalStorage();
  const reports = [];
  const executor = made({
    globals: { slow: async (text) => (await sleep(5), text.toUpperCase()), add: (a, b) => a + b, who: () => storage.getStore() },
    imports: { tools: { name: () => 'Ada' } },
    report: (value) => reports.push(value),
  });
  const code = "import { name } from 'tools'; report({ n: 1 }); (await slow(name())) + add(1, 2) + who()";
  for (const who of ['x', 'y']) {
    const result = await storage.run(who, () => run(executor, code));
    assert.deepStrictEqual(result, new CodeExecutionResult({ stdout: `ADA3${who}\n`, exitCode: 0 }));
  }
  assert.deepStrictEqual(reports, [{ n: 1 }, { n: 1 }]);
});

test('an exception of the host is an error of the code', async () => {
  const executor = made({ globals: { fail: () => { throw new RangeError('no such thing'); } } });
  const result = await run(executor, 'fail()');
  assert.equal(result.exitCode, 1);
  assert.match(result.stderr, /RangeError: no such thing/);
});

test('promises among the options settle in each session', async () => {
  const { promise, resolve } = Promise.withResolvers?.() ?? (() => {
    let settle;
    return { promise: new Promise((done) => { settle = done; }), resolve: (value) => settle(value) };
  })();
  const executor = made({ globals: { promise, done: Promise.resolve('done'), failed: Promise.reject(new Error('no')) } });
  const first = run(executor, 'await promise + await done');
  setTimeout(resolve, 5, 'late ');
  assert.equal((await first).stdout, 'late done\n');
  assert.equal((await run(executor, 'await promise + await failed.catch((e) => e.message)')).stdout, 'late no\n');
});

test('values are those of when the executor was made', async () => {
  const list = [1];
  const executor = made({ globals: { list } });
  list.push(2);
  assert.equal((await run(executor, 'list.push(9); list')).stdout, '[ 1, 9 ]\n');
  assert.equal((await run(executor, 'list')).stdout, '[ 1 ]\n');
});

test('calls with the same id share a state', async () => {
  let calls = 0;
  const executor = made({ globals: { count: async () => (calls += 1) }, stateful: true });
  assert.equal(executor.stateful, true);
  assert.equal((await run(executor, 'const a = await count(); a', { executionId: 'x' })).stdout, '1\n');
  assert.equal((await run(executor, 'a + await count()', { executionId: 'x' })).stdout, '3\n');
  assert.equal((await run(executor, 'typeof a', { executionId: 'y' })).stdout, 'undefined\n');
  await executor.close();
  const anew = await run(executor, 'typeof a', { executionId: 'x' });
  assert.equal(anew.stdout, 'undefined\n');
  assert.match(anew.stderr, /the session "x" was gone/);
  await executor[Symbol.asyncDispose]();
});

test('an isolation of its own', async () => {
  for (const isolation of ['thread', 'process']) {
    const executor = new IsolateCodeExecutor({ isolation, globals: { f: () => 1 } });
    assert.equal((await run(executor, 'f()')).stdout, '1\n');
  }
});

test('the signal ends the cell, and the session goes on', { timeout: CEILING_MS }, async () => {
  let started;
  const executor = made({ globals: { wait: () => (started(), new Promise(() => {})) }, stateful: true });
  const here = { executionId: 'x' };
  for (const code of ['const kept = 1; await wait();', 'wait(); for (;;) {}']) {
    const running = new Promise((resolve) => { started = resolve; });
    const controller = new AbortController();
    const call = executor.executeCode({ signal: controller.signal }, { code, ...here });
    await running;
    controller.abort();
    await assert.rejects(call, { name: 'ExecutorError', code: 'cancelled' });
    assert.equal((await run(executor, '1 + 1', here)).stdout, '2\n');
  }
  await assert.rejects(executor.executeCode({ signal: AbortSignal.abort() }, { code: '1' }), { code: 'cancelled' });
  await executor.close();
});

test('the event loop is free meanwhile', { timeout: CEILING_MS }, async () => {
  const controller = new AbortController();
  let started;
  const running = new Promise((resolve) => { started = resolve; });
  let isOver = false;
  const executor = made({ timeoutMs: 600_000, globals: { started: () => started() } });
  const call = executor.executeCode({ signal: controller.signal }, { code: 'started(); for (;;) {}' }).finally(() => { isOver = true; });
  await running;
  for (let tick = 0; tick < 6; tick += 1) await sleep(5);
  assert.equal(isOver, false);
  controller.abort();
  await assert.rejects(call, { code: 'cancelled' });
  const result = await run(made({ timeoutMs: 300 }), 'for (;;) {}');
  assert.equal(result.exitCode, null);
  assert.ok(result.stderr.endsWith('isolate execution timed out after 300ms\n'), result.stderr);
});

test('output is live', async () => {
  let printed;
  const wait = new Promise((resolve) => { printed = resolve; });
  const seen = [];
  const stdout = (bytes) => { seen.push(Buffer.from(bytes).toString()); printed('on'); };
  const result = await made({ globals: { wait }, showValue: false }).executeCode({ stdout }, { code: "console.log('first'); console.warn(await wait)" });
  // In as many pieces as it is taken.
  assert.deepStrictEqual([result.stdout, result.stderr, seen.join('')], ['first\n', 'on\n', 'first\n']);
});

test('calls overlap', async () => {
  let arrived = 0;
  let both;
  const met = new Promise((resolve) => { both = resolve; });
  const executor = made({ globals: { meet: () => ((arrived += 1) === 2 && both(), met) } });
  const results = await Promise.all([1, 2].map(() => run(executor, "await meet(); 'met'")));
  assert.deepStrictEqual(results.map(({ stdout }) => stdout), ['met\n', 'met\n']);
});

test('misuse throws at once', () => {
  const misuses = [
    [{ timeoutMs: 0 }, RangeError, 'timeoutMs must be a positive number of milliseconds, got 0'],
    [{ timeoutMs: Infinity }, RangeError, 'timeoutMs must be a positive number of milliseconds, got Infinity'],
    [{ timeoutMs: NaN }, RangeError, 'timeoutMs must be a positive number of milliseconds, got NaN'],
    [{ timeoutMs: '1' }, TypeError, "timeoutMs must be a number or null, got '1'"],
    [{ retryAttempts: 1.5 }, RangeError, 'retryAttempts must be a whole number of at least 0, got 1.5'],
    [{ outputLimitBytes: null }, TypeError, 'outputLimitBytes must be a number, got null'],
    [{ stateful: 1 }, TypeError, 'stateful must be a boolean, got a number'],
    [{ memoryLimitBytes: Infinity }, RangeError, 'memoryLimitBytes'],
    [{ memoryLimitBytes: 0 }, RangeError, 'memoryLimitBytes'],
    [{ language: 'python' }, TypeError, 'language'],
    [{ globals: { 'a-b': 1 } }, TypeError, 'a-b'],
    [{ globals: { a: Symbol('s') } }, SerializationError, 'globals.a'],
    [{ runtime: 1 }, TypeError, 'runtime must be a Runtime, got a number'],
    [{ isolation: 'none' }, TypeError, 'isolation'],
    [{ runtime, isolation: 'process' }, TypeError, 'runtime and isolation exclude each other'],
    [{ timeout: 1 }, TypeError, "unknown option 'timeout'; did you mean 'timeoutMs'?"],
    [{ report: 1 }, TypeError, 'report must be a function, got a number'],
  ];
  for (const [options, kind, message] of misuses) {
    assert.throws(() => new IsolateCodeExecutor(options), (error) => error instanceof kind && error.message.includes(message), message);
  }
});

test('a closed runtime is an error of each call', async () => {
  const closed = new Runtime();
  const executor = new IsolateCodeExecutor({ runtime: closed });
  await closed.close();
  for (let round = 0; round < 4; round += 1) await assert.rejects(run(executor, '1'), { name: 'ExecutorError', code: 'other' });
});

test('a runtime that closes ends the calls', async () => {
  const closing = new Runtime();
  let started;
  const running = new Promise((resolve) => { started = resolve; });
  const executor = new IsolateCodeExecutor({ runtime: closing, stateful: true, globals: { wait: () => (started(), new Promise(() => {})) } });
  const call = run(executor, 'await wait()', { executionId: 'x' });
  await running;
  await closing.close();
  assert.notEqual((await call).exitCode, 0);
});

test('sessions end with their calls', async () => {
  const own = new Runtime();
  const executor = new IsolateCodeExecutor({ runtime: own, globals: { name: () => 'Ada' } });
  for (let round = 0; round < 6; round += 1) assert.equal((await run(executor, 'name()')).stdout, 'Ada\n');
  const deadline = Date.now() + CEILING_MS;
  while (own.stats().sessions > 0 && Date.now() < deadline) await sleep(5);
  assert.equal(own.stats().sessions, 0);
  await own.close();
});

test('close ends the calls', { timeout: CEILING_MS }, async () => {
  for (const stateful of [true, false]) {
    let started;
    const running = new Promise((resolve) => { started = resolve; });
    const executor = made({ stateful, globals: { wait: () => (started(), new Promise(() => {})) } });
    const call = run(executor, 'await wait()', { executionId: 'x' });
    await running;
    await executor.close();
    assert.notEqual((await call).exitCode, 0);
    assert.equal((await run(executor, '1', { executionId: 'x' })).stdout, '1\n');
  }
});

for (const stateful of [false, true]) {
  test(`executors are freed with all that refers to them (stateful: ${stateful})`, { timeout: CEILING_MS }, async () => {
    const own = new Runtime();
    const known = await (async () => {
      const owner = { name: () => (owner.called = 'Ada') };
      owner.executor = new IsolateCodeExecutor({ runtime: own, globals: { name: owner.name }, stateful });
      for (let round = 0; round < 6; round += 1) assert.equal((await run(owner.executor, 'name()', { executionId: 'x' })).stdout, 'Ada\n');
      return new WeakRef(owner);
    })();
    const deadline = Date.now() + CEILING_MS;
    while ((known.deref() !== undefined || own.stats().sessions > 0) && Date.now() < deadline) {
      // A reference that is read stays for the turn.
      await sleep(5);
      gc();
    }
    assert.deepStrictEqual([known.deref(), own.stats().sessions], [undefined, 0]);
    await own.close();
  });
}

test('a call in a worker that ends is over', { timeout: CEILING_MS }, async () => {
  const worker = new Worker(
    `const { IsolateCodeExecutor } = require('isolane/executors');
     const { parentPort } = require('node:worker_threads');
     const executor = new IsolateCodeExecutor({ stateful: true, globals: { started: () => parentPort.postMessage('started') } });
     executor.executeCode(null, { code: 'started(); await new Promise(() => {})', executionId: 'x' });
     executor.executeCode(null, { code: 'started(); for (;;) {}' });`,
    { eval: true, execArgv: [] },
  );
  for (let left = 2; left > 0; left -= 1) await once(worker, 'message');
  assert.equal(await worker.terminate(), 1);
});

test('a state lives from turn to turn of the loop', async () => {
  const model = new ScriptedModel();
  model.pushText('```ts\nconst kept = await double(4); kept\n```');
  model.pushText('```ts\nkept + 1\n```');
  model.pushText('Done.');
  const executor = made({ globals: { double: async (n) => 2 * n }, stateful: true });
  await new CodeLoop({ model, executor }).run('go');
  assert.equal(model.requests().at(-1).contents.at(-1).parts[0].text, '```tool_output\n9\n\n```');
  await executor.close();
});

test(`there is a process for the isolates of processes`, { skip: isolation === 'thread' && 'this is the run with threads' }, async () => {
  assert.equal((await run(made(), '1 + 1')).stdout, '2\n');
  assert.ok(runtime.stats().workers > 0);
});

test('no asynchronous host function starts once its time is over', { timeout: CEILING_MS }, async () => {
  const code = 'for (;;) { f(); }';
  const ends = {
    'time of a cell': (f) => new Session({ globals: { f } }).run(code, { timeoutMs: 300 }),
    'time of a call': (f) => run(made({ timeoutMs: 300, globals: { f } }), code),
    'time of a call with a state': (f) => run(made({ timeoutMs: 300, stateful: true, globals: { f } }), code, { executionId: 'id' }),
  };
  for (const [name, end] of Object.entries(ends)) {
    let calls = 0;
    await end(async () => {
      calls += 1;
      for (const began = performance.now(); performance.now() - began < 100; );
    });
    const settled = calls;
    for (let turn = 0; turn < 20; turn += 1) await new Promise(setImmediate);
    // Hundreds are queued, which would take more than fifteen seconds. A few start before the end.
    assert.ok(calls < 150, `${name}: ${calls}`);
    assert.equal(calls, settled, name);
  }
});

test('the asynchronous host functions that code has called before it ended by itself start', async () => {
  let calls = 0;
  const f = async () => { calls += 1; for (const began = performance.now(); performance.now() - began < 2; ); };
  assert.equal((await run(made({ globals: { f } }), 'for (let i = 0; i < 50; i += 1) f(); 1')).stdout, '1\n');
  assert.equal(calls, 50);
});

test('an executor opens no session before its first call', { timeout: CEILING_MS }, async () => {
  const own = new Runtime();
  const executors = Array.from({ length: 3 }, () => new IsolateCodeExecutor({ runtime: own, globals: { a: new Uint8Array(1024) } }));
  assert.equal(own.stats().sessions, 0);
  await run(executors[0], '1');
  await executors[0].close();
  while (own.stats().sessions > 0) await sleep(5);
  await own.close();
});

test('the processes of an executor end with it', { skip: process.platform !== 'linux' && 'looks at processes as Linux lists them', timeout: CEILING_MS }, async () => {
  const before = new Set(descendants(process.pid).map(({ pid }) => pid));
  const own = () => alive(descendants(process.pid)).filter(({ pid }) => !before.has(pid));
  const executor = new IsolateCodeExecutor({ isolation: 'process' });
  for (const attempt of ['first', 'second']) {
    assert.equal((await run(executor, '1 + 1')).stdout, '2\n');
    assert.ok(own().length > 0, attempt);
    await executor.close();
    while (own().length > 0) await sleep(10);
  }
  await (async () => assert.equal((await run(new IsolateCodeExecutor({ isolation: 'process' }), '1')).stdout, '1\n'))();
  while (own().length > 0) {
    await sleep(10);
    gc();
  }
});
