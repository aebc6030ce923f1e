// Models and executors of one's own in the loop: what Node alone can see.

import assert from 'node:assert/strict';
import { AsyncLocalStorage } from 'node:async_hooks';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { fileURLToPath } from 'node:url';

import { CodeExecutionResult, CodeLoop, ExecutorError, IsolateCodeExecutor, LocalCodeExecutor, ScriptedModel } from 'isolane/executors';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const CEILING_MS = 120_000;
const CODE = { executableCode: { language: 'PYTHON', code: '1' } };
const echo = (_, { code }) => ({ stdout: code, exitCode: 0 });
setFlagsFromString('--expose-gc');
const gc = runInNewContext('gc');

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
const until = async (condition) => {
  const deadline = Date.now() + CEILING_MS;
  while (!condition() && Date.now() < deadline) await sleep(5);
  assert.ok(condition());
};
const program = (source) => spawnSync(process.execPath, ['--input-type=module', '--eval', source], { cwd: ROOT, encoding: 'utf8', timeout: CEILING_MS });

/** A promise with its functions. */
function deferred() {
  const made = {};
  made.promise = new Promise((resolve, reject) => Object.assign(made, { resolve, reject }));
  return made;
}

test('a function is an executor', async () => {
  let context;
  const execute = (ctx, input) => {
    context = ctx;
    assert.deepStrictEqual(input, { code: '1', language: 'python', inputFiles: [], executionId: null });
    return { stdout: input.code, exit_code: 0 };
  };
  const result = await loop(replies([CODE], 'Done.'), execute).run('go');
  assert.deepStrictEqual([result.reason, result.text, result.turns], ['answered', 'Done.', 2]);
  assert.deepStrictEqual(outputs(result), [['OUTCOME_OK', '1']]);
  assert.deepStrictEqual([context.turn, context.attempt, typeof context.invocationId, context.signal.aborted], [1, 1, 'string', false]);
});

test('models and executors run in the context of the call', async () => {
  const storage = new AsyncLocalStorage();
  const seen = [];
  const see = (value) => (seen.push(storage.getStore()), value);
  async function* parts() {
    yield see('a');
    await sleep(1);
    yield see(CODE);
  }
  const made = loop(replies(() => see(parts()), () => see('x')), async (ctx, input) => (await turn(), see(echo(ctx, input))));
  await storage.run('here', () => made.run('go'));
  assert.deepStrictEqual(seen, Array(5).fill('here'));
});

test('a reply may be a text, a part, parts, or an iterator of them', async () => {
  function* pieces() {
    yield 'I ';
    yield { text: 'compute.' };
    yield [CODE];
  }
  for (const first of [() => pieces(), async () => (async function* () { yield* pieces(); })(), () => new Set([...pieces()].slice(0, 2)).add(CODE), ['I ', 'compute.'].reduce(() => [{ text: 'I compute.' }, CODE])]) {
    const model = replies(first, ({ contents }) => ({ text: `${contents.length} contents` }));
    const result = await loop(model, echo, { instruction: 'Be brief.' }).run('go');
    assert.equal(result.text, '3 contents');
    assert.deepStrictEqual(result.contents[1], { role: 'model', parts: [{ text: 'I compute.' }, CODE] });
  }
});

test('an exception of the model comes back as it is', async () => {
  for (const error of [new RangeError('no quota'), 'a text', undefined, null]) {
    const thrown = () => { throw error; };
    async function* stream() {
      yield 'a';
      throw error;
    }
    for (const reply of [thrown, stream, () => Promise.reject(error)]) {
      await assert.rejects(loop(replies(reply), echo).run('go'), (caught) => caught === error);
    }
    const events = loop(replies(stream), echo).stream('go');
    assert.deepStrictEqual([(await events.next()).value.type, (await events.next()).value.type], ['turn', 'text']);
    await assert.rejects(events.next(), (caught) => caught === error);
    assert.deepStrictEqual(await events.next(), { done: true, value: undefined });
    assert.equal(events.result, undefined);
  }
});

test('hostile replies are misuse', async () => {
  let deep = [];
  for (let depth = 0; depth < 100_000; depth += 1) deep = [deep];
  let lessDeep = [];
  for (let depth = 0; depth < 300; depth += 1) lessDeep = [lessDeep];
  const circle = [];
  circle.push(circle);
  const content = { role: 'model', parts: [{ text: 'of Gemini' }] };
  assert.strictEqual((await loop(replies(content), echo).run('go')).text, 'of Gemini');
  const hostile = [
    [[{}], 'parts[0] has no field'],
    [[{ text: null }], 'parts[0] has no field'],
    [[{ text: 5 }], 'parts[0].text must be a string, got a number'],
    [{ executableCode: 1 }, 'part.executableCode must be an object, got a number'],
    [null, 'a reply must be a text, a part or a list of parts, got null'],
    [undefined, 'a reply must be a text, a part or a list of parts, got null'],
    [7, 'a reply must be a text, a part or a list of parts, got a number'],
    [{ role: 'assistant', content: '4' }, "got the message of an API, with 'content': return its text"],
    [{ choices: [{ message: { content: '4' } }] }, "got the message of an API, with 'choices': return its text"],
    [[{ x: 1n }], 'the reply of the model is not plain data'],
    [[{ x: NaN }], 'the reply of the model is not plain data: NaN has no form in JSON'],
    [[{ x: Infinity }], 'the reply of the model is not plain data'],
    [[{ x: () => 1 }], 'the reply of the model is not plain data'],
    [[{ x: new Uint8Array(1) }], 'the reply of the model is not plain data: bytes have no form in JSON'],
    [[{ x: Buffer.alloc(1) }], 'the reply of the model is not plain data: bytes have no form in JSON'],
    [[{ x: new Map() }], 'the reply of the model is not plain data'],
    [[{ text: '\ud800' }], 'the reply of the model has a lone surrogate'],
    [[{ x: deep }], 'the reply of the model is not plain data'],
    [[{ x: lessDeep }], 'it is nested deeper than 127 levels'],
    [[{ x: circle }], 'the reply of the model is not plain data'],
    [{ get x() { throw new Error('boom'); } }, 'boom'],
    [new Proxy({ text: 'a' }, { ownKeys() { throw new Error('boom'); } }), 'boom'],
  ];
  for (const [reply, message] of hostile) {
    await assert.rejects(loop(replies(() => reply), echo).run('go'), (error) => error instanceof TypeError && error.message.includes(message), message);
    await assert.rejects(loop(replies(function* () { yield reply; }), echo).run('go'), TypeError, message);
  }
  for (const next of [() => 1, () => null, async () => undefined]) {
    await assert.rejects(loop(replies(() => ({ next, [Symbol.iterator]() { return this; } })), echo).run('go'), TypeError);
  }
});

test('parts go back as they came', async () => {
  const parts = [{ text: 'a', thoughtSignature: 'c2ln' }, { functionCall: { id: 12345678901234567890, args: { __proto__: null, ['__proto__']: 1, n: -0.5, list: [null, true, ''] } } }];
  const { contents } = await loop(replies(parts), echo).run('go');
  assert.deepStrictEqual(contents[1], JSON.parse(JSON.stringify({ role: 'model', parts })));
});

test('errors of executors are told to the model', async () => {
  const hostile = { toString() { throw new Error('x'); } };
  const errors = [
    [new ExecutorError('bad_input', 'no such language'), 'no such language'],
    [new RangeError('lost'), 'the executor failed: lost'],
    [new RangeError(), 'the executor failed: RangeError'],
    ['text', 'the executor failed: text'],
    [undefined, 'the executor failed: undefined'],
    [hostile, 'the executor failed: a value of the type object'],
  ];
  for (const [error, output] of errors) {
    const execute = () => { throw error; };
    for (const executor of [execute, async () => execute()]) {
      assert.deepStrictEqual(outputs(await loop(replies([CODE], 'x'), executor).run('go')), [['OUTCOME_FAILED', output]]);
    }
  }
});

test('what is no result has failed', async () => {
  for (const given of [undefined, null, 1, 'text', [], { exitCode: '0' }, { exitCode: 2 ** 40 }, { stdout: new Uint8Array() }, { outputFiles: [1] }, { out: '' }]) {
    const [[outcome, output]] = outputs(await loop(replies([CODE], 'x'), () => given).run('go'));
    assert.equal(outcome, 'OUTCOME_FAILED');
    assert.ok(output.startsWith('the executor failed: '), output);
  }
});

test('errors are retried', async () => {
  const attempts = [];
  const flaky = {
    errorRetryAttempts: 3,
    executeCode({ attempt }) {
      attempts.push(attempt);
      if (attempt < 3) throw new ExecutorError('spawn', 'busy');
      return { stdout: 'ok', exitCode: 0 };
    },
  };
  assert.deepStrictEqual(outputs(await loop(replies([CODE], 'x'), flaky).run('go')), [['OUTCOME_OK', 'ok']]);
  assert.deepStrictEqual(attempts, [1, 2, 3]);
});

test('the executors of the library in the loop', async () => {
  const model = new ScriptedModel();
  model.pushText("```tool_code\nprint(open('in').read())\nopen('out', 'w').write('left')\n```");
  model.pushText('Done.');
  const files = [{ name: 'in', content: new TextEncoder().encode('given') }];
  const result = await loop(model, new LocalCodeExecutor(), { files }).run('go');
  assert.deepStrictEqual(result.files, [{ name: 'out', content: new TextEncoder().encode('left'), mimeType: null }]);
  assert.equal(model.requests()[1].contents[2].parts[0].text, '```tool_output\ngiven\n\n```');
  await assert.rejects(loop(model, echo).run('go'), { message: 'the scripted model has no reply left (call 3)' });
});

test('an executor may hand its call on to one of the library', async () => {
  const local = new LocalCodeExecutor({ interpreter: 'sh', args: ['-s'] });
  class Shouting extends LocalCodeExecutor {
    async executeCode(ctx, input) {
      const result = await super.executeCode(ctx, { ...input, code: `${input.code}; echo again` });
      result.stdout = result.stdout.toUpperCase();
      return result;
    }
  }
  for (const executor of [(ctx, input) => local.executeCode(ctx, input), new Shouting({ interpreter: 'sh', args: ['-s'] })]) {
    const stream = loop(replies([{ executableCode: { code: 'echo a' } }], 'x'), executor).stream('go');
    const printed = [];
    for await (const event of stream) if (event.type === 'output') printed.push(event.text);
    assert.match(printed.join(''), /^a\n/);
    assert.match(outputs(stream.result)[0][1], /^a\n/i);
  }
});

test('a scripted model pushes all kinds', async () => {
  const model = new ScriptedModel();
  model.pushCode('python', '1');
  model.pushStream(['a', { text: 'b' }]);
  model.pushError('broken');
  model.pushError(new RangeError('lost'));
  model.pushStream(['a'], 'broken');
  const made = loop(model, echo);
  assert.equal((await made.run('go')).text, 'ab');
  for (const name of ['Error', 'RangeError', 'Error']) await assert.rejects(made.run('go'), { name });
});

test('live output becomes events', async () => {
  const execute = (ctx) => {
    ctx.stdout(Buffer.from('out'));
    ctx.stderr('err');
    assert.throws(() => ctx.stdout(1), TypeError);
    return new CodeExecutionResult({ stdout: 'out', stderr: 'err', exitCode: 0 });
  };
  const stream = loop(replies([CODE], 'x'), execute).stream('go');
  const events = [];
  for await (const event of stream) events.push(event);
  assert.deepStrictEqual(events.filter(({ type }) => type === 'output').map(({ stream, text }) => [stream, text]), [['stdout', 'out'], ['stderr', 'err']]);
  const { result, durationMs } = events.find(({ type }) => type === 'result');
  assert.deepStrictEqual(result, new CodeExecutionResult({ stdout: 'out', stderr: 'err', exitCode: 0 }));
  assert.ok(durationMs >= 0);
  assert.equal(stream.result.reason, 'answered');
});

test('the signal ends everything', { timeout: CEILING_MS }, async () => {
  for (const how of ['run', 'stream']) {
    for (const hangs of ['model', 'executor']) {
      const [running, ended] = [deferred(), deferred()];
      const hang = (signal) => {
        running.resolve();
        signal.addEventListener('abort', () => ended.resolve());
        return new Promise(() => {});
      };
      const model = replies(({ signal }) => (hangs === 'model' ? hang(signal) : [CODE]));
      const controller = new AbortController();
      const made = loop(model, ({ signal }) => hang(signal));
      let result;
      if (how === 'run') result = made.run('go', { signal: controller.signal });
      else {
        const stream = made.stream('go', { signal: controller.signal });
        result = (async () => {
          for await (const _ of stream);
          return stream.result;
        })();
      }
      await running.promise;
      controller.abort();
      assert.equal((await result).reason, 'cancelled');
      await ended.promise;
    }
  }
  const never = replies(() => assert.fail('the model was asked'));
  assert.equal((await loop(never, echo).run('go', { signal: AbortSignal.abort() })).reason, 'cancelled');
});

test('an executor that hangs is given up', { timeout: CEILING_MS }, async () => {
  const ended = deferred();
  const hangs = {
    timeoutMs: 1,
    executeCode({ signal }) {
      signal.addEventListener('abort', () => ended.resolve());
      return new Promise(() => {});
    },
  };
  const result = await loop(replies([CODE], 'x'), hangs).run('go');
  assert.deepStrictEqual(outputs(result), [['OUTCOME_DEADLINE_EXCEEDED', 'the executor did not return within 5001ms']]);
  await ended.promise;
});

for (const how of ['break', 'return', 'dispose', 'drop']) {
  test(`a stream that is left ends the run (${how})`, { timeout: CEILING_MS }, async () => {
    for (const last of ['text', 'code']) {
      const [closed, begun, ended] = [deferred(), deferred(), deferred()];
      async function* parts() {
        try {
          yield 'a';
          yield 'b';
          yield* (async function* () { for (;;) { await sleep(2); yield 'c'; } })();
        } finally {
          closed.resolve();
        }
      }
      const execute = ({ signal }) =>
        new Promise((_, reject) => {
          signal.addEventListener('abort', () => (ended.resolve(), reject(signal.reason)));
          begun.resolve();
        });
      const isLast = async ({ type }) => {
        // A stream that is left before its program has begun starts no program.
        if (type === 'code') await begun.promise;
        return type === last;
      };
      // In a function of its own, so that nothing refers to the stream any more.
      await (async () => {
        const stream = loop(replies(last === 'text' ? parts : [CODE]), execute).stream('go');
        if (how === 'break') {
          for await (const event of stream) if (await isLast(event)) break;
          assert.deepStrictEqual(await stream.next(), { done: true, value: undefined });
          return;
        }
        while (!(await isLast((await stream.next()).value)));
        if (how === 'return') {
          assert.deepStrictEqual(await stream.return(), { done: true, value: undefined });
          await stream.return();
        } else if (how === 'dispose') await stream[Symbol.asyncDispose]();
      })();
      let isOver = false;
      const over = (last === 'text' ? closed : ended).promise.then(() => { isOver = true; });
      while (!isOver) {
        if (how === 'drop') gc();
        await Promise.race([over, sleep(10)]);
      }
    }
  });
}

test('a stream lives while an event is awaited', { timeout: CEILING_MS }, async () => {
  const reply = deferred();
  const next = await (async () => {
    const stream = loop(replies(() => reply.promise), echo).stream('go');
    await stream.next();
    return [stream.next()];
  })();
  for (let round = 0; round < 5; round += 1) {
    await sleep(5);
    gc();
  }
  reply.resolve('late');
  assert.equal((await next[0]).value?.text, 'late');
});

test('a stream that nobody reads does nothing', async () => {
  const model = new ScriptedModel();
  const stream = loop(model, echo).stream('go');
  await sleep(20);
  assert.deepStrictEqual(model.requests(), []);
  stream.cancel();
  const events = [];
  for await (const event of stream) events.push(event.type);
  assert.deepStrictEqual([events, stream.result.reason, model.requests()], [['finish'], 'cancelled', []]);
  const left = loop(model, echo).stream('go');
  await left.return();
  assert.deepStrictEqual([await left.next(), left.result, model.requests()], [{ done: true, value: undefined }, undefined, []]);
});

test('nothing is left of a run', { timeout: CEILING_MS }, async () => {
  const known = await (async () => {
    const model = replies([CODE], 'x');
    await loop(model, echo).run('go');
    const stream = loop(replies([CODE], 'x'), echo).stream('go');
    for await (const _ of stream);
    return [new WeakRef(model), new WeakRef(stream)];
  })();
  await until(() => (gc(), known.every((ref) => ref.deref() === undefined)));
});

test('several readers of a stream get different events', async () => {
  const stream = loop(replies('Hi.'), echo).stream('go');
  const all = await Promise.all(Array.from({ length: 5 }, () => stream.next()));
  assert.deepStrictEqual(all.map(({ done, value }) => (done ? 'done' : value.type)), ['turn', 'text', 'finish', 'done', 'done']);
});

test('runs overlap', async () => {
  const execute = async (ctx, input) => (await sleep(5), echo(ctx, input));
  await Promise.all(
    Array.from({ length: 40 }, async (_, index) => {
      const code = { executableCode: { language: 'PYTHON', code: String(index) } };
      const result = await loop(replies([code], [code, code], 'x'), execute).run('go');
      assert.deepStrictEqual(outputs(result), Array(3).fill(['OUTCOME_OK', String(index)]));
    }),
  );
});

test('many events that nobody reads yet', async () => {
  const count = 3000;
  let asked = 0;
  const model = replies(async function* () {
    for (let index = 0; index < count; index += 1) {
      asked = index;
      yield { text: `${index},`, x: index };
    }
  });
  const stream = loop(model, echo).stream('go');
  await stream.next();
  await sleep(300);
  // The run rests.
  assert.ok(asked < 1000, String(asked));
  let text = '';
  for await (const event of stream) if (event.type === 'text') text += event.text;
  assert.equal(text, Array.from({ length: count }, (_, index) => `${index},`).join(''));
});

test('a slow reader of much output fills no memory', { timeout: CEILING_MS }, async () => {
  const piece = 'x'.repeat(1 << 20);
  const begun = deferred();
  const done = deferred();
  let read = 0;
  const execute = async (ctx) => {
    // The test reads the event of the code first.
    await begun.promise;
    // An event is at most 4 MiB: it cannot keep up.
    for (let round = 0; round < 40; round += 1) {
      for (let count = 0; count < 6; count += 1) ctx.stdout(piece);
      const { value } = await stream.next();
      if (value.type === 'output') read += value.text.length;
    }
    done.resolve();
    return { exitCode: 0 };
  };
  const stream = loop(replies([CODE], 'x'), execute).stream('go');
  while ((await stream.next()).value.type !== 'code');
  begun.resolve();
  await done.promise;
  let waited = 0;
  let text = '';
  for await (const event of stream) {
    if (event.type !== 'output') continue;
    waited += event.text.length;
    text += event.text.replaceAll(piece, '');
  }
  assert.ok(waited < 48 << 20, `${waited >> 20} MiB`);
  assert.ok(read < 200 << 20, `${read >> 20} MiB`);
  assert.match(text, /bytes left out/);
});

test('misuse throws at once', () => {
  const misuses = [
    [{ model: {} }, TypeError, 'model must be an object with a method generate, got an object'],
    [{ model: () => 'x' }, TypeError, 'model must be an object with a method generate, got a function'],
    [{ executor: 1 }, TypeError, 'executor must be an object with a method executeCode, or a function, got a number'],
    [{ executor: LocalCodeExecutor }, TypeError, 'executor must be an object with a method executeCode, or a function, got a class'],
    [{ maxTurns: 0 }, RangeError, 'maxTurns must be a whole number of at least 1, got 0'],
    [{ maxTurns: NaN }, RangeError, 'maxTurns must be a whole number of at least 1, got NaN'],
    [{ maxTurns: Infinity }, RangeError, 'maxTurns must be a whole number of at least 1, got Infinity'],
    [{ maxTurns: 1n }, TypeError, 'maxTurns must be a number, got a bigint'],
    [{ codeBlocks: [[1n, 'x']] }, TypeError, 'codeBlocks is not plain data: a bigint has no form in JSON'],
    [{ instruction: 'a\ud800' }, TypeError, 'instruction has a lone surrogate'],
    [{ executionId: '\ud800' }, TypeError, 'executionId has a lone surrogate'],
    [{ instruction: null }, TypeError, 'instruction must be a string, got null'],
    [{ executionId: null }, TypeError, 'executionId must be a string, got null'],
    [{ maxTurns: null }, TypeError, 'maxTurns must be a number, got null'],
    [{ files: null }, TypeError, 'files must be an array of files, got null'],
    [{ files: [, { name: 'a', content: '' }] }, TypeError, 'files[0] must be an object, got undefined'],
    [{ maxTurn: 1 }, TypeError, "unknown option 'maxTurn'; did you mean 'maxTurns'?"],
    [{ asText: 'yes' }, TypeError, "asText must be 'auto' or a boolean, got a string"],
    [{ instruction: 1 }, TypeError, 'instruction must be a string, got a number'],
    [{ codeBlocks: [['', 'x']] }, TypeError, 'delimiters must not be empty'],
    [{ files: [{ name: 'a/b', content: new Uint8Array() }] }, TypeError, 'is not a valid name of a file'],
    [{ files: [{ name: 'a', content: 1 }] }, TypeError, 'files[0].content must be bytes, or base64, got a number'],
    [{ files: {} }, TypeError, 'files must be an array of files, got an object'],
    [{ executor: { executeCode: echo, timeoutMs: 0 } }, RangeError, 'executor.timeoutMs must be a positive number'],
    [{ executor: { executeCode: echo, timeoutMs: NaN } }, RangeError, 'executor.timeoutMs must be a positive number'],
    [{ executor: { executeCode: echo, timeoutMs: '1' } }, TypeError, "executor.timeoutMs must be a number or null, got '1'"],
    [{ executor: { executeCode: echo, stateful: 1 } }, TypeError, 'executor.stateful must be a boolean'],
    [{ executor: { executeCode: echo, errorRetryAttempts: -1 } }, RangeError, 'executor.errorRetryAttempts'],
    [{ executor: { executeCode: echo, codeBlockDelimiters: 1 } }, TypeError, 'executor.codeBlockDelimiters'],
  ];
  for (const [options, kind, message] of misuses) {
    assert.throws(() => new CodeLoop({ model: replies(), executor: echo, ...options }), (error) => error instanceof kind && error.message.includes(message), message);
  }
  const made = loop(replies(), echo);
  for (const start of [(...args) => made.run(...args), (...args) => made.stream(...args)]) {
    assert.throws(() => start(1), { name: 'TypeError', message: 'the input must be a string or a list of contents, got a number' });
    assert.throws(() => start([{ parts: [{}] }]), { name: 'TypeError', message: 'contents[0].parts[0] has no field' });
    assert.throws(() => start('a\ud800'), { name: 'TypeError', message: 'the input has a lone surrogate' });
    assert.throws(() => start('go', { signals: 1 }), { message: "unknown option 'signals'; did you mean 'signal'?" });
    assert.throws(() => start('go', { signal: 1 }), { message: 'signal must be an AbortSignal, got a number' });
  }
});

test('a run keeps the process alive, and a stream that nobody awaits does not', () => {
  const head = `
    import { CodeLoop, ScriptedModel, LocalCodeExecutor } from 'isolane/executors';
    const model = new ScriptedModel();
    model.pushCode('shell', 'sleep 0.2; echo done');
    model.pushText('Done.');
    const loop = new CodeLoop({ model, executor: new LocalCodeExecutor({ interpreter: 'sh', args: ['-s'] }) });`;
  const awaited = program(`${head} console.log((await loop.run('go')).text);`);
  assert.deepStrictEqual([awaited.stdout, awaited.stderr, awaited.status], ['Done.\n', '', 0]);
  const left = program(`${head} const stream = loop.stream('go'); await stream.next(); console.log('left');`);
  assert.deepStrictEqual([left.stdout, left.stderr, left.status], ['left\n', '', 0]);
});

test('a run that nobody awaits fails as any promise, and a stream that nobody reads does not', () => {
  const head = `
    import { CodeLoop } from 'isolane/executors';
    const loop = new CodeLoop({ model: { generate: async () => { throw new Error('no quota'); } }, executor: () => ({}) });
    process.on('unhandledRejection', (error) => console.log('unhandled', error.message));`;
  assert.equal(program(`${head} loop.run('go');`).stdout, 'unhandled no quota\n');
  const read = program(`${head} await loop.stream('go').next(); await new Promise((resolve) => setTimeout(resolve, 300));`);
  assert.deepStrictEqual([read.stdout, read.stderr, read.status], ['', '', 0]);
});

test('large files and long contents arrive', { skip: process.platform !== 'linux', timeout: CEILING_MS }, async () => {
  const code = 'for i in 1 2 3 4; do head -c 7340032 /dev/zero > $i.bin; done';
  const long = Array.from({ length: 4_000 }, (_, index) => ({ x: { index, list: [index, `${index}`] } }));
  const executor = new LocalCodeExecutor({ interpreter: 'sh', args: ['-s'], timeoutMs: null });
  const made = () => loop(replies([{ executableCode: { code } }], 'Done.'), executor);
  const contents = [{ role: 'user', parts: long }];
  const streams = made().stream(contents);
  const runs = made();
  const sizes = [];
  for await (const event of streams) if (event.type === 'result') sizes.push(...event.result.outputFiles.map(({ content }) => content.length));
  const result = await runs.run('go');
  assert.deepStrictEqual([sizes, result.files.map(({ content }) => content.length)], [Array(4).fill(7 << 20), Array(4).fill(7 << 20)]);
  assert.equal(streams.result.contents[0].parts.length, long.length);
});

test('calls that wait for their turn in an isolate have their whole time', { timeout: CEILING_MS }, async () => {
  // Two of them take longer than the limit, and each far less.
  const executor = new IsolateCodeExecutor({ stateful: true, timeoutMs: 9000, globals: { here: () => 1 } });
  const outcomes = await Promise.all([5000, 5000, 1].map(async (milliseconds) => {
    const model = new ScriptedModel();
    model.pushCode('typescript', `const end = Date.now() + ${milliseconds}; while (Date.now() < end) ; here()`);
    model.pushText('Done.');
    const { contents } = await new CodeLoop({ model, executor, executionId: 'one' }).run('Go.');
    return contents.flatMap(({ parts }) => parts).flatMap((part) => part.codeExecutionResult?.outcome ?? []);
  }));
  assert.deepStrictEqual(outcomes, Array.from({ length: 3 }, () => ['OUTCOME_OK']));
  await executor.close();
});
