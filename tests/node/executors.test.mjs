// Executors of subprocesses and containers, as Node alone sees them.

import assert from 'node:assert/strict';
import { AsyncLocalStorage } from 'node:async_hooks';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

import * as executors from 'isolane/executors';
import { CodeExecutionResult, ConfinedCodeExecutor, ContainerCodeExecutor, ExecutorError, IsolateCodeExecutor, LocalCodeExecutor } from 'isolane/executors';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const CEILING_MS = 120_000;
const bytes = (text) => new TextEncoder().encode(text);
const text = (parts) => Buffer.concat(parts).toString();
const shell = (options) => new LocalCodeExecutor({ interpreter: 'sh', args: ['-s'], ...options });
const run = (executor, code, ctx) => executor.executeCode(ctx, { code });

/** Runs a program of its own, which imports the package. */
const program = (source, ...flags) => spawnSync(process.execPath, [...flags, '--input-type=module', '--eval', source], { cwd: ROOT, encoding: 'utf8', timeout: CEILING_MS });

function isAlive(pid) {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)[0] !== 'Z';
  } catch {
    return false;
  }
}

async function until(condition) {
  const deadline = Date.now() + CEILING_MS;
  while (!condition() && Date.now() < deadline) await sleep(5);
  assert.ok(condition());
}

/** Calls a function with a folder, which ends with the call. */
async function withFolder(act) {
  const folder = mkdtempSync(join(tmpdir(), 'isolane-executors-'));
  try {
    return await act(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test('import and require give one and the same', () => {
  const cjs = createRequire(import.meta.url)('isolane/executors');
  assert.deepStrictEqual(Object.keys(cjs).sort(), Object.keys(executors).sort());
  for (const name of Object.keys(cjs)) assert.equal(cjs[name], executors[name]);
});

test('the package alone loads nothing of it', () => {
  const { stdout, stderr } = program("import 'isolane'; import { createRequire } from 'node:module'; console.log(Object.keys(createRequire(import.meta.url).cache).filter((file) => file.includes('executors')).length)");
  assert.equal(stdout, '0\n', stderr);
});

test('code runs with files', async () => {
  const executor = new LocalCodeExecutor({ env: { NAME: 'Ada' } });
  const code = [
    'import os, sys',
    "print(os.environ['NAME'], open('in.bin', 'rb').read())",
    "print('e', file=sys.stderr)",
    "open('out.txt', 'w').write('done')",
    'sys.exit(3)',
  ].join('\n');
  const content = new Uint8Array([0, 255]);
  const expected = new CodeExecutionResult({
    stdout: "Ada b'\\x00\\xff'\n",
    stderr: 'e\n',
    outputFiles: [{ name: 'out.txt', content: bytes('done'), mimeType: 'text/plain' }],
    exitCode: 3,
  });
  const inputs = [
    { code, inputFiles: [{ name: 'in.bin', content }] },
    { code, input_files: [{ name: 'in.bin', content: 'AP8=', mime_type: null }] },
    { code, inputFiles: [{ name: 'in.bin', content: content.buffer }], language: 'python', executionId: null },
  ];
  for (const input of inputs) assert.deepStrictEqual(await executor.executeCode(undefined, input), expected);
  assert.equal(expected.isSuccess(), false);
  assert.equal(expected.combinedOutput(), "Ada b'\\x00\\xff'\n\n--- stderr ---\ne\n");
});

test('JSON forms', () => {
  const result = new CodeExecutionResult({ stdout: 'o', stderr: 'e', outputFiles: [{ name: 'a', content: new Uint8Array([255]) }], exitCode: 0 });
  const json = { stdout: 'o', stderr: 'e', output_files: [{ name: 'a', content: '/w==', mime_type: null }], exit_code: 0 };
  assert.deepStrictEqual(JSON.parse(JSON.stringify(result)), json);
  assert.deepStrictEqual(CodeExecutionResult.fromJSON(json), result);
  const camel = { stdout: 'o', stderr: 'e', outputFiles: [{ name: 'a', content: '/w==', mimeType: null }], exitCode: 0 };
  assert.deepStrictEqual(CodeExecutionResult.fromJSON(camel), result);
  assert.equal(new CodeExecutionResult().isSuccess(), true);
  assert.equal(new CodeExecutionResult({ stderr: 'e' }).isSuccess(), false);
  assert.equal(new CodeExecutionResult({ stderr: 'e', exitCode: 0 }).isSuccess(), true);
  assert.deepStrictEqual(Object.keys(new CodeExecutionResult()), ['stdout', 'stderr', 'outputFiles', 'exitCode']);
  assert.throws(() => new CodeExecutionResult({ outputFiles: [{ name: 'a', content: 'a text' }] }), { name: 'RangeError', message: /no base64/ });
  assert.throws(() => new CodeExecutionResult({ exitCode: 2 ** 40 }), RangeError);
  assert.throws(() => new CodeExecutionResult({ exit: 1 }), { message: "unknown option 'exit'; did you mean 'exitCode'?" });
});

test('properties', () => {
  const executor = new LocalCodeExecutor({ timeoutMs: 1500.5, retryAttempts: 0 });
  assert.deepStrictEqual([executor.stateful, executor.timeoutMs, executor.errorRetryAttempts], [false, 1500.5, 1]);
  assert.deepStrictEqual(executor.codeBlockDelimiters.at(-1), ['```python\n', '\n```']);
  assert.equal(new LocalCodeExecutor({ timeoutMs: null }).timeoutMs, null);
  assert.equal(new LocalCodeExecutor().timeoutMs, 30_000);
  assert.equal(Object.prototype.toString.call(executor), '[object LocalCodeExecutor]');
});

test('a time limit may have a fraction', async () => {
  const executors = [LocalCodeExecutor, ContainerCodeExecutor, ConfinedCodeExecutor, IsolateCodeExecutor];
  for (const Executor of executors) {
    assert.equal(new Executor({ timeoutMs: 1.5 }).timeoutMs, 1.5);
    assert.ok(new Executor({ timeoutMs: 1e-9 }).timeoutMs > 0);
    assert.throws(() => new Executor({ timeoutMs: 1e300 }), { name: 'RangeError', message: 'timeoutMs is too long a time: 1e300 milliseconds' });
  }
  const { exitCode, stderr } = await new IsolateCodeExecutor({ timeoutMs: 0.5 }).executeCode(undefined, { code: 'for (;;) {}' });
  assert.deepStrictEqual([exitCode, stderr], [null, 'isolate execution timed out after 1ms\n']);
});

test('an environment may be that of the process, and variables in it undefined', async () => {
  const code = 'import os; print(sorted(name for name in os.environ if name.startswith("OWN_")))';
  const given = async (env) => (await new LocalCodeExecutor({ env }).executeCode(undefined, { code })).stdout;
  process.env.OWN_A = 'a';
  try {
    assert.equal(await given(process.env), "['OWN_A']\n");
    assert.equal(await given({ OWN_B: 'b', OWN_C: undefined }), "['OWN_B']\n");
  } finally {
    delete process.env.OWN_A;
  }
  assert.throws(() => new LocalCodeExecutor({ env: Object.create({ OWN_A: 'a' }) }), { name: 'SerializationError' });
});

test('misuse throws at once', () => {
  const misuses = [
    [LocalCodeExecutor, { interpreter: '' }, RangeError, 'interpreter must not be empty'],
    [LocalCodeExecutor, { interpreter: 'a\ud800' }, TypeError, 'interpreter has a lone surrogate'],
    [LocalCodeExecutor, { env: { 'A\ud800': 'x' } }, TypeError, 'env.A\ufffd has a lone surrogate'],
    [LocalCodeExecutor, { timeoutMs: 0 }, RangeError, 'timeoutMs must be a positive number of milliseconds, got 0'],
    [LocalCodeExecutor, { timeoutMs: -1 }, RangeError, 'timeoutMs must be a positive number of milliseconds, got -1'],
    [LocalCodeExecutor, { timeoutMs: Infinity }, RangeError, 'timeoutMs must be a positive number of milliseconds, got Infinity'],
    [LocalCodeExecutor, { timeoutMs: NaN }, RangeError, 'timeoutMs must be a positive number of milliseconds, got NaN'],
    [LocalCodeExecutor, { timeoutMs: '1' }, TypeError, "timeoutMs must be a number or null, got '1'"],
    [LocalCodeExecutor, { timeoutMs: true }, TypeError, 'timeoutMs must be a number or null, got a boolean'],
    [LocalCodeExecutor, { args: '-' }, TypeError, "args must be an array of strings, got '-'"],
    [LocalCodeExecutor, { args: [1] }, TypeError, 'args[0] must be a string, got a number'],
    [LocalCodeExecutor, { env: { 'A=B': '' } }, RangeError, 'is not a valid name of a variable'],
    [LocalCodeExecutor, { env: [1] }, TypeError, 'env must be an object, got an array'],
    [LocalCodeExecutor, { env: { A: 1 } }, TypeError, 'env.A must be a string, got a number'],
    [LocalCodeExecutor, { retryAttempts: -1 }, RangeError, 'retryAttempts must be a whole number of at least 0, got -1'],
    [LocalCodeExecutor, { retryAttempts: 1.5 }, RangeError, 'retryAttempts must be a whole number of at least 0, got 1.5'],
    [LocalCodeExecutor, { inheritEnv: 1 }, TypeError, 'inheritEnv must be a boolean, got a number'],
    [LocalCodeExecutor, { outputLimitBytes: 0 }, RangeError, 'outputLimitBytes must be a whole number of at least 1, got 0'],
    [LocalCodeExecutor, { timeout: 1 }, TypeError, "unknown option 'timeout'; did you mean 'timeoutMs'?"],
    [LocalCodeExecutor, { image: 'x' }, TypeError, "unknown option 'image'"],
    [LocalCodeExecutor, 1, TypeError, 'options must be an object, got a number'],
    [ContainerCodeExecutor, '', RangeError, 'image must not be empty'],
    [ContainerCodeExecutor, { image: '-v' }, RangeError, "image must not be empty, nor begin with '-'"],
    [ContainerCodeExecutor, { memory: 'much' }, RangeError, 'memory must be a positive number'],
    [ContainerCodeExecutor, { cpus: Infinity }, RangeError, 'cpus must be a positive number'],
    [ContainerCodeExecutor, { cpus: 0 }, RangeError, 'cpus must be a positive number'],
    [ContainerCodeExecutor, { pidsLimit: 0 }, RangeError, 'pidsLimit must be a whole number of at least 1, got 0'],
    [ContainerCodeExecutor, { dropCapabilities: 0 }, TypeError, 'dropCapabilities must be a boolean, got a number'],
    [ConfinedCodeExecutor, { memory: '-1m' }, RangeError, 'memory'],
    [ConfinedCodeExecutor, { required: ['files'] }, TypeError, 'required[0] must be one of'],
    [ConfinedCodeExecutor, { required: ['file_system'] }, TypeError, "'fileSystem'"],
    [ConfinedCodeExecutor, { readable: ['relative'] }, RangeError, 'cannot be shown to a program'],
  ];
  for (const [Executor, options, kind, message] of misuses) {
    assert.throws(() => new Executor(options), (error) => error instanceof kind && error.message.includes(message), message);
  }
});

test('an input of the wrong type throws at once', () => {
  const wrong = [undefined, null, 'print(1)', { code: 1 }, { inputFiles: 'x' }, { inputFiles: [{ name: 'a' }] }, { inputFiles: [{ content: bytes('') }] }, { source: '' }];
  for (const input of wrong) assert.throws(() => shell().executeCode(undefined, input), TypeError);
  for (const ctx of [1, { stdout: 1 }, { signal: {} }, { stdOut: () => {} }, { turn: '1' }]) assert.throws(() => shell().executeCode(ctx, { code: '' }), TypeError);
  assert.throws(() => shell().executeCode({ attempt: 0 }, { code: '' }), RangeError);
});

test('bad input is an error of the call', async () => {
  const bad = [
    { code: '', inputFiles: [{ name: 'a/b', content: bytes('') }] },
    { code: '', inputFiles: [{ name: '', content: bytes('') }] },
    { code: 'x'.repeat(16 * 1024 * 1024 + 1) },
    { code: '\ud800' },
  ];
  for (const input of bad) {
    await assert.rejects(shell().executeCode(undefined, input), (error) => error instanceof ExecutorError && error.name === 'ExecutorError' && error.code === 'bad_input');
  }
});

test('a missing interpreter', async () => {
  await assert.rejects(run(new LocalCodeExecutor({ interpreter: 'no-such-interpreter' }), '1'), { code: 'spawn' });
});

test('output arrives live and in order', { timeout: CEILING_MS }, async () => {
  const controller = new AbortController();
  let arrived;
  const first = new Promise((resolve) => { arrived = resolve; });
  const call = run(shell(), 'mkfifo go; echo one; read line < go; echo two', { stdout: arrived, signal: controller.signal });
  // The program still waits.
  assert.equal(text([await first]), 'one\n');
  controller.abort();
  await assert.rejects(call, { code: 'cancelled', message: 'the call was cancelled' });
});

test('both streams arrive, in the context of the call', async () => {
  const storage = new AsyncLocalStorage();
  const [out, err, seen] = [[], [], new Set()];
  const into = (list) => (chunk) => { list.push(chunk); seen.add(storage.getStore()); };
  await storage.run('here', () => run(shell(), 'echo a; echo b >&2; echo c', { stdout: into(out), stderr: into(err) }));
  assert.deepStrictEqual([text(out), text(err), [...seen]], ['a\nc\n', 'b\n', ['here']]);
});

test('a receiver that throws ends the call', { timeout: CEILING_MS }, async () => {
  const thrown = new RangeError('no');
  let pid;
  const stdout = (chunk) => {
    pid = Number(text([chunk]));
    throw thrown;
  };
  await assert.rejects(run(shell({ timeoutMs: null }), `echo $$; sleep ${CEILING_MS / 1000}; sleep 60`, { stdout }), (error) => error === thrown);
  assert.ok(pid > 0);
  if (process.platform === 'linux') await until(() => !isAlive(pid));
});

test('an asynchronous receiver has one piece at a time, and ends the call when it rejects', { timeout: CEILING_MS }, async () => {
  const pieces = [];
  let [running, most] = [0, 0];
  const stdout = async (bytes) => {
    most = Math.max(most, (running += 1));
    await new Promise(setImmediate);
    pieces.push(Buffer.from(bytes));
    running -= 1;
  };
  const result = await run(shell(), 'for i in 1 2 3 4 5; do echo $i; sleep 0.01; done', { stdout, stderr: stdout });
  assert.deepStrictEqual([most, running, String(Buffer.concat(pieces))], [1, 0, result.stdout]);
  const thrown = new Error('late');
  await assert.rejects(run(shell({ timeoutMs: null }), 'echo a; sleep 600', { stdout: () => Promise.reject(thrown) }), (error) => error === thrown);
});

test('a receiver that never settles does not hold the call', { timeout: CEILING_MS }, async () => {
  let pieces = 0;
  const never = () => {
    pieces += 1;
    return new Promise(() => {});
  };
  const result = await run(shell(), 'for i in 1 2 3; do echo a; echo b >&2; done', { stdout: never, stderr: never });
  assert.equal(result.stdout, 'a\na\na\n');
  assert.ok(pieces >= 2, String(pieces));
});

test('output that nobody takes fills no memory', { timeout: CEILING_MS }, () => withFolder(async (folder) => {
  const received = [];
  const written = join(folder, 'written');
  const stdout = (chunk) => {
    received.push(chunk);
    // Holds this thread up until the program has written everything.
    if (received.length === 1) spawnSync('sh', ['-c', `until [ -e ${written} ]; do sleep 0.01; done`], { timeout: CEILING_MS });
  };
  const result = await run(shell({ timeoutMs: null }), `echo first; yes | head -c 30000000; touch ${written}`, { stdout });
  assert.equal(result.exitCode, 0);
  const kept = text(received);
  // At most 4 MiB waited, which are the beginning; some came before and after that.
  assert.ok(kept.length < 12 << 20, String(kept.length));
  assert.ok(kept.startsWith('first\ny\n'));
  assert.match(kept, /\n\.\.\. \d+ bytes left out \.\.\.\n/);
  assert.match(result.stdout, /\n\.\.\. \d+ bytes left out \.\.\.\n/);
}));

test('the signal kills the program', { timeout: CEILING_MS, skip: process.platform !== 'linux' }, async () => {
  const controller = new AbortController();
  let arrived;
  const first = new Promise((resolve) => { arrived = resolve; });
  const call = run(shell(), 'echo $$; sleep 60; sleep 60', { stdout: arrived, signal: controller.signal });
  const pid = Number(text([await first]));
  assert.ok(isAlive(pid));
  controller.abort();
  await assert.rejects(call, { code: 'cancelled' });
  await until(() => !isAlive(pid));
  await assert.rejects(run(shell(), 'echo a', { signal: AbortSignal.abort() }), { code: 'cancelled' });
});

test('a timeout keeps the output', { timeout: CEILING_MS }, async () => {
  // A busy machine may need more time for the output.
  for (const [timeoutMs, told] of [[300, '300ms'], [5_000, '5s'], [60_000, '60s']]) {
    const result = await run(shell({ timeoutMs }), 'echo a; sleep 600');
    assert.deepStrictEqual([result.stderr, result.exitCode], [`sh execution timed out after ${told}\n`, null]);
    if (result.stdout === '' && timeoutMs < 60_000) continue;
    assert.equal(result.stdout, 'a\n');
    return;
  }
});

test('calls overlap, and the event loop goes on', { timeout: CEILING_MS }, () => withFolder(async (folder) => {
  const code = (index) => `cd ${folder}; touch ${index}; until [ -e go ]; do sleep 0.01; done; echo ${index}`;
  const calls = Promise.all([0, 1, 2, 3].map((index) => run(shell({ timeoutMs: CEILING_MS }), code(index))));
  // All programs run, and none of them ends before the event loop says so.
  await until(() => readdirSync(folder).length === 4);
  writeFileSync(join(folder, 'go'), '');
  assert.deepStrictEqual((await calls).map(({ stdout }) => stdout), ['0\n', '1\n', '2\n', '3\n']);
}));

test('two hundred calls at once', { timeout: CEILING_MS }, async () => {
  const executor = shell({ timeoutMs: CEILING_MS });
  const calls = Array.from({ length: 200 }, (_, index) => run(executor, `echo ${index}`));
  assert.deepStrictEqual((await Promise.all(calls)).map(({ stdout }) => Number(stdout)), calls.map((_, index) => index));
});

test('the process lives while a call is awaited, and ends when nothing runs', () => {
  const source = `
    import { LocalCodeExecutor, IsolateCodeExecutor } from 'isolane/executors';
    const executor = new LocalCodeExecutor({ interpreter: 'sh', args: ['-s'] });
    const isolates = new IsolateCodeExecutor({ stateful: true });
    await isolates.executeCode(null, { code: '1', executionId: 'x' });
    console.log((await executor.executeCode(null, { code: 'sleep 0.2; echo done' })).stdout);
    // The sessions of the executor are open, and keep nothing alive.`;
  const { stdout, stderr, status } = program(source);
  assert.deepStrictEqual([stdout, stderr, status], ['done\n\n', '', 0]);
});

test('a call in a worker that ends is cancelled', { skip: process.platform !== 'linux', timeout: CEILING_MS }, () => {
  const source = `
    import { Worker } from 'node:worker_threads';
    const worker = new Worker(\`
      const { LocalCodeExecutor } = require('isolane/executors');
      const { parentPort } = require('node:worker_threads');
      const stdout = (bytes) => parentPort.postMessage(Number(Buffer.from(bytes).toString()));
      new LocalCodeExecutor({ interpreter: 'sh', args: ['-s'] }).executeCode({ stdout }, { code: 'echo $$; sleep 60; sleep 60' });
    \`, { eval: true, execArgv: [] });
    worker.on('message', async (pid) => {
      await worker.terminate();
      const isAlive = () => { try { process.kill(pid, 0); return true; } catch { return false; } };
      for (const began = Date.now(); Date.now() - began < 60_000 && isAlive(); ) await new Promise((resolve) => setTimeout(resolve, 10));
      console.log(isAlive() ? 'alive' : 'dead');
      process.exit();
    });`;
  const { stdout, stderr } = program(source);
  assert.equal(stdout, 'dead\n', stderr);
});

test('large results arrive', { skip: process.platform !== 'linux', timeout: CEILING_MS }, async () => {
  const count = 4;
  const code = `head -c 7340032 /dev/zero > f; for i in $(seq ${count}); do cp f $i.bin; done; rm f; head -c 900000 /dev/zero | tr '\\0' x`;
  const result = await run(shell({ timeoutMs: null }), code);
  assert.deepStrictEqual(result.outputFiles.map(({ content }) => content.length), Array(count).fill(7 << 20));
  assert.equal(result.stdout.length, 900_000);
});

test('arguments of containers', () => {
  const executor = new ContainerCodeExecutor({ image: 'img', memory: '512m', cpus: 0.5, extraArgs: ['--init'] });
  const args = executor.buildRunArgs('n');
  assert.deepStrictEqual(args.slice(0, 5), ['run', '--rm', '-i', '--network=none', '--read-only']);
  for (const arg of ['--memory-swap=512m', '--cpus=0.5', '--cap-drop=ALL', '--name']) assert.ok(args.includes(arg), arg);
  assert.deepStrictEqual(args.slice(-4), ['--init', 'img', 'python3', '-']);
  assert.ok(executor.buildRunArgsStaged('n', '/f').includes('--mount=type=bind,source=/f,target=/work'));
  assert.ok(!new ContainerCodeExecutor({ image: 'img', dropCapabilities: false }).buildRunArgs('n').includes('--cap-drop=ALL'));
  assert.ok(new ContainerCodeExecutor('img').buildRunArgs('n').includes('img'));
  assert.throws(() => executor.buildRunArgs(1), TypeError);
});

test('a missing engine', async () => {
  const executor = new ContainerCodeExecutor({ engine: '/no/such/engine' });
  await assert.rejects(executor.prepare(), { code: 'engine_missing' });
  await assert.rejects(executor.prepare({ signal: AbortSignal.abort() }), { code: /^(cancelled|engine_missing)$/ });
  assert.throws(() => executor.prepare({ signals: 1 }), { message: "unknown option 'signals'; did you mean 'signal'?" });
  await assert.rejects(run(executor, '1'), { code: 'engine_missing' });
});

test('the signal ends a pull that hangs', { timeout: CEILING_MS, skip: process.platform === 'win32' }, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'isolane-engine-'));
  const [engine, pids] = [join(folder, 'engine'), join(folder, 'pids')];
  writeFileSync(engine, `#!/bin/sh\necho $$ >> ${pids}\ncase "$1" in pull) exec sleep 60;; version|info) exit 0;; *) exit 1;; esac\n`, { mode: 0o755 });
  try {
    const controller = new AbortController();
    const call = new ContainerCodeExecutor({ engine }).prepare({ signal: controller.signal });
    const count = () => (existsSync(pids) ? readFileSync(pids, 'utf8').trim().split('\n').map(Number) : []);
    while (!count().some((pid) => isAlive(pid))) await sleep(5);
    await sleep(100);
    controller.abort();
    await assert.rejects(call, { code: 'cancelled' });
    await until(() => !count().some(isAlive));
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('code runs in a container', { timeout: 600_000 }, async (context) => {
  const executor = new ContainerCodeExecutor({ outputFiles: true });
  try {
    await executor.prepare();
  } catch (error) {
    assert.ok(['engine_missing', 'engine_failed'].includes(error.code), error);
    context.skip(`this machine has no engine with the image: ${error.message}`);
    return;
  }
  const result = await run(executor, "open('out.txt', 'w').write('x'); print(1)");
  assert.deepStrictEqual([result.stdout, result.outputFiles.length, result.exitCode], ['1\n', 1, 0]);
});

test('confined programs', { timeout: CEILING_MS }, async (context) => {
  const executor = new ConfinedCodeExecutor({ interpreter: 'sh', args: ['-s'], env: { NAME: 'Ada' } });
  let had;
  try {
    had = await executor.confinement();
  } catch (error) {
    assert.equal(error.code, 'unsupported');
    context.skip(`this machine confines no programs: ${error.message}`);
    return;
  }
  assert.ok(had.memory === 'group' || had.memory === 'process');
  assert.deepStrictEqual(['privileges', 'network', 'fileSystem', 'systemCalls'].filter((item) => typeof had[item] !== 'boolean'), []);
  try {
    const result = await run(executor, `pwd; echo $NAME; echo x > out.txt; ls ${ROOT}`);
    assert.equal(result.stdout, '/work\nAda\n');
    assert.notEqual(result.exitCode, 0);
    assert.deepStrictEqual(result.outputFiles.map(({ name }) => name), ['out.txt']);
  } catch (error) {
    assert.equal(error.code, 'unsupported');
    context.skip(`this machine confines no programs: ${error.message}`);
  }
});

/** The result of a program of its own that calls an executor, whose program has begun, and then ends in that way. */
function endedHost(end, code = '') {
  const source = `
    import { LocalCodeExecutor } from 'isolane/executors';
    const parts = [];
    new LocalCodeExecutor({ timeoutMs: null }).executeCode({ stdout: (part) => {
      parts.push(part);
      if (!Buffer.concat(parts).includes('begun')) return;
      process.stdout.write(Buffer.concat(parts), () => { ${end} });
    } }, { code: ${JSON.stringify(`import os, time\n${code}\nprint(os.getpid(), os.getcwd(), 'begun', flush=True)\ntime.sleep(1000)`)} }).catch(() => {});`;
  const [pid, folder] = program(source).stdout.split(' ');
  assert.ok(Number(pid) > 0);
  return { pid: Number(pid), folder };
}

const ofLinux = process.platform !== 'linux' && 'the system ends programs of a host that was killed';

test('programs and their folders end with the process that exits', { timeout: CEILING_MS, skip: process.platform === 'win32' }, async () => {
  const child = "import subprocess\nchild = subprocess.Popen(['sleep', '1000'])\nopen('child', 'w').write('x')\nprint(child.pid, end=' ')";
  for (const end of ['process.exit(3)', "setImmediate(() => { throw new Error('uncaught'); })"]) {
    const { pid, folder } = endedHost(end);
    while (isAlive(pid)) await sleep(5);
    assert.equal(existsSync(folder), false, end);
  }
  // The first number is that of a process which the program has started.
  const { pid } = endedHost('process.exit(3)', child);
  while (isAlive(pid)) await sleep(5);
});

test('a program ends with the process that a signal ends', { timeout: CEILING_MS, skip: ofLinux }, async () => {
  for (const signal of ['SIGTERM', 'SIGKILL']) {
    const { pid, folder } = endedHost(`process.kill(process.pid, '${signal}')`);
    while (isAlive(pid)) await sleep(5);
    rmSync(folder, { recursive: true, force: true });
  }
});

test('the signal ends the staging of large files', { timeout: CEILING_MS }, async () => {
  const inputFiles = Array.from({ length: 10 }, (_, at) => ({ name: `f${at}`, content: new Uint8Array(20 << 20) }));
  const executor = shell({ timeoutMs: null });
  assert.equal((await executor.executeCode(undefined, { code: 'true', inputFiles })).exitCode, 0);
  const controller = new AbortController();
  const call = executor.executeCode({ signal: controller.signal }, { code: 'sleep 600', inputFiles });
  controller.abort();
  await assert.rejects(call, { code: 'cancelled' });
});
