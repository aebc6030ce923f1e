// Environments and the process service as a user of the package has them. Their rules are tests of `crates/environment`;
// here are those of this face.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import vm from 'node:vm';

import {
  EXECUTION_EXIT_STATES,
  EXECUTION_STATES,
  ProcessError,
  ProcessService,
  TypeScriptEnvironment,
} from 'isolane/environment';

import { Runtime } from '../isolation.mjs';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

const runtime = new Runtime();

/** A service of TypeScript in the runtime of the tests. */
const typescript = (options, environment) =>
  new ProcessService({ environment: new TypeScriptEnvironment({ runtime, ...environment }), ...options });

/** The record of code that has run. */
async function ran(service, code, more) {
  const { pid } = await service.create({ code, ...more });
  return await service.wait(pid);
}

test('import and require give one and the same', () => {
  const cjs = createRequire(import.meta.url)('isolane/environment');
  assert.equal(cjs.ProcessService, ProcessService);
  assert.equal(cjs.TypeScriptEnvironment, TypeScriptEnvironment);
  assert.deepEqual(EXECUTION_STATES, ['queued', 'running']);
  assert.deepEqual(EXECUTION_EXIT_STATES, ['failed', 'success', 'timeout', 'canceled']);
});

test('a process has a record, streams and output', async () => {
  const service = typescript();
  const code = 'console.log("n is", 2); console.warn("w"); output({ n: 2 }); return [new Date(0)]';
  const created = await service.create({ code });
  assert.deepEqual([created.pid, created.state, created.exitState, created.startedAt], [1, 'queued', null, null]);
  const record = await service.wait(created.pid);
  const { createdAt, startedAt, finishedAt, timeoutMs, ...rest } = record;
  assert.equal(timeoutMs, 30_000);
  for (const at of [createdAt, startedAt, finishedAt]) assert.equal(new Date(at).toISOString(), at);
  assert.deepEqual(rest, {
    pid: 1,
    state: 'idle',
    exitState: 'success',
    error: null,
    errorDetails: null,
    stdout: { bytes: 7, truncated: false },
    stderr: { bytes: 2, truncated: false },
    output: { n: 2, result: ['1970-01-01T00:00:00.000Z'] },
  });
  assert.equal(await service.stdout(1), 'n is 2\n');
  assert.equal(await service.stderr(1), 'w\n');
  assert.equal(await service.code(1), code);
  assert.deepEqual(await service.output(1), record.output);
  const { items, next } = await service.list({ state: 'idle', limit: 10 });
  assert.deepEqual([items.map(({ pid, output }) => [pid, output]), next], [[[1, undefined]], null]);
  await service.shutdown();
});

test('problems are errors with a code', async () => {
  const service = typescript();
  const refused = async (call, code, message) => {
    const error = await call.then(() => assert.fail('it was not refused'), (thrown) => thrown);
    assert.ok(error instanceof ProcessError && error instanceof Error);
    assert.deepEqual([error.name, error.code, error.message], ['ProcessError', code, message]);
  };
  await refused(service.get(9), 'not-found', 'there is no process 9');
  await refused(service.create({ code: 1 }), 'bad-request', 'code must be a string, got a number');
  await refused(service.create({ code: '', timeout: 1 }), 'bad-request', "unknown option 'timeout'; did you mean 'timeoutMs'?");
  await refused(service.list({ limit: 201 }), 'bad-request', 'limit must be a whole number from 1 to 200, got 201');
  const { pid } = await service.create({ code: '', autorun: false });
  await refused(service.kill(pid), 'already-idle', 'process 1 is idle already');
  await service.run(pid);
  await service.wait(pid);
  await refused(service.run(pid), 'has-results', 'process 1 has results: force clears them');
  assert.equal((await service.run(pid, { force: true })).state, 'queued');
  await service.wait(pid);
  assert.equal(await service.delete(pid), undefined);
  await service.shutdown();
  await refused(service.create({ code: '' }), 'shutting-down', 'the service is shutting down');
  assert.throws(() => service.get('1'), TypeError);
});

test('misuse throws at once and is spelled as in JavaScript', () => {
  const message = (make) => {
    try {
      make();
    } catch ({ name, message }) {
      return `${name}: ${message}`;
    }
    return 'nothing was thrown';
  };
  assert.equal(message(() => new ProcessService({ maxQueud: 1 })), "TypeError: unknown option 'maxQueud'; did you mean 'maxQueued'?");
  assert.equal(message(() => new ProcessService({ killGraceMs: '1' })), 'TypeError: killGraceMs must be a whole number, got a string');
  assert.equal(message(() => new ProcessService({ concurrency: 0 })), 'RangeError: concurrency must be a whole number from 1 to 1000000, got 0');
  assert.equal(message(() => new ProcessService({ environment: {} })), 'TypeError: environment must have the methods execute and kill');
  assert.equal(message(() => new ProcessService({ environment: 'ts' })), 'TypeError: environment must have the methods execute and kill');
  assert.equal(message(() => new TypeScriptEnvironment({ runtime, isolation: 'thread' })), 'TypeError: runtime and isolation exclude each other');
  assert.equal(message(() => new TypeScriptEnvironment({ runtime: 1 })), 'TypeError: runtime must be a Runtime, got a number');
  assert.match(message(() => new TypeScriptEnvironment({ isolation: 'none' })), /^TypeError: isolation must be 'thread' or 'process'/);
  assert.match(message(() => new TypeScriptEnvironment({ memoryLimitBytes: 0 })), /^RangeError: memoryLimitBytes /);
});

test('events can be iterated and resumed', async () => {
  const service = typescript();
  const changes = [];
  const all = (async () => {
    for await (const { event, data } of service.events()) changes.push([event, data.pid, data.state]);
  })();
  const { pid } = await service.create({ code: 'console.log("a"); output({ a: 1 })' });
  const seen = [];
  for await (const event of service.events(pid)) seen.push(event);
  const shown = seen.map(({ event, data }) => [event, event === 'exit' ? data.exitState : data]);
  assert.deepEqual(shown, [
    ['state', { state: 'queued' }],
    ['state', { state: 'running' }],
    ['stdout', { text: 'a\n' }],
    ['output', { a: 1 }],
    ['state', { state: 'idle' }],
    ['exit', 'success'],
  ]);
  assert.deepEqual(seen.map(({ id }) => id), [1, 2, 3, 4, 5, 6]);
  const later = [];
  for await (const { id } of service.events(pid, { after: 4 })) later.push(id);
  assert.deepEqual(later, [5, 6]);
  for await (const { id } of service.events(pid)) {
    assert.equal(id, 1);
    break;
  }
  await assert.rejects(service.events(9).next(), { code: 'not-found' });
  await service.shutdown();
  await all;
  assert.deepEqual(changes, [['process', 1, 'queued'], ['process', 1, 'running'], ['process', 1, 'idle']]);
});

test('tools are functions of this side', async () => {
  const service = typescript();
  const inputSchema = { type: 'object', properties: { owner: { type: 'string' } }, required: ['owner'] };
  const description = { description: 'Lists issues.', inputSchema, outputSchema: { type: 'array' } };
  service.tool('github', 'list-issues', description, async ({ owner }, { eid, signal }) => {
    assert.ok(signal instanceof AbortSignal && !signal.aborted);
    if (owner === 'nobody') throw Object.assign(new RangeError('no such owner'), { code: 404 });
    return [{ owner, eid, none: undefined }];
  });
  const code = `import { listIssues } from 'github';
    const seen = [await listIssues({ owner: 'me' })];
    for (const owner of ['nobody', 5]) try { await listIssues({ owner }) } catch (e) { seen.push([e.name, e.message, e.code ?? null]) }
    return seen;`;
  const { output, error } = await ran(service, code);
  assert.equal(error, null);
  assert.deepEqual(output.result, [
    [{ owner: 'me', eid: 1 }],
    ['RangeError', 'no such owner', 404],
    ['TypeError', 'github.listIssues: args.owner must be string', null],
  ]);
  assert.deepEqual(service.tools(), [{ service: 'github', name: 'list-issues', identifier: 'listIssues', ...description }]);
  assert.match(service.toolTypes(), /declare module 'github' \{/);
  assert.match(await service.toolDocs('github', 'list-issues'), /import \{ listIssues \} from 'github';/);
  assert.match(await service.environmentDocs(), /^# TypeScript\n/);
  assert.throws(() => service.tool('github', 'list-issues', description, () => 1), { message: 'there is a tool github.list-issues already' });
  assert.throws(() => service.tool('github', 'x', description, 1), TypeError);
  const misspelt = { description: 'x', inputschema: {} };
  assert.throws(() => service.tool('github', 'x', misspelt, () => 1), { message: "unknown option 'inputschema'; did you mean 'inputSchema'?" });
  assert.throws(() => service.tool('github', 'x', {}, () => 1), { message: 'description must be a string, got undefined' });
  await service.shutdown();
});

test('a faulty answer is blamed on its tool', async () => {
  class Row {}
  const service = typescript();
  const answers = { row: new Row(), map: { a: [new Map()] }, big: 1n };
  for (const [name, answer] of Object.entries(answers)) service.tool('db', name, { description: '' }, () => answer);
  const code = `import { row, map, big } from 'db';
    const seen = [];
    for (const tool of [row, map, big]) try { await tool() } catch (e) { seen.push(e.message) }
    return seen;`;
  const { output, error } = await ran(service, code);
  assert.equal(error, null);
  assert.deepEqual(output.result, [
    'the answer of db.row: an instance of Row cannot be cloned',
    'the answer of db.map.a[0] is a Map, which JSON has not',
    'the answer of db.big is a bigint, which JSON has not',
  ]);
  await service.shutdown();
});

test('the signal of a call is aborted at the end of its execution', async () => {
  const service = typescript();
  const begun = deferred();
  const aborted = deferred();
  service.tool('shop', 'wait', { description: '' }, (_, { signal }) => {
    signal.addEventListener('abort', aborted.resolve);
    begun.resolve();
    return new Promise(() => {});
  });
  const { pid } = await service.create({ code: "import { wait } from 'shop'; await wait()" });
  // A tool alone does not keep the process of Node alive.
  const ended = service.wait(pid);
  await begun.promise;
  await service.kill(pid);
  assert.equal((await ended).exitState, 'canceled');
  await aborted.promise;
  await service.shutdown();
});

function deferred() {
  let resolve;
  const promise = new Promise((settle) => (resolve = settle));
  return { promise, resolve };
}

test('values and functions of this side are in the code', async () => {
  const environment = {
    globals: { rate: 2n, load: async (n) => [n, new Date(0)] },
    imports: { shop: { price: 5, tax: (n) => n * 1.2 } },
    modules: { './double.ts': 'export const double = (n: number) => n * 2;' },
  };
  const service = typescript({}, environment);
  const code = `import { price, tax } from 'shop'; import { double } from './double.ts';
    return [String(rate), await load(1), price, await tax(10), double(4)]`;
  const { error, output } = await ran(service, code);
  assert.equal(error, null);
  assert.deepEqual(output.result, ['2', [1, '1970-01-01T00:00:00.000Z'], 5, 12, 8]);
  await service.shutdown();
});

test('a service keeps its environment', () => {
  const program = `
    import { ProcessService, TypeScriptEnvironment } from 'isolane/environment';
    const make = () => new ProcessService({ environment: new TypeScriptEnvironment({ globals: { load: async () => 5 } }) });
    const service = make();
    for (let turn = 0; turn < 5; turn += 1) {
      globalThis.gc();
      await new Promise((go) => setImmediate(go));
    }
    const { pid } = await service.create({ code: 'return await load()' });
    const { error, output } = await service.wait(pid);
    console.log(JSON.stringify([error, output]));
  `;
  const args = ['--expose-gc', '--input-type=module', '--eval', program];
  const { stdout, stderr } = spawnSync(process.execPath, args, { cwd: ROOT, encoding: 'utf8', timeout: 120_000 });
  assert.equal(stdout, '[null,{"result":5}]\n', stderr);
});

/** An environment that answers with the JSON of its code, in this thread. */
class Own {
  inputs = [];
  kills = [];
  isDown = false;
  #ends = new Map();

  async execute(input, bindings) {
    this.inputs.push(input);
    const { eid, code } = input;
    bindings.setState(eid, 'running');
    const { out = [], fields, error, wait, answer, thrown, call, other } = JSON.parse(code);
    for (const chunk of out) bindings.stdout(eid, typeof chunk === 'string' ? chunk : Uint8Array.from(chunk));
    if (fields !== undefined) bindings.output(eid, fields);
    if (error !== undefined) bindings.error(eid, error === 'Error' ? new TypeError('no') : error);
    if (call !== undefined) bindings.output(eid, { answer: await bindings.invokeTool(eid, call, { n: 1 }) });
    if (other !== undefined) bindings[other[0]](...other.slice(1));
    if (wait) return await new Promise((resolve) => this.#ends.set(eid, resolve));
    if (thrown !== undefined) throw new Error(thrown);
    return answer ?? 'success';
  }

  async kill(eid) {
    this.kills.push(eid);
    this.#ends.get(eid)?.('canceled');
  }

  generateDocs() {
    return '# JSON';
  }

  async shutdown() {
    this.isDown = true;
  }
}

test('an environment of the caller runs code', async () => {
  const own = new Own();
  const service = new ProcessService({ environment: own });
  const run = (work) => ran(service, JSON.stringify(work));
  const record = await run({ out: ['a', [0xc3], [0xa4]], fields: { n: 1, ['__proto__x']: 2 } });
  assert.deepEqual(own.inputs, [{ eid: 1, code: JSON.stringify({ out: ['a', [0xc3], [0xa4]], fields: { n: 1, ['__proto__x']: 2 } }), options: { timeoutMs: 30_000 } }]);
  assert.deepEqual([record.exitState, record.output, record.startedAt === null], ['success', { n: 1, __proto__x: 2 }, false]);
  assert.equal(await service.stdout(1), 'aä');
  const ended = async (work) => {
    const { exitState, error } = await run(work);
    return [exitState, error];
  };
  assert.deepEqual(await ended({ answer: 'timeout', error: 'late' }), ['timeout', 'late']);
  assert.deepEqual(await ended({ answer: 'done' }), ['failed', "the environment returned 'done', which is no exit state"]);
  assert.deepEqual(await ended({ answer: 5 }), ['failed', 'the environment returned 5, which is no exit state']);
  assert.deepEqual(await ended({ answer: 'failed' }), ['failed', 'the environment gave no reason']);
  assert.deepEqual(await ended({ answer: 'failed', error: { message: 'm', name: 'E', filename: 'f', line: 1, column: 2 } }), ['failed', 'E: m (f:1:2)']);
  assert.deepEqual(await ended({ answer: 'failed', error: 'Error' }), ['failed', 'TypeError: no']);
  assert.deepEqual(await ended({ thrown: 'no memory' }), ['failed', 'no memory']);
  assert.deepEqual(await ended({ other: ['stdout', 6, 'x'] }), ['failed', 'TypeError: these bindings are of execution 9, not 6']);
  assert.deepEqual(await ended({ other: ['setState', 10, 'idle'] }), ['failed', "TypeError: the state must be 'queued' or 'running', got 'idle'"]);
  assert.deepEqual(await ended({ other: ['output', 11, [1]] }), ['failed', 'TypeError: output must be a plain object, got an array']);
  service.tool('math', 'double', { description: '' }, ({ n }) => n * 2);
  assert.deepEqual((await run({ call: 'math.double' })).output, { answer: 2 });
  assert.deepEqual(await ended({ call: 'math.half' }), ['failed', "TypeError: there is no tool 'math.half'; there are: math.double"]);
  const waits = await service.create({ code: JSON.stringify({ wait: true, out: ['on'] }) });
  for await (const { event } of service.events(waits.pid)) if (event === 'stdout') break;
  assert.equal((await service.kill(waits.pid)).state, 'terminating');
  assert.equal((await service.wait(waits.pid)).exitState, 'canceled');
  assert.deepEqual(own.kills, [waits.pid]);
  assert.equal(await service.environmentDocs(), '# JSON');
  await service.shutdown();
  assert.equal(own.isDown, true);
});

test('an error of the host leaves its stack there', async () => {
  const errors = [new RangeError('full'), vm.runInNewContext(`new TypeError('elsewhere')`), { message: 'given', stack: 'by hand' }];
  const environment = {
    async execute({ eid }, bindings) {
      bindings.error(eid, errors[eid - 1]);
      return 'failed';
    },
    async kill() {},
  };
  const service = new ProcessService({ environment });
  const details = [];
  for (const _ of errors) details.push((await ran(service, '')).errorDetails);
  assert.deepEqual(details, [{ name: 'RangeError', message: 'full' }, { name: 'TypeError', message: 'elsewhere' }, { message: 'given', stack: 'by hand' }]);
  await service.shutdown();
});

test('bindings refuse what is too large, and what JSON has not', async () => {
  const refusals = [];
  const environment = {
    async execute({ eid }, bindings) {
      const calls = [
        ['stdout', 'x'.repeat(4 * 1024 * 1024 + 1)],
        ['stderr', 5],
        ['output', { a: [undefined] }],
        ['output', { a: NaN }],
        ['output', { a: new Map() }],
        ['error', { name: 'E' }],
      ];
      for (const [name, value] of calls) {
        assert.throws(() => bindings[name](eid, value), ({ name: kind, message }) => refusals.push(`${kind}: ${message}`) > 0);
      }
      return 'success';
    },
    async kill() {},
  };
  const service = new ProcessService({ environment });
  const { exitState, output } = await ran(service, '');
  assert.deepEqual(refusals, [
    'RangeError: stdout takes at most 4194304 bytes in a call, got 4194305',
    'TypeError: stderr must be text or bytes, got a number',
    'TypeError: output.a[0] is undefined, which JSON has not',
    'TypeError: output.a is NaN, which JSON has not',
    'TypeError: output.a is a Map, which JSON has not',
    'TypeError: error takes text or { name?, message, stack?, filename?, line?, column? }',
  ]);
  assert.deepEqual([exitState, output, await service.stdout(1)], ['success', {}, '']);
  await service.shutdown();
});

test('an environment of this module works with other hosts', async () => {
  const environment = new TypeScriptEnvironment({ runtime });
  const calls = [];
  const note = (name) => (eid, value) => void calls.push([name, eid, value instanceof Uint8Array ? new TextDecoder().decode(value) : value]);
  const bindings = {
    setState: note('state'),
    stdout: note('stdout'),
    stderr: note('stderr'),
    output: note('output'),
    error: note('error'),
    invokeTool: async (eid, name, args) => ({ eid, name, args }),
    tools: [{ service: 'a', name: 'b', identifier: 'b', description: '' }],
  };
  const code = "import { b } from 'a'; console.log('x'); output({ answer: await b({ n: 1 }) })";
  assert.equal(await environment.execute({ eid: 7, code }, bindings), 'success');
  assert.deepEqual(calls, [
    ['state', 7, 'queued'],
    ['state', 7, 'running'],
    ['stdout', 7, 'x\n'],
    ['output', 7, { answer: { eid: 7, name: 'a.b', args: { n: 1 } } }],
  ]);
  calls.length = 0;
  assert.equal(await environment.execute({ eid: 8, code: 'for (;;);', options: { timeoutMs: 50 } }, bindings), 'timeout');
  assert.deepEqual(calls.at(-1), ['error', 8, 'the execution took longer than 50 ms']);
  await environment.kill(99);
  const running = environment.execute({ eid: 9, code: 'for (;;);' }, bindings);
  await assert.rejects(environment.execute({ eid: 9, code: '' }, bindings), { message: /^execution 9 is already (queued|running)$/ });
  await environment.kill(9);
  assert.equal(await running, 'canceled');
  assert.throws(() => environment.execute({ eid: 'x', code: '' }, bindings), TypeError);
  assert.throws(() => environment.execute({ eid: 1, code: '' }, {}), { message: 'bindings.setState must be a function, got undefined' });
  await environment.shutdown();
  assert.equal(await environment.execute({ eid: 10, code: '1' }, bindings), 'canceled');
});

test('a database keeps processes for the next service', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'isolane-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const database = join(folder, 'processes.db');
  const first = typescript({ database });
  const record = await ran(first, 'console.log("kept"); console.warn("w"); output({ n: 2 }); return 7');
  const events = [];
  for await (const event of first.events(record.pid)) events.push(event);
  assert.throws(() => typescript({ database }), {
    message: `database '${database}' is in use by another service: stop that one, or name another file`,
  });
  await first.shutdown();

  const second = typescript({ database });
  assert.deepEqual(await second.get(record.pid), record);
  assert.deepEqual(record.output, { n: 2, result: 7 });
  assert.equal(await second.stdout(record.pid), 'kept\n');
  assert.equal(await second.stderr(record.pid), 'w\n');
  assert.equal(await second.code(record.pid), 'console.log("kept"); console.warn("w"); output({ n: 2 }); return 7');
  const { output, ...listed } = record;
  assert.deepEqual(await second.list({ exitState: 'success' }), { items: [listed], next: null });
  const again = [];
  for await (const event of second.events(record.pid, { after: 2 })) again.push(event);
  assert.deepEqual(again, events.slice(2));
  assert.equal((await ran(second, '1')).pid, record.pid + 1);
  await second.shutdown();

  assert.throws(() => new ProcessService({ database: 5 }), { name: 'TypeError', message: 'database must be a string, got a number' });
  assert.throws(() => new ProcessService({ database: join(folder, 'none', 'x.db') }), { name: 'TypeError', message: /does not exist: make it/ });
  const none = typescript({ database: null });
  assert.equal((await ran(none, '1')).pid, 1);
  await none.shutdown();
});

test('kits and services with a database share SQLite, whichever is first', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'isolane-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const program = `
    import { ProcessService } from 'isolane/environment';
    import { Kit } from 'isolane/kit';
    const service = new ProcessService({ database: ${JSON.stringify(join(folder, 'processes.db'))} });
    const kit = new Kit({ db: true });
    await kit.close();
    await service.shutdown();
    console.log('both');
  `;
  const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '--eval', program], { cwd: ROOT, encoding: 'utf8' });
  assert.equal(stdout, 'both\n', stderr);
});
