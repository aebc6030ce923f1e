// Functions and promises across the boundary, as the host sees them.

import assert from 'node:assert/strict';
import { AsyncLocalStorage } from 'node:async_hooks';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import vm from 'node:vm';

import { runCode } from '../isolation.mjs';

test('callbacks run in the asynchronous context of their runCode call', async () => {
  const storage = new AsyncLocalStorage();
  const seen = [];
  const start = (name) => storage.run(name, () => runCode(
    `say('sync'); await later(); say('after'); report(1);
     export default async () => { await wait(); say('end') }`,
    {
      report: () => void seen.push([name, 'report', storage.getStore()]),
      globals: {
        say: (what) => void seen.push([name, what, storage.getStore()]),
        later: async () => { await null; seen.push([name, 'later', storage.getStore()]); },
        wait: () => new Promise((resolve) => setTimeout(resolve, 1)),
      },
    },
  ));
  await Promise.all([start('a'), start('b')]);
  assert.equal(seen.length, 10);
  for (const [name, , store] of seen) assert.equal(store, name);
});

test('code of values runs in the asynchronous context of its run, too', async () => {
  const storage = new AsyncLocalStorage();
  const seen = [];
  const note = (where) => void seen.push([where, storage.getStore()]);
  const globals = {
    query: () => ({ then(resolve) { note('then'); resolve(1); } }),
    lazy: () => ({ get value() { note('getter'); return 1; } }),
    lazyLater: async () => ({ get value() { note('later getter'); return 1; } }),
  };
  const start = (name) =>
    storage.run(name, () => runCode('for (let i = 0; i < 20; i++) { await query(); lazy(); await lazyLater() }', { globals }));
  await Promise.all(['a', 'b', 'c'].map(start));
  assert.equal(seen.length, 180);
  for (const where of ['then', 'getter', 'later getter']) {
    for (const name of ['a', 'b', 'c']) {
      assert.equal(seen.filter(([at, store]) => at === where && store === name).length, 20, `${where} ${name}`);
    }
  }
});

test('the `then` of a thenable is read once', async () => {
  let reads = 0;
  const thenable = () => Object.defineProperty({}, 'then', { get() { reads += 1; return (resolve) => resolve(reads); } });
  const { result } = await runCode('export default await thenable()', { globals: { thenable } });
  assert.deepEqual([result, reads], [1, 1]);
});

test('a promise with a `then` of its own settles inside', async () => {
  const at = (act) => Object.assign(Promise.resolve(0), { then: act });
  const globals = {
    early: at((resolve) => resolve(5)),
    broken: at(() => { throw new RangeError('broken'); }),
    again: () => globals.broken,
  };
  const caught = 'await p.catch((e) => `${e}`)';
  const source = `const read = async (p) => ${caught}; export default [await early, await read(broken), await read(broken)]`;
  const { result } = await runCode(source, { globals });
  assert.deepEqual(result, [5, 'RangeError: broken', 'RangeError: broken']);
});

test('nothing that outlives a run keeps its reports, its sink or its functions alive', { timeout: 60_000 }, async () => {
  setFlagsFromString('--expose-gc');
  const gc = vm.runInNewContext('gc');
  const pending = new Promise(() => {});
  const kept = [pending];
  const refs = [];
  const start = async (source, globals) => {
    const sink = () => {};
    const execution = runCode(`report({}); ${source}; export default 1`, { report: sink, globals });
    const { status, reports } = await execution;
    assert.equal(status, 'success');
    for (const value of [sink, reports[0], ...Object.values(globals)]) if (value !== pending) refs.push(new WeakRef(value));
  };
  await start('', { pending });
  await start('later()', { later: () => pending });
  await start('give(() => 1)', { give: (fn) => void kept.push(fn) });
  await start('give(new Promise(() => {}))', { give: (promise) => void kept.push(promise) });
  assert.throws(() => runCode('', { globals: { pending, bad: Symbol('no'), f: () => {} } }));
  // The next run takes the place of the last in what is kept for the next message.
  assert.equal((await runCode('export default 1')).status, 'success');
  const alive = () => refs.filter((ref) => ref.deref() !== undefined).length;
  while (alive() > 0) {
    await new Promise((resolve) => setTimeout(resolve, 5));
    gc();
  }
  assert.equal(kept.length, 3);
});

test('values of settled promises do not stay with a host that keeps none', { timeout: 60_000 }, async () => {
  setFlagsFromString('--expose-gc');
  const gc = vm.runInNewContext('gc');
  let alive = 0;
  const held = [];
  const registry = new FinalizationRegistry(() => { alive -= 1; });
  const note = (value) => {
    alive += 1;
    registry.register(value);
  };
  const globals = {
    take: (promise) => void promise.then(note, note),
    turn: async () => {
      for (let turn = 0; turn < 1_000 && (turn === 0 || alive > 2); turn += 1) {
        gc();
        await new Promise((resolve) => setImmediate(resolve));
      }
      held.push(alive);
    },
  };
  const source = `
    const value = new Uint8Array(1e6);
    for (let round = 0; round < 60; round += 1) { take(round % 2 ? Promise.resolve(value) : Promise.reject(value)); await turn(); }
    export default 1;`;
  const { status, error } = await runCode(source, { globals, memoryLimitBytes: 16 * 2 ** 20 });
  assert.equal(status, 'success', error?.message);
  assert.ok(Math.max(...held) <= 2, `${held} are alive`);
});

test('a function handed back is the host’s own again, and a sandbox function the same each time', async () => {
  const got = [];
  const own = () => 'own';
  const { status } = await runCode('take(own); const f = () => 1; take(f); take({ f }); take(f); export default 1', {
    globals: { own, take: (v) => void got.push(v) },
  });
  assert.equal(status, 'success');
  assert.equal(got[0], own);
  assert.equal(typeof got[1], 'function');
  assert.equal(got[1].name, 'f');
  assert.equal(got[2].f, got[1]);
  assert.equal(got[3], got[1]);
});

test('a sandbox function works while the run runs and rejects afterwards', async () => {
  let kept;
  const handle = runCode('keep(async (a, b) => ({ sum: a + b })); await never()', {
    globals: { keep: (f) => { kept = f; }, never: () => new Promise(() => {}) },
  });
  while (kept === undefined) await new Promise((resolve) => setImmediate(resolve));
  assert.deepStrictEqual(await kept(1, 2), { sum: 3 });
  await assert.rejects(kept(1, Symbol('s')), { name: 'SerializationError', message: 'arguments[1]: a symbol cannot be cloned' });
  const pending = handle.running && kept(3, 4);
  handle.terminate();
  await handle;
  await pending.catch(() => {});
  await assert.rejects(kept(1, 2), { message: /run has settled/ });
});

test('nothing of a run becomes an unhandled rejection', async () => {
  const unhandled = [];
  const listen = (reason) => unhandled.push(reason);
  process.on('unhandledRejection', listen);
  const handle = runCode(
    `take(Promise.reject(new Error('inside'))); take(new Promise(() => {}));
     call(() => { throw new Error('callback') }); call(() => new Promise(() => {}));
     await wait()`,
    {
      globals: {
        take: () => {},
        call: (f) => { f(); },
        wait: () => new Promise((resolve) => setTimeout(resolve, 10)),
        rejected: Promise.reject(new Error('given')),
      },
    },
  );
  await handle;
  await new Promise((resolve) => setTimeout(resolve, 20));
  process.off('unhandledRejection', listen);
  assert.deepStrictEqual(unhandled, []);
});

test('a throw of a host function, or a result that cannot be cloned, arrives inside as an error', async () => {
  class Denied extends TypeError { name = 'Denied'; code = 'E_DENIED'; }
  const probe = `const tell = (e) => e instanceof Error ? [e instanceof TypeError, e.name, e.message, e.code, String(e.stack).includes('tests/node')] : e;
    const out = [];
    for (const f of [throws, value, pool, symbolThrown, rejects, thenable, hostileGetter, proxy]) try { out.push(await f()) } catch (e) { out.push(tell(e)) }
    export default out`;
  const { result } = await runCode(probe, {
    globals: {
      throws: () => { throw new Denied('no entry'); },
      value: () => { throw { reason: 1 }; },
      pool: () => ({ deep: [new (class Pool {})()] }),
      symbolThrown: () => { throw Symbol('s'); },
      rejects: async () => { throw new RangeError('async'); },
      thenable: () => ({ then(resolve) { resolve('thenable'); } }),
      hostileGetter: () => ({ get a() { throw new Error('getter'); } }),
      proxy: () => new Proxy({}, { get: () => assert.fail('a trap ran') }),
    },
  });
  assert.deepStrictEqual(result, [
    [true, 'Denied', 'no entry', 'E_DENIED', false],
    { reason: 1 },
    [true, 'SerializationError', 'the answer of pool.deep[0]: an instance of Pool cannot be cloned', undefined, false],
    [true, 'SerializationError', 'error: a symbol cannot be cloned', undefined, false],
    [false, 'RangeError', 'async', undefined, false],
    'thenable',
    [false, 'Error', 'getter', undefined, false],
    [true, 'SerializationError', 'the answer of proxy: a Proxy cannot be cloned', undefined, false],
  ]);
});

test('an answer that cannot be cloned is blamed on the function that gave it, however it arrives', async () => {
  class Response {}
  const probe = `const out = [];
    for (const f of [soon, promised, nested.get, own]) try { await f() } catch (e) { out.push(e.message) }
    try { await inside().p } catch (e) { out.push(e.message) }
    export default out`;
  const promised = () => Promise.resolve(new Response());
  const globals = { soon: async () => new Response(), promised, nested: { get: () => new Response() }, own: promised, inside: () => ({ p: promised() }) };
  const { result } = await runCode(probe, { globals });
  assert.deepStrictEqual(
    result,
    ['soon', 'promised', 'get', 'promised', 'inside'].map((name) => `the answer of ${name}: an instance of Response cannot be cloned`),
  );
});

test('functions are named by their key, have no this, and sit at any depth', async () => {
  const { result } = await runCode(
    'export default async (f) => [a.b.c.name, a.b.c.length, a.b.c(), f.name, (await f())().x, typeof new Map(m).get("k")]',
    {
      globals: {
        a: { b: { c: function original() { return this === undefined; } } },
        m: new Map([['k', () => 1]]),
      },
      execute: { args: [function given() { return async () => ({ x: 1 }); }] },
    },
  );
  assert.deepStrictEqual(result.slice(0, 4), ['c', 0, true, 'given']);
  assert.equal(result[5], 'function');
});

test('a promise that has settled may cross again', { timeout: 120_000 }, async () => {
  const take = async (promise) => promise;
  const source = 'const p = Promise.resolve(1), q = Promise.reject(2); await take(p); await take(q).catch(() => 0);' +
    'export default [await take(p), await take(q).catch((reason) => reason)]';
  const run = runCode(source, { globals: { take } });
  const ceiling = setTimeout(() => run.terminate('it never settled'), 60_000);
  assert.deepStrictEqual((await run).result, [1, 2]);
  clearTimeout(ceiling);
});

test('a sandbox function that no one holds is given back', async () => {
  setFlagsFromString('--expose-gc');
  const gc = vm.runInNewContext('gc');
  let registry;
  const collected = new Promise((resolve) => { registry = new FinalizationRegistry(resolve); });
  const handle = runCode('take(() => 1); await never()', {
    globals: { take: (f) => { registry.register(f); }, never: () => new Promise(() => {}) },
  });
  const poll = setInterval(gc, 10);
  await collected;
  clearInterval(poll);
  handle.terminate();
  await handle;
});

test('a value that a host function returned is not kept', { timeout: 120_000 }, async () => {
  setFlagsFromString('--expose-gc');
  const gc = vm.runInNewContext('gc');
  let registry;
  const collected = new Promise((resolve) => { registry = new FinalizationRegistry(resolve); });
  const give = () => {
    const value = new Uint8Array(1 << 20);
    registry.register(value);
    return value;
  };
  await runCode('give(); export default 1', { globals: { give } });
  const poll = setInterval(gc, 10).unref();
  const ceiling = setTimeout(() => {}, 60_000);
  await collected;
  clearTimeout(ceiling);
  clearInterval(poll);
});

test('big values cross whole in both directions', async () => {
  const bytes = new Uint8Array(10 << 20).map((_, i) => i);
  const text = 'é'.repeat(1 << 20);
  const { result } = await runCode('export default (bytes, text) => ({ bytes, text, size: bytes.length })', {
    execute: { args: [bytes, text] },
    memoryLimitBytes: 512 << 20,
  });
  assert.equal(result.size, bytes.length);
  assert.equal(Buffer.compare(result.bytes, bytes), 0);
  assert.equal(result.text, text);
  result.bytes[0] = 7;
  const moved = structuredClone(result.bytes, { transfer: [result.bytes.buffer] });
  assert.equal(moved[0], 7);
});
