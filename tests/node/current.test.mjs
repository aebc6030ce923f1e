// The signal of a host function's run: when it is aborted, and who may ask for it.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { after, test } from 'node:test';

import { current } from 'isolane';

import { Runtime, Session, runCode } from '../isolation.mjs';

const CEILING = { timeout: 60_000 };
const OUTSIDE = /^isolane\.current\(\) belongs into a host function .* begin the function with const \{ signal \} = current\(\), before the first await/;

/** A server that answers nothing, and tells of each request and of its end. */
const server = createServer();
await once(server.listen(0, '127.0.0.1'), 'listening');
const url = `http://127.0.0.1:${server.address().port}/`;
after(() => {
  server.closeAllConnections();
  server.close();
});

const load = async () => (await fetch(url, { signal: current().signal })).text();

/** The request that comes next, as a promise of its end. */
async function requested() {
  const [request, response] = await once(server, 'request');
  return { ended: once(response, 'close'), answer: (text) => response.end(text), request };
}

test('outside of a host function current throws', CEILING, async () => {
  assert.throws(current, { name: 'Error', message: OUTSIDE });
  const { error } = await runCode('await late()', { globals: { late: async () => { await null; return current(); } } });
  assert.match(error.message, OUTSIDE);
  const { result } = await runCode('export default same()', { globals: { same: () => current() === current() && current().signal === current().signal } });
  assert.equal(result, true);
  assert.throws(current, { message: OUTSIDE });
});

test('a run that is terminated aborts the fetch of its host function', CEILING, async () => {
  const run = runCode('await load()', { globals: { load } });
  const { ended } = await requested();
  run.terminate('the client has gone');
  assert.equal((await run).status, 'terminated');
  await ended;
});

test('the reason of the signal says why', CEILING, async () => {
  let ask;
  const asked = new Promise((resolve) => { ask = resolve; });
  const run = runCode('await wait()', { globals: { wait: () => new Promise(() => ask(current())) } });
  const call = await asked;
  const { signal } = call;
  assert.equal(signal.aborted, false);
  const aborted = once(signal, 'abort');
  run.terminate('enough');
  await aborted;
  assert.deepStrictEqual([signal.reason.name, signal.reason.message], ['AbortError', 'the run was ended: enough']);
  assert.equal(call.signal, signal);
});

test('a signal that is made after the end is aborted', CEILING, async () => {
  let ask;
  const asked = new Promise((resolve) => { ask = resolve; });
  const run = runCode('await wait()', { globals: { wait: () => new Promise(() => ask(current())) } });
  const call = await asked;
  run.terminate();
  await run;
  assert.equal(call.signal.aborted, true);
});

test('the memory limit and the close of the runtime abort the signal', CEILING, async () => {
  const runtime = new Runtime();
  const signals = [];
  const wait = () => { signals.push(current().signal); return new Promise(() => {}); };
  const full = await runtime.runCode('wait(); const all = []; for (;;) all.push(new Array(1e5).fill(1));', { globals: { wait }, memoryLimitBytes: 16 << 20 });
  assert.equal(full.status, 'memory');
  assert.deepStrictEqual(signals.map((signal) => signal.aborted), [true]);
  let begin;
  const begun = new Promise((resolve) => { begin = resolve; });
  const run = runtime.runCode('wait(); await begin()', { globals: { wait, begin: () => { begin(); return new Promise(() => {}); } } });
  await begun;
  await runtime.close();
  await run;
  assert.deepStrictEqual(signals.map((signal) => signal.aborted), [true, true]);
});

test('a run that ends by itself lets its calls go on', CEILING, async () => {
  let done;
  const loaded = new Promise((resolve) => { done = resolve; });
  const globals = { load: () => load().then(done) };
  const sent = requested();
  for (const source of ['load(); export default 1', 'load(); throw new Error("x")']) assert.notEqual((await runCode(source, { globals })).status, 'terminated');
  (await sent).answer('page');
  assert.equal(await loaded, 'page');
});

test('it works behind an await of a function that has asked, and in what that calls', CEILING, async () => {
  const deep = async () => { await null; return current(); };
  const late = async () => { const first = current(); await null; return first === current() && first === await deep(); };
  const source = 'export default await Promise.all([late(), late()])';
  assert.deepStrictEqual((await runCode(source, { globals: { late } })).result, [true, true]);
});

test('a run within a host function has a signal of its own', CEILING, async () => {
  const calls = [];
  const note = () => { calls.push(current()); };
  const late = async () => { await null; calls.push(current()); };
  const inner = async () => {
    note();
    await runCode('note(); await late();', { globals: { note, late } });
    note();
  };
  assert.equal((await runCode('export default await inner()', { globals: { inner } })).status, 'success');
  const [outer, first, second, last] = calls;
  assert.equal(calls.length, 4);
  assert.equal(outer, last);
  assert.notEqual(outer, first);
  assert.equal(first, second);
});

test('a cell that is ended aborts its calls, and no others', CEILING, async () => {
  const session = new Session({ globals: { load } });
  let sent = requested();
  assert.equal((await session.run('const first = load(); 1')).session, 'kept');
  const first = await sent;
  sent = requested();
  const cell = session.run('await load()');
  const second = await sent;
  cell.terminate();
  assert.equal((await cell).session, 'rolledBack');
  await second.ended;
  first.answer('kept');
  assert.equal((await session.run('await first')).result, 'kept');
  await session.close();
});

test('the reset and the close of a session abort the calls of its cells', CEILING, async () => {
  const session = new Session({ globals: { load } });
  for (const end of ['reset', 'close']) {
    const sent = requested();
    assert.equal((await session.run('globalThis.page = load(); 1')).session, 'kept');
    const { ended } = await sent;
    await session[end]();
    await ended;
  }
});
