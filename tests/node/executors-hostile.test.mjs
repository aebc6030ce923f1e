// Hostile models, executors, signals and prototypes of the host.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { getEventListeners } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

import { CodeLoop, ConfinedCodeExecutor, ContainerCodeExecutor, ExecutorError, IsolateCodeExecutor, LocalCodeExecutor, ScriptedModel } from 'isolane/executors';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const CEILING_MS = 120_000;
const CODE = { executableCode: { language: 'PYTHON', code: '1' } };
const echo = (_, { code }) => ({ stdout: code, exitCode: 0 });
const shell = (options) => new LocalCodeExecutor({ interpreter: 'sh', args: ['-s'], ...options });

/** A model that gives what its replies say; functions are called. */
const replies = (...list) => ({
  async generate(request) {
    const reply = list.shift();
    return typeof reply === 'function' ? reply(request) : reply;
  },
});
const loop = (model, executor, options) => new CodeLoop({ model, executor, ...options });
const outputs = ({ contents }) =>
  contents.flatMap(({ parts }) => parts).flatMap(({ codeExecutionResult }) => (codeExecutionResult === undefined ? [] : [Object.values(codeExecutionResult)]));
const thrower = (thrown) => () => {
  throw thrown;
};

/** Calls a function with properties on a prototype of the host, which end with the call. */
async function polluted(prototype, properties, call) {
  for (const [name, value] of Object.entries(properties)) Object.defineProperty(prototype, name, { value, writable: true, configurable: true });
  try {
    return await call();
  } finally {
    for (const name of Object.keys(properties)) delete prototype[name];
  }
}

test('an executor fails with whatever it throws', { timeout: CEILING_MS }, async () => {
  const named = (fields) => Object.defineProperties(new ExecutorError('spawn', 'm'), fields);
  const revoked = Proxy.revocable({}, {});
  revoked.revoke();
  const odd = [
    [Object.assign(new Error('x'), { message: Symbol('s') }), 'the executor failed: Symbol(s)'],
    [Object.assign(new Error('x'), { message: Object.create(null) }), 'the executor failed: a value of the type object'],
    [revoked.proxy, 'the executor failed: a value of the type object'],
    [new Proxy({}, { getPrototypeOf: thrower(new Error('trap')) }), 'the executor failed: a value of the type object'],
    [new Proxy(new ExecutorError('spawn', 'm'), { get: thrower(new Error('trap')) }), 'the executor failed: a value of the type object'],
    [named({ code: { value: 42 } }), 'm'],
    [named({ code: { value: undefined } }), 'm'],
    [named({ message: { value: { a: 1 } } }), 'the executor failed: [object Object]'],
    [named({ code: { get: thrower(new Error('getter')) } }), 'the executor failed: m'],
    [named({ message: { get: thrower(new Error('getter')) } }), 'the executor failed: a value of the type object'],
    [null, 'the executor failed: null'],
    [Symbol('s'), 'the executor failed: Symbol(s)'],
    [Object.create(null), 'the executor failed: a value of the type object'],
  ];
  for (const [thrown, output] of odd) {
    const executor = { timeoutMs: null, executeCode: thrower(thrown) };
    assert.deepStrictEqual(outputs(await loop(replies([CODE], 'x'), executor).run('go')), [['OUTCOME_FAILED', output]]);
  }
});

test('an error of an executor has a code', async () => {
  for (const code of [undefined, null, 42, 'spawned', {}]) {
    assert.throws(() => new ExecutorError(code, 'm'), { name: 'TypeError', message: /^code must be one of 'bad_input', / });
  }
  const execute = () => {
    throw new ExecutorError(undefined, 'm');
  };
  const [[outcome, output]] = outputs(await loop(replies([CODE], 'x'), execute).run('go'));
  assert.equal(outcome, 'OUTCOME_FAILED');
  assert.ok(output.startsWith('the executor failed: code must be one of'), output);
});

test('a wrong result is not retried', async () => {
  const name = (name) => ({ exitCode: 0, outputFiles: [{ name, content: new Uint8Array(1) }] });
  const wrong = [
    [undefined, 'the result of an executor must be a CodeExecutionResult or an object, got undefined'],
    ['out', "the result of an executor must be a CodeExecutionResult or an object, got 'out'"],
    [{ exitCode: '0' }, "exitCode must be a number or null, got '0'"],
    [{ exitCode: 0, extra: 1 }, "unknown option 'extra'"],
    [{ get stdout() { throw new Error('getter'); } }, 'getter'],
    [{ outputFiles: [, { name: 'a', content: '' }] }, 'outputFiles[0] must be an object, got undefined'],
    [name('../../etc/passwd'), 'outputFiles: "../../etc/passwd" is not a valid name of a file: it contains \'/\', \'\\\' or NUL'],
    [name('a/b'), 'outputFiles: "a/b" is not a valid name of a file: it contains \'/\', \'\\\' or NUL'],
    [name(''), 'outputFiles: "" is not a valid name of a file: it is empty'],
    [name('..'), 'outputFiles: ".." is not a valid name of a file: it names a folder'],
  ];
  for (const [given, message] of wrong) {
    let calls = 0;
    const result = await loop(replies([CODE], [CODE], 'x'), () => (++calls === 1 ? given : { stdout: 'fine', exitCode: 0 })).run('go');
    const [[outcome, output], next] = outputs(result);
    assert.ok(output.startsWith(`the executor failed: ${message}`), output);
    assert.deepStrictEqual([calls, outcome, next, result.files], [2, 'OUTCOME_FAILED', ['OUTCOME_OK', 'fine'], []]);
  }
});

test('options come from no polluted prototype', async () => {
  const programs = {
    interpreter: '/bin/echo', args: ['owned'], env: { A: 'b' }, inheritEnv: true, image: 'owned', argv: ['owned'], memory: '1g', cpus: '7', pidsLimit: 7,
    user: '0:0', dropCapabilities: false, extraArgs: ['--privileged'], engine: '/owned', outputFiles: true, readable: ['/root'], required: [],
    timeoutMs: 7, withoutTimeout: true, retryAttempts: 7, outputLimitBytes: 7,
  };
  const isolates = { language: 'owned', globals: 1, imports: 1, modules: 1, memoryLimitBytes: 1, report: 1, runtime: 1, isolation: 'owned', timeoutMs: 7, retryAttempts: 7, outputLimitBytes: 7, stateful: true, showValue: false };
  const own = { stateful: true, errorRetryAttempts: 7, timeoutMs: 7, codeBlockDelimiters: [['a', 'b']], executeCode: () => ({}), generate: 1 };
  const ofLoop = { instruction: 'owned', maxTurns: 1, executionId: 'owned', files: 1, codeBlocks: [['a', 'b']], resultDelimiters: ['a', 'b'], asText: true, maxOutputBytes: 1 };
  const ofCall = { stdout: 1, stderr: 1, signal: 1, turn: 7, attempt: 7, invocationId: 1, code: 'echo owned', language: 1, inputFiles: 1, input_files: 1, executionId: 1, execution_id: 1, aborted: true, cause: 1 };
  const ofResult = { exitCode: 7, exit_code: 7, outputFiles: 1, output_files: 1, mimeType: 'owned', mime_type: 'owned' };
  const seen = async () => {
    const traits = ({ stateful, errorRetryAttempts, timeoutMs, codeBlockDelimiters }) => [stateful, errorRetryAttempts, timeoutMs, codeBlockDelimiters];
    const isolate = new IsolateCodeExecutor();
    const model = new ScriptedModel();
    model.pushCode('python', '1');
    model.pushText('```python\n1\n```');
    model.pushText('Done.');
    const attempts = [];
    const inputs = [];
    const made = loop(model, (ctx, input) => {
      attempts.push(ctx.attempt);
      inputs.push(input.executionId);
      return attempts.length === 1 ? { stdout: 'one', outputFiles: [{ name: 'f', content: new Uint8Array(1) }] } : Promise.reject(new Error('lost'));
    });
    const result = await made.run('go');
    return JSON.stringify([
      traits(new LocalCodeExecutor()), traits(new LocalCodeExecutor({ timeoutMs: null })), traits(new ConfinedCodeExecutor()), traits(new ContainerCodeExecutor()), traits(isolate),
      new ContainerCodeExecutor().buildRunArgs('n'),
      await shell().executeCode({ signal: new AbortController().signal }, { code: 'echo 1; exit 3', inputFiles: [{ name: 'f', content: new Uint8Array(1) }] }),
      await new LocalCodeExecutor().executeCode(undefined, { code: 'import os; print(os.environ.get("OWNED"))' }),
      await isolate.executeCode({}, { code: 'console.log(1); 2' }),
      result, attempts, inputs, model.requests(),
    ]);
  };
  process.env.OWNED = 'secret';
  const expected = await seen();
  assert.match(expected, /None\\n/);
  // Of the native side.
  const ofNative = { message: 'owned', kind: 'type', opened: 7, session: 7, cell: 7, work: 7, once: false, passive: 1 };
  for (const properties of [programs, isolates, own, ofLoop, ofCall, ofResult, ofNative]) {
    assert.equal(await polluted(Object.prototype, properties, seen), expected, Object.keys(properties).join());
  }
  delete process.env.OWNED;
  const text = await polluted(Object.prototype, { toJSON: () => 'owned' }, async () => {
    const { contents, text } = await loop(replies({ text: 'a', list: [1] }), echo, { codeBlocks: [['x', 'y']] }).run('go');
    return [contents[1].parts[0].list[0], text, (await new IsolateCodeExecutor({ timeoutMs: CEILING_MS }).executeCode(undefined, { code: '1' })).stdout];
  });
  assert.deepStrictEqual(text, [1, 'a', '1\n']);
});

test('a stream is closed when one of its parts is refused', { timeout: CEILING_MS }, async () => {
  const circle = {};
  circle.circle = circle;
  const rejected = { then: (_, reject) => reject(new TypeError('rejected')) };
  for (const part of [1n, { text: () => 1 }, circle, 5, {}, '\ud83d', { text: 'a', x: NaN }, { text: 'a', x: new Uint8Array(3) }, rejected]) {
    let closed = 0;
    async function* generator() {
      try {
        yield 'a';
        yield part;
        yield 'b';
      } finally {
        closed += 1;
      }
    }
    const iterator = () => {
      let count = 0;
      return { [Symbol.asyncIterator]() { return this; }, next: () => ({ done: false, value: ++count === 2 ? part : 'a' }), return: async () => void (closed += 1) };
    };
    for (const stream of [generator, iterator]) {
      closed = 0;
      await assert.rejects(loop(replies(stream), echo).run('go'), TypeError);
      while (closed === 0) await sleep(1);
      assert.equal(closed, 1, `${stream.name} ${typeof part}`);
    }
  }
});

test('a stream that fails is not closed', async () => {
  let closed = 0;
  const stream = () => ({ [Symbol.asyncIterator]() { return this; }, next: thrower(new RangeError('lost')), return: () => (closed += 1) });
  await assert.rejects(loop(replies(stream), echo).run('go'), RangeError);
  await sleep(5);
  assert.equal(closed, 0);
});

test('the end of a stream is no error of the run', { timeout: CEILING_MS }, async () => {
  const error = new Error('of the end');
  for (const end of [{ get return() { throw error; } }, { return: thrower(error) }, { return: () => Promise.reject(error) }, { return: 1 }]) {
    const stream = Object.defineProperties({ [Symbol.asyncIterator]() { return this; }, next: () => new Promise(() => {}) }, Object.getOwnPropertyDescriptors(end));
    assert.equal((await loop(replies(() => stream), echo).run('go', { signal: AbortSignal.timeout(20) })).reason, 'cancelled');
    const events = loop(replies(() => stream), echo).stream('go');
    await events.next();
    const next = events.next();
    await sleep(20);
    await events.return();
    assert.deepStrictEqual(await next, { done: true, value: undefined });
  }
});

test('a character of two halves may be split between pieces', async () => {
  const text = async (...pieces) => (await loop(replies(async function* () { yield* pieces; }), echo).run('go')).contents[1].parts;
  assert.deepStrictEqual(await text('a\ud83d', '\ude00b'), [{ text: 'a😀b' }]);
  assert.deepStrictEqual(await text('\ud83d', '\ude00\ud83d', '\ude00'), [{ text: '😀😀' }]);
  assert.deepStrictEqual(await text({ text: 'a\ud83d' }, [{ text: '\ude00' }, { text: 'b' }]), [{ text: 'a😀b' }]);
  assert.deepStrictEqual(await text({ text: 'a\ud83d', thought: true }, { text: '\ude00', thought: true }), [{ text: 'a', thought: true }, { text: '😀', thought: true }]);
  for (const torn of [['\ud83d'], ['\ud83d', 'a'], ['\ude00'], ['\ud83d', CODE], [{ text: '\ud83d', thought: true }, '\ude00'], [{ x: '\ud83d' }, '\ude00']]) {
    await assert.rejects(text(...torn), { name: 'TypeError', message: 'a part of the model has a lone surrogate' });
  }
});

test('data of the caller is kept or refused', async () => {
  const sent = async (part) => (await loop(replies({ text: 'a', x: part }), echo).run('go')).contents[1].parts[0].x;
  let reads = 0;
  const kept = [
    [-0, -0],
    [{ a: undefined, b: null }, { b: null }],
    [{ [Symbol('s')]: 1, b: 1 }, { b: 1 }],
    [new Date(0), '1970-01-01T00:00:00.000Z'],
    [new URL('https://a.example/'), 'https://a.example/'],
    [JSON.parse('{"__proto__":{"a":1},"constructor":2}'), JSON.parse('{"__proto__":{"a":1},"constructor":2}')],
    [Object.assign(Object.create({ inherited: 1 }), { own: 1 }), { own: 1 }],
    [{ get once() { return ++reads; } }, { once: 1 }],
    [[1e21, 5e-324, true, 'é\u0000"'], [1e21, 5e-324, true, 'é\u0000"']],
  ];
  for (const [given, expected] of kept) assert.deepStrictEqual(await sent(given), expected);
  const circle = { list: [] };
  circle.list.push({ circle });
  const twice = { a: 1 };
  assert.deepStrictEqual(await sent([twice, twice]), [twice, twice]);
  let [deep, deeper] = [1, [1]];
  for (let depth = 0; depth < 126; depth += 1) [deep, deeper] = [[deep], [deeper]];
  assert.deepStrictEqual(await sent(deep), deep);
  for (const [given, message] of [
    [deeper, 'it is nested deeper than 127 levels'],
    [circle, 'it contains itself'],
    [new Error('e'), 'an instance of Error has no form in JSON'],
    [/a/, 'an instance of RegExp has no form in JSON'],
    [Promise.resolve(1), 'an instance of Promise has no form in JSON'],
    [new Date(NaN), 'an invalid Date has no form in JSON'],
    [[1, undefined], 'undefined in an array has no form in JSON'],
    [[, 1], 'undefined in an array has no form in JSON'],
    [new Set(), 'a Map or Set has no form in JSON'],
  ]) {
    await assert.rejects(sent(given), { name: 'TypeError', message: `the reply of the model is not plain data: ${message}` });
  }
});

test('calls and runs share one listener of a signal', { timeout: CEILING_MS }, async () => {
  const controller = new AbortController();
  const { signal } = controller;
  const listeners = () => getEventListeners(signal, 'abort').length;
  const calls = [...Array.from({ length: 11 }, () => shell().executeCode({ signal }, { code: 'true' })), loop(replies('x'), echo).run('go', { signal })];
  assert.equal(listeners(), 1);
  await Promise.all(calls);
  assert.equal(listeners(), 0);
  const cancelled = Array.from({ length: 3 }, () => shell().executeCode({ signal }, { code: 'sleep 60' }));
  const reason = new Error('enough');
  controller.abort(reason);
  await Promise.all(cancelled.map((call) => assert.rejects(call, { code: 'cancelled', cause: reason })));
  await assert.rejects(shell().executeCode({ signal }, { code: 'true' }), { code: 'cancelled', cause: reason });
});

/** A signal of a library, in which some parts are replaced. */
const like = (parts) => ({ aborted: false, reason: undefined, addEventListener() {}, removeEventListener() {}, ...parts });

test('signals that throw', { timeout: CEILING_MS }, async () => {
  const error = new RangeError('of the signal');
  const removes = like({ removeEventListener: thrower(error) });
  assert.equal((await shell().executeCode({ signal: removes }, { code: 'echo 1' })).stdout, '1\n');
  assert.equal((await loop(replies('x'), echo).run('go', { signal: removes })).text, 'x');
  const adds = like({ addEventListener: thrower(error) });
  assert.throws(() => shell().executeCode({ signal: adds }, { code: 'sleep 60' }), (thrown) => thrown === error);
  const model = new ScriptedModel();
  assert.throws(() => loop(model, echo).run('go', { signal: adds }), (thrown) => thrown === error);
  await assert.rejects(loop(model, echo).stream('go', { signal: adds }).next(), (thrown) => thrown === error);
  assert.deepStrictEqual(model.requests(), []);
  const aborts = like({ addEventListener: (_, listener) => listener() });
  await assert.rejects(shell().executeCode({ signal: aborts }, { code: 'sleep 60' }), { code: 'cancelled' });
  assert.equal((await loop(model, echo).run('go', { signal: aborts })).reason, 'cancelled');
  const reason = Object.defineProperty(like({ aborted: true }), 'reason', { get: thrower(error) });
  await assert.rejects(shell().executeCode({ signal: reason }, { code: 'sleep 60' }), { code: 'cancelled' });
});

test('a cut of live output is told in its stream', { timeout: CEILING_MS }, async () => {
  const cut = /\n\.\.\. \d+ bytes left out \.\.\.\n/;
  const folder = mkdtempSync(join(tmpdir(), 'isolane-cut-'));
  let count = 0;
  const received = async (code, ...streams) => {
    const written = join(folder, `${(count += 1)}`);
    const parts = { stdout: [], stderr: [] };
    const into = (stream) => (bytes) => {
      parts[stream].push(bytes);
      // Holds this thread up until the program has written everything.
      if (parts[stream].length === 1) spawnSync('sh', ['-c', `until [ -e ${written} ]; do sleep 0.01; done`], { timeout: CEILING_MS });
    };
    const receivers = Object.fromEntries(streams.map((stream) => [stream, into(stream)]));
    await shell({ timeoutMs: null }).executeCode(receivers, { code: `${code}; touch ${written}` });
    return streams.map((stream) => cut.test(Buffer.concat(parts[stream]).toString('latin1')));
  };
  const much = 'yes | head -c 12000000 >&2';
  try {
    assert.deepStrictEqual(await received(`echo a >&2; ${much}`, 'stderr'), [true]);
    assert.deepStrictEqual(await received(`echo a; ${much}`, 'stdout', 'stderr'), [false, true]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('a class or a function with the method is an executor', async () => {
  class Static {
    static executeCode(ctx, input) {
      return { stdout: `${this.name} ${input.code}`, exitCode: 0 };
    }
  }
  const callable = Object.assign(() => assert.fail('it was called'), { executeCode: echo });
  assert.deepStrictEqual(outputs(await loop(replies([CODE], 'x'), Static).run('go')), [['OUTCOME_OK', 'Static 1']]);
  assert.deepStrictEqual(outputs(await loop(replies([CODE], 'x'), callable).run('go')), [['OUTCOME_OK', '1']]);
});

test('a subclass has its own properties', { timeout: CEILING_MS }, async () => {
  class Shell extends LocalCodeExecutor {
    constructor() {
      super({ interpreter: 'sh', args: ['-s'] });
    }
  }
  class Fenced extends Shell {
    get codeBlockDelimiters() {
      return [['```sh\n', '\n```']];
    }
  }
  const fenced = await loop(replies('```sh\necho hi\n```', 'x'), new Fenced()).run('go');
  assert.deepStrictEqual([fenced.turns, fenced.contents[2].parts[0].text], [2, '```tool_output\nhi\n\n```']);
  class Missing extends LocalCodeExecutor {
    get errorRetryAttempts() {
      return 4;
    }
  }
  const stream = loop(replies([CODE], 'x'), new Missing({ interpreter: 'no-such-interpreter' })).stream('go');
  const attempts = [];
  for await (const event of stream) if (event.type === 'result') attempts.push(event.attempts);
  assert.deepStrictEqual(attempts, [4]);
  class Stateful extends Shell {
    get stateful() {
      return true;
    }
    executeCode(ctx, input) {
      ids.push(input.executionId);
      return super.executeCode(ctx, input);
    }
  }
  const ids = [];
  await loop(replies([CODE], 'x'), new Stateful(), { executionId: 'mine' }).run('go');
  const assigned = Object.defineProperty(new Shell(), 'codeBlockDelimiters', { value: [['<', '>']] });
  assert.equal((await loop(replies('<echo 5>', 'x'), assigned).run('go')).turns, 2);
  assert.deepStrictEqual(ids, ['mine']);
});

test('misuse is named', async () => {
  const { executeCode } = shell();
  assert.throws(() => executeCode(undefined, { code: '' }), { name: 'TypeError', message: 'executeCode must be called as a method of an executor of the library' });
  assert.throws(() => shell().executeCode(undefined, { code: '', inputFiles: [, { name: 'a', content: '' }] }), { name: 'TypeError', message: 'input.inputFiles[0] must be an object, got undefined' });
  assert.throws(() => shell({ timeoutMs: 1e300 }), { name: 'RangeError', message: 'timeoutMs is too long a time: 1e300 milliseconds' });
  assert.throws(() => loop(replies(), { executeCode: echo, timeoutMs: 1e300 }), { name: 'RangeError', message: 'executor.timeoutMs is too long a time: 1e300 milliseconds' });
  assert.throws(() => shell({ retryAttempts: 2 ** 53 }), { name: 'RangeError', message: 'retryAttempts must be a whole number below 2^53, got 9007199254740992' });
  for (const [Executor, options, name] of [
    [LocalCodeExecutor, { interpreter: 'a\0' }, 'interpreter'],
    [LocalCodeExecutor, { env: { A: '\0' } }, 'env.A'],
    [ConfinedCodeExecutor, { args: ['-', '\0'] }, 'args[1]'],
    [ContainerCodeExecutor, { extraArgs: ['a\0b'] }, 'extraArgs[0]'],
    [ContainerCodeExecutor, 'img\0', 'image'],
  ]) {
    assert.throws(() => new Executor(options), { name: 'RangeError', message: `${name} must not contain NUL` });
  }
  const model = new ScriptedModel();
  const wrong = [
    [() => model.pushCode(undefined, 'x'), 'language must be a string, got undefined'],
    [() => model.pushCode('python', 1), 'code must be a string, got a number'],
    [() => model.pushText(5), 'text must be a string, got a number'],
    [() => model.pushParts(null), 'parts must be an iterable object of parts, got null'],
    [() => model.pushParts(['a']), "parts[0] must be an object, got 'a'"],
    [() => model.pushStream('text'), "parts must be an iterable object of parts, got 'text'"],
  ];
  for (const [call, message] of wrong) assert.throws(call, { name: 'TypeError', message });
  await assert.rejects(model.generate({}), { message: 'the scripted model has no reply left (call 1)' });
  let printed = '';
  const execute = (ctx) => {
    ctx.stdout(new TextEncoder().encode('out').buffer);
    return { exitCode: 0 };
  };
  for await (const event of loop(replies([CODE], 'x'), execute).stream('go')) if (event.type === 'output') printed += event.text;
  assert.equal(printed, 'out');
});

test('variables that are undefined are not set', async () => {
  assert.equal((await shell({ env: { A: undefined, B: 'b' } }).executeCode(undefined, { code: 'echo ${A-none} $B' })).stdout, 'none b\n');
  assert.throws(() => shell({ env: { A: null } }), { message: 'env.A must be a string, got null' });
});

test('no exception of an executor ends the process', () => {
  const source = `
    import { CodeLoop, ScriptedModel } from 'isolane/executors';
    const model = new ScriptedModel();
    model.pushCode('python', '1');
    model.pushText('done');
    const executor = () => { throw Object.assign(new Error('x'), { message: Object.create(null) }); };
    console.log((await new CodeLoop({ model, executor }).run('go')).text);`;
  const { stdout, stderr, status } = spawnSync(process.execPath, ['--input-type=module', '--eval', source], { cwd: ROOT, encoding: 'utf8', timeout: CEILING_MS });
  assert.deepStrictEqual([stdout, stderr, status], ['done\n', '', 0]);
});
