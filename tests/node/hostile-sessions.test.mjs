// Sessions whose cells prepare the next one's undoing, and sessions of extreme size.
//
// In: cells that leave something hostile behind. Out: every kind of later cell ends as it does in an innocent session.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Runtime, isolation } from '../isolation.mjs';

const CEILING_MS = 120_000;
const limit = { timeout: CEILING_MS };

/** Cells that hurt whatever runs after them in the engine, or reads its values. */
const PREPARATIONS = {
  'tampered intrinsics': `
    for (const owner of [Object, Array, Promise, Function, String, Error, Map, Set, Symbol, Reflect, JSON, Proxy]) {
      for (const place of [owner, owner.prototype ?? {}]) {
        for (const key of Reflect.ownKeys(place)) {
          try { place[key] = () => { throw 'tampered'; }; } catch {}
          try { Object.defineProperty(place, key, { get() { throw 'tampered'; } }); } catch {}
        }
      }
    }`,
  'getters on the names of later cells': `
    for (const name of ['value', 'later', 'fails', 'f', 'then', 'undefined', 'console', 'report']) {
      try { Object.defineProperty(globalThis, name, { get() { throw 'a getter'; }, set() { throw 'a setter'; } }); } catch {}
      try { Object.defineProperty(Object.prototype, name, { get() { throw 'a getter'; }, set() { throw 'a setter'; } }); } catch {}
    }`,
  'a Proxy in every chain': `
    const trap = new Proxy({}, { get() { throw 'a trap'; } });
    const walls = new Proxy(Object.create(null), trap);
    for (const place of [globalThis, Function.prototype, Array.prototype, Promise.prototype, Error.prototype]) {
      try { Object.setPrototypeOf(place, walls); } catch {}
    }`,
  'promises that are never settled, and jobs that never end': `
    globalThis.pending = Array.from({ length: 1000 }, () => new Promise(() => {}).then(() => { throw 'late'; }));
    const spin = async () => { for (;;) await null; };
    globalThis.spinning = [spin(), spin()];
    (async () => { await new Promise(() => {}); })();`,
  'rejections that nobody handles': `
    for (let i = 0; i < 100; i++) Promise.reject({ get message() { throw 'again'; }, get stack() { throw 'again'; } });`,
  'thenables that resolve themselves': `
    const loop = { then(resolve) { resolve(loop); } };
    globalThis.settling = Promise.resolve(loop);`,
  'finalizers': `
    globalThis.registry = new FinalizationRegistry(() => { globalThis.finalized = true; throw 'finalized'; });
    for (let i = 0; i < 1000; i++) registry.register({}, i);
    globalThis.weak = Array.from({ length: 100 }, () => new WeakRef({}));`,
  'generators that are suspended within': `
    globalThis.gens = Array.from({ length: 100 }, () => { const g = (function* () { try { yield 1; } finally { for (;;); } })(); g.next(); return g; });
    globalThis.asyncGens = gens.map(() => { const g = (async function* () { try { yield await null; } finally { for (;;); } })(); g.next(); return g; });`,
  'hooks of stacks': `
    Error.prepareStackTrace = () => { for (;;); };
    Error.stackTraceLimit = { valueOf() { throw 'no limit'; } };
    Object.defineProperty(Error.prototype, 'stack', { get() { for (;;); } });`,
  'a frozen world': `
    for (const key of Reflect.ownKeys(globalThis)) { try { Object.freeze(globalThis[key]); Object.freeze(globalThis[key].prototype); } catch {} }
    Object.freeze(globalThis);`,
  'a heap full of holes': `
    globalThis.rows = []; for (let i = 0; i < 20000; i++) rows.push({ i, text: 'x'.repeat(i % 50) });
    rows = rows.filter((_, i) => i % 3 === 0);`,
};

for (const [name, prepare] of Object.entries(PREPARATIONS)) {
  test(`a session bears ${name}`, limit, inRuntime(async (runtime) => {
    const session = runtime.session({ language: 'javascript', globals: { given: (n) => n + 1 } });
    assert.equal((await session.run('let value = 40; function f(n) { return value + n; }')).status, 'success');
    const prepared = await session.run(`{${prepare}\n}\nnull`);
    assert.ok(['success', 'error'].includes(prepared.status), prepared.status);
    assert.equal(prepared.session, 'kept');
    const fork = await session.fork();
    for (const it of [session, fork]) await bears(it);
    await fork.close();
    await session.reset();
    assert.deepEqual(await session.names(), []);
    assert.equal((await session.run('[1, 2].map((n) => n + 1).join()')).result, '2,3');
    await session.close();
  }));
}

/** Every kind of cell, with the outcome that it has in an innocent session. */
async function bears(session) {
  const only = ({ status, session, result }) => ({ status, session, result });
  assert.deepEqual(only(await session.run('value + 2')), { status: 'success', session: 'kept', result: 42 });
  assert.deepEqual(only(await session.run('const later = value, { a, b: [c] } = { a: 1, b: { *[Symbol.iterator]() { yield 2; } } }; later + a + c')), {
    status: 'success', session: 'kept', result: 43,
  });
  // A job that never ends leaves no time for a promise of the host, as in a run; this function has none.
  assert.deepEqual(only(await session.run('await given(value)')), { status: 'success', session: 'kept', result: 41 });
  assert.deepEqual(only(await session.call('f', 3)), { status: 'success', session: 'kept', result: 43 });
  const thrown = await session.run('throw 7;');
  assert.deepEqual([thrown.status, thrown.session], ['error', 'kept']);
  const failed = await session.run('null.x');
  assert.deepEqual([failed.status, failed.session, failed.error.name], ['error', 'kept', 'TypeError']);
  assert.equal((await session.run('let let = 1')).status, 'link_error');
  const endless = await session.run('value = 0; for (;;);', { timeoutMs: 50 });
  assert.deepEqual([endless.status, endless.session, endless.error.name], ['terminated', 'rolledBack', 'Timeout']);
  const large = await session.run('value = 0; const all = []; for (;;) all[all.length] = new ArrayBuffer(1e6);');
  assert.deepEqual([large.status, large.session], ['memory', 'rolledBack']);
  assert.deepEqual(only(await session.run('value')), { status: 'success', session: 'kept', result: 40 });
  const names = (await session.names()).map(({ name, type }) => `${name}: ${type}`);
  assert.deepEqual(names, ['value: number', 'f: function', 'later: number', 'a: number', 'c: number']);
}

test('a session has a hundred thousand names', limit, inRuntime(async (runtime) => {
  const session = runtime.session({ memoryLimitBytes: 256 * 2 ** 20, checkpointBytes: 256 * 2 ** 20 });
  const declared = (from, value) => Array.from({ length: 10_000 }, (_, n) => `n${from + n} = ${value(from + n)}`).join();
  for (let from = 0; from < 100_000; from += 10_000) {
    const { status, error } = await session.run(`let ${declared(from, (n) => n)}; null`);
    assert.equal(status, 'success', error?.message);
  }
  assert.equal((await session.run('n0 + n50000 + n99999')).result, 149_999);
  const endless = await session.run(`let ${declared(0, () => -1)}, other = 1; n99999 = -1; for (;;);`, { timeoutMs: 2_000 });
  assert.deepEqual([endless.status, endless.session], ['terminated', 'rolledBack']);
  const fork = await session.fork();
  assert.equal((await fork.run('n0 = 5; n0 + n99999')).result, 100_004);
  assert.equal((await session.run('[n0, n99999, typeof other]')).text, "[ 0, 99999, 'undefined' ]");
  const names = await session.names();
  assert.equal(names.length, 10_000);
  assert.deepEqual(names.at(-1), { name: 'n9999', kind: 'let', type: 'number' });
}));

test('a cell has a megabyte', limit, inRuntime(async (runtime) => {
  const session = runtime.session({ language: 'javascript', memoryLimitBytes: 512 * 2 ** 20, checkpointBytes: 512 * 2 ** 20 });
  const cells = {
    'one text': [`const text = '${'x'.repeat(1e6)}'; text.length`, 1e6],
    'statements': [`let sum = 0; ${'sum += 1;'.repeat(110_000)} sum`, 110_000],
    'one expression': [`${'1+'.repeat(500_000)}1`, undefined],
    'blanks': [`${' '.repeat(1e6)}1`, 1],
    'a comment': [`/*${'x'.repeat(1e6)}*/ 1`, 1],
    'functions': [`${Array.from({ length: 30_000 }, (_, n) => `function f${n}() { return ${n}; }`).join('')} f29999()`, 29_999],
    'an endless one': [`sum = 0; ${'sum += 1;'.repeat(110_000)} for (;;);`, undefined, 2_000],
    'one that does not parse': [`${'sum += 1;'.repeat(110_000)} (`, undefined],
  };
  for (const [name, [source, expected, timeoutMs]] of Object.entries(cells)) {
    const outcome = await session.run(source, timeoutMs === undefined ? {} : { timeoutMs });
    if (expected !== undefined) assert.equal(outcome.result, expected, `${name}: ${outcome.error?.message}`);
    assert.notEqual(outcome.session, 'reset', name);
    assert.equal((await session.run('text.length')).result, 1e6, name);
  }
  assert.equal((await session.run('sum')).result, 110_000);
}));

test('cells that never end leave those that wait alone', limit, inRuntime(async (runtime) => {
  // More than there are homes, so some share one.
  const sessions = Array.from({ length: 80 }, (_, own) => {
    let answer;
    const asked = new Promise((resolve) => { answer = resolve; });
    return { own, answer, session: runtime.session({ globals: { ask: () => asked } }) };
  }).slice(0, isolation === 'process' ? 8 : undefined);
  await Promise.all(sessions.map(({ session, own }) => session.run(`let own = ${own};`)));
  const waiting = sessions.filter(({ own }) => own % 2 === 0);
  const spinning = sessions.filter(({ own }) => own % 2 === 1);
  const answers = waiting.map(({ session }) => session.run('own + await ask()'));
  const endless = spinning.map(({ session }) => session.run('own = -1; for (;;);', { timeoutMs: 10_000 }));
  for (const { answer, own } of waiting) answer(own);
  const results = await Promise.all(answers);
  assert.deepEqual(results.map(({ result }) => result), waiting.map(({ own }) => 2 * own));
  for (const execution of endless) execution.terminate();
  for (const [at, execution] of endless.entries()) {
    const { status } = await execution;
    assert.equal(status, 'terminated');
    assert.equal((await spinning[at].session.run('own')).result, spinning[at].own);
  }
}));

/** A test with a runtime of its own. */
function inRuntime(act) {
  return async () => {
    const runtime = new Runtime();
    try {
      await act(runtime);
    } finally {
      await runtime.close();
    }
  };
}
