// Sessions, as only Node can see them: handles, signals, contexts, held functions and promises, and what keeps the
// process alive. The table in tests/contract/sessions has the rest.

import assert from 'node:assert/strict';
import { AsyncLocalStorage } from 'node:async_hooks';
import { execFileSync, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import process from 'node:process';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Worker } from 'node:worker_threads';

import { Runtime, Session, isolation, unwrap } from '../isolation.mjs';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc');


test('a cell is a thenable handle with the result of a cell', async (t) => {
  const session = opened(t, new Session());
  const cell = session.run('1 + 1');
  assert.equal(cell.running, true);
  assert.equal(Object.prototype.toString.call(cell), '[object CellExecution]');
  const result = await cell;
  assert.equal(cell.running, false);
  assert.deepStrictEqual(Object.keys(result), ['status', 'result', 'reports', 'logs', 'durationMs', 'memoryUsedBytes', 'session', 'text', 'valueFrom']);
  assert.deepStrictEqual([result.result, result.session, result.text, result.valueFrom], [2, 'kept', '2', 'expression']);
  assert.equal(unwrap(result), 2);
});

test('a value that cannot leave is shown', async (t) => {
  const session = opened(t, new Session());
  const result = await session.run('class Point { x = 1 } new Point()');
  assert.equal(result.status, 'success');
  assert.equal(Object.hasOwn(result, 'result'), false);
  assert.match(result.uncloned, /an instance of Point cannot be cloned/);
  assert.match(result.text, /Point/);
});

test('misuse throws before anything starts', async (t) => {
  const session = opened(t, new Session());
  const refused = (call, message) => assert.throws(call, (error) => (assert.match(error.message, message), true));
  refused(() => new Session({ cell: 'queue' }), /cell.*did you mean 'cells'/);
  refused(() => new Session({ cells: 'both' }), /cells must be/);
  refused(() => new Session({ checkpointBytes: -1 }), /checkpointBytes must be a safe integer of at least 0/);
  refused(() => session.run(1), /source must be a string/);
  refused(() => session.run('1', { timeout: 1 }), /timeout.*did you mean 'timeoutMs'/);
  refused(() => session.run('1', { timeoutMs: 0 }), /timeoutMs must be a safe integer of at least 1/);
  refused(() => session.run('1', { signal: {} }), /signal must be an AbortSignal/);
  refused(() => session.call(1), /name must be a string/);
  refused(() => session.call({ name: 'f', time: 1 }), /time/);
  refused(() => session.call('f', Symbol('no')), /a symbol cannot be cloned/);
  refused(() => session.update({ global: {} }), /global.*did you mean 'globals'/);
  refused(() => session.update({ globals: { s: Symbol('no') } }), /globals\.s: a symbol cannot be cloned/);
  refused(() => session.update({ modules: { './a.ts': 1 } }), /modules\["\.\/a\.ts"\] must be a string|modules.* must be a string/);
});

test('a signal ends its cell with its reason', async (t) => {
  let begin;
  const begun = new Promise((resolve) => { begin = () => resolve(); });
  const session = opened(t, new Session({ globals: { begin } }));
  await session.run('let kept = 1');
  const controller = new AbortController();
  const cell = session.run('kept = 2; begin(); for (;;) {}', { signal: controller.signal });
  await begun;
  controller.abort('enough');
  const { status, error, session: state } = await cell;
  assert.deepStrictEqual([status, error.message, state], ['terminated', 'enough', 'rolledBack']);
  const aborted = await session.run('kept = 3', { signal: AbortSignal.abort('never') });
  assert.deepStrictEqual([aborted.status, aborted.error.message, aborted.session], ['terminated', 'never', 'kept']);
  const call = await session.call({ name: 'missing', signal: AbortSignal.abort('neither') });
  assert.deepStrictEqual([call.status, call.error.message, call.session], ['terminated', 'neither', 'kept']);
  const hostile = await session.run('1', { signal: AbortSignal.abort({ toString() { throw new Error('no'); } }) });
  assert.equal(hostile.error.message, 'a reason of type object');
  assert.equal((await session.run('kept')).result, 1);
});

test('host functions run in the context of the cell that calls them', async (t) => {
  const storage = new AsyncLocalStorage();
  const who = () => storage.getStore();
  const session = opened(t, new Session({ globals: { who, later: async () => who() } }));
  const run = (name, source) => storage.run(name, () => session.run(source));
  const results = await Promise.all([run('a', 'who()'), run('b', 'await later()'), run('c', '[who(), await later()]')]);
  assert.deepStrictEqual(results.map(({ result }) => result), ['a', 'b', ['c', 'c']]);
});

test('host functions that a held function calls run in the context of its call', async (t) => {
  const storage = new AsyncLocalStorage();
  const { kept, keep } = keeper();
  const session = opened(t, new Session({ globals: { keep, who: () => storage.getStore() } }));
  await session.run(`keep('ask', async () => [who(), await null, who()]);`);
  const asked = ['a', 'b'].map((name) => storage.run(name, () => kept.ask()));
  assert.deepStrictEqual(await Promise.all(asked), [['a', null, 'a'], ['b', null, 'b']]);
});

test('answers between cells are handed in when the next one runs', async (t) => {
  const answers = new Map();
  const load = (id) => new Promise((resolve) => answers.set(id, resolve));
  const session = opened(t, new Session({ globals: { load } }));
  assert.equal((await session.run('const page = load(1);')).status, 'success');
  await assert.rejects(session.fork(), /1/);
  answers.get(1)('text');
  assert.equal((await session.run('await page')).result, 'text');
  const fork = await session.fork();
  assert.equal((await fork.run('await page')).result, 'text');
  await fork.close();
});

test('a function that the host holds is a cell of its own between cells', async (t) => {
  const { kept, keep } = keeper();
  const session = opened(t, new Session({ globals: { keep } }));
  await session.run(`let n = 0; keep('add', (by: number) => (n += by));`);
  const { add } = kept;
  assert.equal(await add(2), 2);
  const cell = session.run('n');
  assert.equal((await cell).result, 2);
  assert.equal(await add(3), 5);
  assert.equal((await session.run('n')).result, 5);
  assert.equal((await session.call('add')).status, 'link_error');
});

test('functions and promises that were rolled back reject with the name of the end', async (t) => {
  const { kept, keep } = keeper();
  const session = opened(t, new Session({ globals: { keep } }));
  await session.run(`keep('before', () => 1);`);
  const cell = session.run(`keep('fn', () => 2); keep('promises', [new Promise(() => {})]); report(1); for (;;) {}`, { report: () => cell.terminate() });
  assert.equal((await cell).session, 'rolledBack');
  await assert.rejects(kept.fn(), { name: 'SessionRolledBack' });
  await assert.rejects(kept.promises[0], { name: 'SessionRolledBack' });
  assert.equal(await kept.before(), 1);
  await session.run(`keep('promises', [new Promise(() => {})]);`);
  await session.reset();
  await assert.rejects(kept.before(), { name: 'SessionReset' });
  await assert.rejects(kept.promises[0], { name: 'SessionReset' });
  await session.run(`keep('fn', () => 3); keep('promises', [new Promise(() => {})]);`);
  await session.close();
  await assert.rejects(kept.fn(), { name: 'SessionClosed' });
  await assert.rejects(kept.promises[0], { name: 'SessionClosed' });
});

test('a promise that one cell gave settles in another, whose events may be read first', async (t) => {
  const { kept, keep } = keeper();
  const session = opened(t, new Session({ globals: { keep: async (name, value) => keep(name, value) } }));
  const first = session.run(`
    let settle: (value: unknown) => void;
    for (const n of [1, 2, 3]) keep('number', n);
    keep('promise', new Promise((resolve) => { settle = resolve; })); 1`);
  const second = session.run('settle({ by: "another" }); await null; 2');
  // Meanwhile both run, and their events wait in two queues.
  for (const until = performance.now() + 200; performance.now() < until;);
  assert.deepStrictEqual([(await first).result, (await second).result, kept.number], [1, 2, 3]);
  assert.deepStrictEqual(await kept.promise, { by: 'another' });
});

test('a promise of the host settles in the cell after, in a copy too', async (t) => {
  let settle;
  const data = new Promise((resolve) => { settle = resolve; });
  const session = opened(t, new Session({ globals: { data } }));
  const first = session.run('let seen; data.then((value) => { seen = value; }); typeof data.then');
  assert.equal((await first).result, 'function');
  const fork = await session.fork().catch(() => undefined);
  settle({ n: 1 });
  await sleep(1);
  for (const one of [session, fork]) {
    if (one === undefined) continue;
    assert.deepStrictEqual((await one.run('await data')).result, { n: 1 });
    assert.deepStrictEqual((await one.run('seen')).result, { n: 1 });
  }
  await fork?.close();
});

test('the cause of an error is the right one after a cell that was undone', async (t) => {
  const failures = [new Error('first'), new Error('second')];
  const session = opened(t, new Session({ globals: { fail: (n) => { throw failures[n]; } } }));
  assert.equal((await session.run('fail(0)')).error.cause, failures[0]);
  const cell = session.run('for (;;) try { fail(0) } catch {}', { timeoutMs: 50 });
  assert.equal((await cell).error.name, 'Timeout');
  assert.equal((await session.run('fail(1)')).error.cause, failures[1]);
});

test('a worker thread that ends takes its sessions with it', async () => {
  const source = `
    import { parentPort } from 'node:worker_threads';
    import { Session } from ${JSON.stringify(import.meta.resolve('isolane'))};
    const session = new Session();
    await session.run('let n = 1');
    session.run('for (;;) {}');
    parentPort.postMessage('open');`;
  const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(source)}`));
  await once(worker, 'message');
  await worker.terminate();
});

test('a reset and a close end cells, and a closed session refuses', async () => {
  const session = new Session();
  const cells = [session.run('for (;;) {}'), session.run('1')];
  await session.reset();
  for (const { status, error } of await Promise.all(cells)) assert.deepStrictEqual([status, error.name], ['terminated', 'SessionReset']);
  const last = session.run('for (;;) {}');
  const closed = session.close();
  assert.equal(session.close(), closed);
  assert.throws(() => session.run('1'), { message: 'the session is closed' });
  await closed;
  assert.equal((await last).error.name, 'SessionClosed');
  await assert.rejects(session.names(), { message: 'the session is closed' });
  assert.throws(() => session.update({}), { message: 'the session is closed' });
});

test('a promise within an answer settles with it', async (t) => {
  const ask = async () => ({ page: Promise.resolve(8) });
  const session = opened(t, new Session({ globals: { ask } }));
  const limit = { timeoutMs: 60_000 };
  assert.equal((await session.run('const kept = ask(); 0')).result, 0);
  assert.equal((await session.run('await null; for (;;);', { timeoutMs: 50 })).session, 'rolledBack');
  assert.equal((await session.run('await (await kept).page', limit)).result, 8);
  await session.run('const undone = ask(); 0');
  assert.equal((await session.run('await (await undone).page; for (;;);', { timeoutMs: 200 })).session, 'rolledBack');
  assert.equal((await session.run('await (await undone).page', limit)).result, 8);
  if (isolation === 'process') return;
  const interleaved = opened(t, new Session({ globals: { ask }, cells: 'interleave' }));
  assert.equal((await interleaved.run('await (await ask()).page', limit)).result, 8);
});

test('a promise among the capabilities settles in each state of the session', async (t) => {
  const limit = { timeoutMs: 60_000 };
  const session = opened(t, new Session({ globals: { page: Promise.resolve(1) } }));
  assert.equal((await session.run('await page; for (;;);', { timeoutMs: 100 })).session, 'rolledBack');
  assert.equal((await session.run('await page', limit)).result, 1);
  await session.reset();
  assert.equal((await session.run('await page', limit)).result, 1);
  session.update({ globals: { page: Promise.resolve(2) } });
  assert.equal((await session.run('await page; for (;;);', { timeoutMs: 100 })).session, 'rolledBack');
  assert.equal((await session.run('await page', limit)).result, 2);
  const fork = opened(t, await session.fork());
  await fork.reset();
  assert.equal((await fork.run('await page', limit)).result, 2);
});

test('functions that the host calls at once all go on', async (t) => {
  const { kept, keep } = keeper();
  const later = (value) => new Promise((resolve) => setTimeout(resolve, 5, value));
  const session = opened(t, new Session({ globals: { keep, later } }));
  await session.run(`keep('ask', async (n) => { await later(n); return n; });`);
  assert.deepStrictEqual(await Promise.all([1, 2, 3, 4, 5].map((n) => kept.ask(n))), [1, 2, 3, 4, 5]);
});

test('calls that the host makes at once have turns in their order', async (t) => {
  for (const cells of ['queue', 'interleave']) {
    const { kept, keep } = keeper();
    const session = opened(t, new Session({ cells, globals: { keep } }));
    await session.run(`let a = 0; keep('next', (i) => { const at = a; a += 1; return i === at; });`);
    const calls = Array.from({ length: 2_000 }, (_, i) => kept.next(i));
    assert.equal((await Promise.all(calls)).filter((inOrder) => !inOrder).length, 0, cells);
  }
});

test('cells settle in their order, whatever they call', async (t) => {
  const runtime = new Runtime({ isolation });
  const session = opened(t, runtime.session({ globals: { hold: async () => {} } }));
  const order = [];
  const sources = [`hold(); hold(); 'a'`, `'b'`, `hold(); 'c'`, `'d'`];
  const cells = sources.map((source) => session.run(source).then(({ result }) => order.push(result)));
  // All their events are there before this thread takes one.
  while (runtime.stats().settled.success < sources.length) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
  await Promise.all(cells);
  assert.deepStrictEqual(order, ['a', 'b', 'c', 'd']);
  await runtime.close();
});

test('calls and cells have turns in the order in which they were made', async (t) => {
  for (const cells of ['queue', 'interleave']) {
    const { kept, keep } = keeper();
    const session = opened(t, new Session({ cells, globals: { keep } }));
    await session.run(`let a = 0; keep('next', () => ++a);`);
    const all = Array.from({ length: 200 }, (_, i) =>
      i % 3 === 1 ? session.run('++a').then(({ result }) => result) : kept.next());
    assert.deepStrictEqual(await Promise.all(all), all.map((_, i) => i + 1), cells);
  }
});

test('a promise within an answer that an undone cell was handed settles for a later cell', async (t) => {
  for (const cells of ['queue', 'interleave']) {
    const asked = [];
    const defer = () => new Promise((resolve) => asked.push(resolve));
    const session = opened(t, new Session({ cells, globals: { defer } }));
    await session.run('const d = defer(); 0');
    const undone = session.run('await (await d).p; for (;;);', { timeoutMs: 300 });
    asked[0]({ p: Promise.resolve(7) });
    assert.equal((await undone).session, 'rolledBack');
    assert.equal((await session.run('await (await d).p', { timeoutMs: 60_000 })).result, 7, cells);
  }
});

test('a cell that is ended before its first instruction leaves the session', async (t) => {
  const source = `${'x = x + 1;\n'.repeat(150_000)} for (;;);`;
  for (const cells of ['queue', 'interleave']) {
    const session = opened(t, new Session({ cells, checkpointBytes: 0 }));
    await session.run('let x = 1;');
    const ended = await session.run(source, { timeoutMs: 1 });
    assert.deepStrictEqual([ended.status, ended.session], ['terminated', 'kept'], cells);
    assert.equal((await session.run('x')).result, 1);
  }
});

test('the sandbox lets go of functions that an undone cell gave beside one that completed', async (t) => {
  let answer;
  const wait = () => new Promise((resolve) => { answer = resolve; });
  const session = opened(t, new Session({ cells: 'interleave', globals: { take: () => {}, wait } }));
  const undo = async () => {
    const cell = session.run('for (let i = 0; i < 100; i += 1) take(() => i); await wait();');
    await session.run('0');
    cell.terminate();
    assert.equal((await cell).session, 'rolledBack');
    answer();
    for (let turn = 0; turn < 5; turn += 1) {
      await new Promise((turned) => setImmediate(turned));
      collect();
    }
    return (await session.run('0')).memoryUsedBytes;
  };
  const first = await undo();
  let last = 0;
  for (let cell = 0; cell < 20; cell += 1) last = await undo();
  // Each of the 2,000 functions takes more than 100 bytes.
  assert.ok(last - first < 200_000, `${first} ${last}`);
});

test('resets at once are all done', async (t) => {
  const session = opened(t, new Session());
  for (let round = 0; round < 20; round += 1) {
    const cell = session.run('let kept = 1; for (;;) {}');
    await Promise.all([session.reset(), session.reset(), session.names().catch(() => {}), session.reset()]);
    assert.equal((await cell).error.name, 'SessionReset');
    assert.deepStrictEqual(await session.names(), []);
  }
});

test('names have kinds, types and sizes', async (t) => {
  const session = opened(t, new Session());
  await session.run('const list = [1, 2]; let n: number; function f() {}');
  assert.deepStrictEqual(await session.names(), [
    { name: 'list', kind: 'const', type: 'Array', size: 2 },
    { name: 'n', kind: 'let', type: 'undefined' },
    { name: 'f', kind: 'function', type: 'function' },
  ]);
});

test('a fork shares host functions, and nothing else', async (t) => {
  const seen = [];
  const session = opened(t, new Session({ globals: { see: (value) => { seen.push(value); } } }));
  await session.run('let n = 1');
  const fork = await session.fork();
  await fork.run('n += 1; see(n)');
  await session.run('see(n)');
  assert.deepStrictEqual(seen, [2, 1]);
  fork.update({ globals: { extra: (n) => n * 2 } });
  assert.equal((await fork.run('extra(n)')).result, 4);
  await fork.close();
});

test('a runtime closes its sessions', async () => {
  const runtime = new Runtime();
  const { kept, keep } = keeper();
  const session = runtime.session({ globals: { keep } });
  await session.run(`keep('fn', () => 1);`);
  const cell = session.run('for (;;) {}');
  await runtime.close();
  assert.equal((await cell).status, 'terminated');
  await assert.rejects(kept.fn(), { name: 'SessionClosed' });
  assert.throws(() => session.run('1'), { message: /closed/ });
});

test('a session that is dropped is freed, also with a callback in a host function', { timeout: 60_000 }, async (t) => {
  const runtime = new Runtime();
  t.after(() => runtime.close());
  let weak;
  await (async () => {
    let callback;
    const session = runtime.session({ globals: { on: (fn) => { callback = fn; }, never: () => new Promise(() => {}) } });
    await session.run('on(() => 1); void never();');
    assert.equal(await callback(), 1);
    assert.equal(runtime.stats().sessions, 1);
    weak = new WeakRef(session);
  })();
  // In this order: a reference that was looked at keeps its object until the next turn.
  for (;;) {
    await sleep(10);
    collect();
    if (weak.deref() === undefined && runtime.stats().sessions === 0) return;
  }
});

test('an open session does not keep the process alive, a cell in flight does', () => {
  const program = (rest) => `import { Session } from 'isolane'; let f; const session = new Session({ globals: { keep: (g) => { f = g; } } }); console.log(await session.run('1').then((r) => r.status)); ${rest}`;
  const run = (rest) => execFileSync(process.execPath, ['--input-type=module', '-e', program(rest)], { encoding: 'utf8', timeout: 120_000, cwd: new URL('../..', import.meta.url) });
  assert.equal(run(''), 'success\n');
  assert.equal(run(`session.run('2').then((r) => console.log(r.result));`), 'success\n2\n');
  assert.equal(run(`await session.run('keep(() => 3)'); f().then((value) => console.log(value));`), 'success\n3\n');
});

/** A host function that keeps values of the sandbox under names. */
function keeper() {
  const kept = {};
  return { kept, keep: (name, value) => { kept[name] = value; } };
}

/** The session, which is closed after the test. */
function opened(t, session) {
  t.after(() => session[Symbol.asyncDispose]());
  return session;
}

test('a global that an update replaces is freed', async (t) => {
  const session = opened(t, new Session({ memoryLimitBytes: 16 * 1024 * 1024 }));
  for (let edition = 0; edition < 40; edition += 1) {
    session.update({ globals: { text: 'y'.repeat(1e6) + edition } });
    const { status, result } = await session.run('text.length');
    assert.deepStrictEqual([status, result], ['success', 1e6 + `${edition}`.length]);
  }
});

test('no end of a sandbox that goes on calling asynchronous functions ends the process', { timeout: 600_000 }, () => {
  const ends = {
    'a session is closed': 'const s = new Session({ globals: { f } }); setTimeout(() => s.close(), 200); await s.run(code);',
    'a runtime is closed': 'const r = new Runtime(); const s = r.session({ globals: { f } }); setTimeout(() => r.close(), 200); await s.run(code);',
    'a cell is ended': 'const s = new Session({ globals: { f } }); await s.run(code, { signal: AbortSignal.timeout(200) });',
    'a call is aborted': 'const e = new IsolateCodeExecutor({ globals: { f } }); await e.executeCode({ signal: AbortSignal.timeout(200) }, { code }).catch(() => {});',
    'an executor is closed': 'const e = new IsolateCodeExecutor({ globals: { f } }); setTimeout(() => e.close(), 200); await e.executeCode(undefined, { code }).catch(() => {});',
  };
  for (const [name, end] of Object.entries(ends)) {
    const program = `
      import { Runtime, Session } from './tests/isolation.mjs';
      import { IsolateCodeExecutor } from 'isolane/executors';
      let calls = 0;
      const f = async () => { calls += 1; if (calls % 2 === 0) { await null; throw new Error('late'); } };
      const code = 'for (;;) { f(); }';
      ${end}
      // A rejection is unhandled only after some turns.
      for (let turn = 0; turn < 20; turn += 1) await new Promise(setImmediate);
      console.log('alive');`;
    const { status, stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', program], { encoding: 'utf8', timeout: 120_000, cwd: new URL('../..', import.meta.url) });
    assert.deepStrictEqual([status, stdout, stderr], [0, 'alive\n', ''], name);
  }
});

test('one signal ends as many cells as there are, and warns of nothing', async () => {
  const warnings = [];
  const warned = (warning) => warnings.push(warning.message);
  process.on('warning', warned);
  const controller = new AbortController();
  const { signal } = controller;
  const session = new Session();
  const cells = Array.from({ length: 30 }, () => session.run('await new Promise(() => {})', { signal }));
  controller.abort(new Error('all'));
  const messages = (await Promise.all(cells)).map(({ status, error }) => `${status}: ${error.message}`);
  assert.deepStrictEqual(new Set(messages), new Set(['terminated: Error: all']));
  await new Promise((turned) => setImmediate(turned));
  process.off('warning', warned);
  assert.deepStrictEqual(warnings, []);
  await session.close();
});

test('cells of one signal that wait behind others are ended before they begin', async () => {
  const session = new Session({ globals: { wait: () => new Promise(() => {}) } });
  await session.run('let ran = 0');
  const controller = new AbortController();
  const { signal } = controller;
  const first = session.run('await wait()', { signal });
  const cells = Array.from({ length: 5_000 }, () => session.run('ran += 1', { signal }));
  controller.abort();
  for (const { status, session: state } of await Promise.all([first, ...cells])) {
    assert.equal(status, 'terminated');
    assert.ok(state === 'kept' || state === 'rolledBack');
  }
  assert.equal((await session.run('ran')).result, 0);
  await session.close();
});

test('the host lets go of functions and promises that an undone cell was given', async (t) => {
  const given = [];
  const make = () => {
    const value = { fn: () => 1, promise: new Promise(() => {}) };
    given.push(new WeakRef(value.fn), new WeakRef(value.promise));
    return value;
  };
  const keep = () => {};
  const session = opened(t, new Session({ globals: { make, keep, load: async () => make() } }));
  await session.run('const kept = make(); const loaded = await load()');
  const kept = given.splice(0);
  const undone = await session.run('make(); await load(); keep(kept.fn); for (;;);', { timeoutMs: 300 });
  assert.equal(undone.session, 'rolledBack');
  await session.run('let argument; function take(value) { argument = value; for (;;); }');
  await (async () => {
    const argument = () => 1;
    given.push(new WeakRef(argument));
    const ended = await session.call({ name: 'take', timeoutMs: 300 }, argument);
    assert.equal(ended.session, 'rolledBack');
  })();
  assert.equal(given.length, 5);
  for (let turn = 0; turn < 200 && given.some((reference) => reference.deref() !== undefined); turn += 1) {
    await new Promise((turned) => setImmediate(turned));
    collect();
  }
  assert.deepStrictEqual(given.map((reference) => reference.deref()), given.map(() => undefined));
  assert.ok(kept.every((reference) => reference.deref() !== undefined));
  assert.equal((await session.run('kept.fn() + loaded.fn()')).result, 2);
  await session.reset();
  for (let turn = 0; turn < 200 && kept.some((reference) => reference.deref() !== undefined); turn += 1) {
    await new Promise((turned) => setImmediate(turned));
    collect();
  }
  assert.deepStrictEqual(kept.map((reference) => reference.deref()), kept.map(() => undefined));
});

test('questions and cells that interleave all have their answers', async () => {
  for (let round = 0; round < 20; round += 1) {
    const back = async (f) => {
      await sleep(1);
      return f(1);
    };
    const session = new Session({ cells: 'interleave', globals: { back } });
    const cells = [1, 2].map((a) => session.run(`const a${a} = ${a}; await back((n) => n + a${a})`));
    const names = Array.from({ length: 5 }, () => session.names());
    assert.deepStrictEqual((await Promise.all(cells)).map(({ result }) => result), [2, 3]);
    for (const known of await Promise.all(names)) assert.ok(known.every(({ type }) => type === 'number'));
    await session.close();
  }
});

test('names are read while a cell in flight is ended', async () => {
  const never = () => new Promise(() => {});
  const session = new Session({ cells: 'interleave', globals: { never } });
  await session.run(Array.from({ length: 2_000 }, (_, n) => `const n${n} = new Map();`).join('\n'));
  for (let round = 0; round < 40; round += 1) {
    const cell = session.run('await never()');
    await session.names();
    const names = [1, 2, 3].map(() => session.names());
    // At other moments in each round, also while they are read.
    for (const until = performance.now() + (round % 12) / 4; performance.now() < until;);
    cell.terminate('enough');
    assert.equal((await cell).session, 'rolledBack');
    for (const known of await Promise.all(names)) assert.equal(known.length, 2_000);
  }
  await session.close();
});

test('a signal that refuses its listener ends the cell that nobody gets', async () => {
  const signal = {
    aborted: false,
    addEventListener() {
      throw new RangeError('no listeners');
    },
    removeEventListener() {},
  };
  const session = new Session();
  assert.throws(() => session.run('for (;;) ;', { signal }), { name: 'RangeError', message: 'no listeners' });
  assert.equal((await session.run('1 + 1')).result, 2);
  await session.close();
});
