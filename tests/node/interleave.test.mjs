// Cells that interleave, at moments that are hard to get right.
//
// In: cells that wait for the host while others compute, end or do not fit. Out: every cell, call and question settles,
// and the session goes on.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Runtime } from '../isolation.mjs';

const limit = { timeout: 120_000 };
const LIMIT_BYTES = 24 << 20;
/** Two of them do not fit into the limit beside each other. */
const LARGE = 'y'.repeat(12 << 20);
const BUSY = 'const block = new Uint8Array(5 << 20); busy(); while (!given()); block.length';

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

function inRuntime(body) {
  return async () => {
    const runtime = new Runtime();
    try {
      await body(runtime);
    } finally {
      await runtime.close();
    }
  };
}

/** A session whose busy cell says when it computes. */
function openSession(runtime, { globals, ...options }) {
  let busy;
  const begun = new Promise((resolve) => { busy = () => resolve(); });
  const answers = { given: false };
  const session = runtime.session({ ...options, memoryLimitBytes: LIMIT_BYTES, globals: { ...globals, busy, given: () => answers.given } });
  return { session, begun, answers };
}

/** Gives two answers that do not fit beside each other while a cell computes, and waits for it. */
async function answersDuring({ session, begun, answers }, first, second) {
  const cell = session.run(BUSY);
  await begun;
  const settled = [first(LARGE)];
  await sleep(60);
  settled.push(second(LARGE));
  await sleep(60);
  answers.given = true;
  return [await cell, ...(await Promise.allSettled(settled))];
}

test('a session goes on when many waiting cells end at once', limit, inRuntime(async (runtime) => {
  for (let round = 0; round < 6; round += 1) {
    const session = runtime.session({ cells: 'interleave', globals: { never: () => new Promise(() => {}) } });
    await session.run('let kept = 1');
    const cells = Array.from({ length: 150 }, () => session.run('await never()', { timeoutMs: 100 }));
    for (const { status } of await Promise.all(cells)) assert.equal(status, 'terminated');
    assert.equal((await session.run('kept')).result, 1);
    await session.close();
  }
}));

test('names() has its answer while cells wake', limit, inRuntime(async (runtime) => {
  for (let round = 0; round < 4; round += 1) {
    const session = runtime.session({ cells: 'interleave', globals: { ping: async (value) => value, wait: sleep } });
    await session.run('let n = 1');
    const source = 'for (let i = 0; i < 200; i += 1) { await ping(i); if (i % 20 === 0) await wait(1); }';
    const cells = Array.from({ length: 4 }, () => session.run(source));
    for (let asked = 0; asked < 40; asked += 1) {
      const names = await session.names();
      assert.equal(names[0].name, 'n');
      await sleep(Math.random() * 2);
    }
    for (const { status, error } of await Promise.all(cells)) assert.equal(status, 'success', error?.message);
    await session.close();
  }
}));

test('an answer that does not fit costs the cell that waits for it', limit, inRuntime(async (runtime) => {
  const answers = [];
  const load = () => new Promise((resolve) => answers.push(resolve));
  const opened = openSession(runtime, { cells: 'interleave', globals: { load } });
  const { session } = opened;
  const waiting = [session.run('(await load()).length'), session.run('(await load()).length')];
  while (answers.length < 2) await sleep(1);
  const [busy] = await answersDuring(opened, ...answers);
  assert.equal(busy.status, 'success', busy.error?.message);
  const ends = (await Promise.all(waiting)).map(({ status, error }) => error?.name ?? status);
  assert.ok(ends.includes('MemoryLimit'), ends.join());
  assert.equal((await session.run('1')).session, 'kept');
}));

for (const cells of ['queue', 'interleave']) {
  test(`a call that does not fit is settled, and costs no state: ${cells}`, limit, inRuntime(async (runtime) => {
    let held;
    const keep = (fn) => { held = fn; };
    const opened = openSession(runtime, { cells, globals: { keep } });
    const { session } = opened;
    await session.run('let q = 1; keep((text) => text.length)');
    const calls = await answersDuring(opened, held, held);
    assert.ok(calls.some(({ reason }) => reason?.name === 'MemoryLimit'), JSON.stringify(calls));
    const after = await session.run('q');
    assert.deepEqual([after.result, after.session], [1, 'kept']);
  }));
}

test('an answer that does not fit during a later cell rejects', limit, inRuntime(async (runtime) => {
  const answers = [];
  const load = () => new Promise((resolve) => answers.push(resolve));
  const opened = openSession(runtime, { globals: { load } });
  const { session } = opened;
  await session.run('const pages = [load(), load()]; for (const page of pages) page.catch(() => {}); 0');
  await answersDuring(opened, ...answers);
  const seen = await session.run("(await Promise.all(pages.map((page) => page.then(() => 'fits', (error) => error.name)))).join()");
  assert.ok(seen.status === 'success' && seen.result.includes('MemoryLimit'), JSON.stringify(seen.error ?? seen.result));
}));

test('a cell whose code is over goes on when another one is rolled back', limit, inRuntime(async (runtime) => {
  const opened = new Map();
  const gate = (name) => new Promise((resolve) => { opened.set(name, resolve); });
  let reached;
  const report = (name) => { if (name === reached?.name) reached.resolve(); };
  const session = runtime.session({ cells: 'interleave', globals: { gate }, report });
  const until = (name) => new Promise((resolve) => { reached = { name, resolve }; });
  await session.run('const done = []');
  const waiting = session.run("const both = Promise.all([gate('one'), gate('two')]); await gate('first'); done.push('first'); both");
  const other = session.run("await gate('second'); done.push('second')");
  const loop = session.run("await gate('loop'); report('loops'); for (;;);");
  while (opened.size < 5) await sleep(5);
  opened.get('first')();
  await sleep(50);
  opened.get('second')();
  assert.equal((await other).status, 'success');
  // Its promise takes this answer, and code of the cell itself has no part in that.
  opened.get('one')(1);
  await sleep(50);
  const loops = until('loops');
  opened.get('loop')();
  await loops;
  loop.terminate();
  const { status, session: state } = await loop;
  assert.deepEqual([status, state], ['terminated', 'rolledBack']);
  opened.get('two')(2);
  assert.deepEqual((await waiting).result, [1, 2]);
  assert.deepEqual((await session.run('done')).result, ['first', 'second']);
  await session.close();
}));
