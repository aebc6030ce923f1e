// The kit as a user of the package has it. Its rules are the table of `crates/kit`; here are those of this face.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';

import { Kit, KitError } from 'isolane/kit';

import { Runtime } from '../isolation.mjs';

const runtime = new Runtime();

/** Runs `act` with a kit, and closes it. */
async function withKit(options, act) {
  const kit = new Kit({ runtime, ...options });
  try {
    return await act(kit);
  } finally {
    await kit.close();
  }
}

/** The result of a tool that succeeds. */
async function value(kit, source, options) {
  const result = await kit.runTool(source, options);
  assert.equal(result.status, 'success', JSON.stringify(result.error));
  return result.result;
}

test('import and require give one and the same', () => {
  const cjs = createRequire(import.meta.url)('isolane/kit');
  assert.equal(cjs.Kit, Kit);
  assert.equal(cjs.KitError, KitError);
});

test('a tool has a value, its JSON, and its calls', () =>
  withKit({ state: true }, async (kit) => {
    const result = await kit.runTool('await state.set("k", args.n); return { n: await state.get("k"), m: new Map([["a", 1n]]) }', { args: { n: 1 } });
    assert.deepStrictEqual(result.result, { n: 1, m: { a: 1 } });
    assert.equal(result.json, '{"n":1,"m":{"a":1}}');
    assert.deepStrictEqual(result.calls.map(({ name, ok, summary }) => [name, ok, summary]), [['state.set', true, 'k'], ['state.get', true, 'k']]);
    assert.equal(result.callsDropped, 0);
    assert.ok(result.calls.every(({ started, durationMs, bytes }) => started > 1.7e12 && durationMs >= 0 && bytes > 0));
  }));

test('a tool ends in every way that a run does', () =>
  withKit({}, async (kit) => {
    const failed = await kit.runTool('\nthrow new RangeError("no")');
    assert.deepStrictEqual([failed.status, failed.error.name, failed.error.line], ['error', 'RangeError', 2]);
    const unlinked = await kit.runTool('import a from "b"');
    assert.deepStrictEqual([unlinked.status, unlinked.error.message], ['link_error', "'import' is not available here: use require('b')"]);
    const late = await kit.runTool('for (;;) ;', { timeoutMs: 300 });
    assert.deepStrictEqual([late.status, late.error.name, late.error.message], ['terminated', 'Timeout', 'the run took longer than 300 ms']);
    assert.equal((await kit.runTool('const a = []; for (;;) a.push(new Array(1e5).fill(1))', { memoryLimitBytes: 2e7 })).status, 'memory');
    const aborted = await kit.runTool('await new Promise((r) => setTimeout(r, 3e4))', { signal: AbortSignal.timeout(20) });
    assert.equal(aborted.status, 'terminated');
    assert.match(aborted.error.message, /timeout/i);
    for (let round = 0; round < 20; round += 1) {
      let ran = false;
      const options = { signal: AbortSignal.abort(new Error('before')), globals: { ran: () => { ran = true; } } };
      const already = await kit.runCode('ran(); export default 1', options);
      assert.deepStrictEqual([already.status, already.error.message, ran], ['terminated', 'Error: before', false]);
    }
  }));

test('globals, functions and reports cross as in any run', () =>
  withKit({}, async (kit) => {
    const reported = [];
    const source = 'report(1); return await add(args.a, 2)';
    const run = kit.runTool(source, { args: { a: 1 }, globals: { add: async (a, b) => a + b }, report: (value) => reported.push(value) });
    assert.equal(Object.prototype.toString.call(run), '[object ToolExecution]');
    assert.equal((await run).result, 3);
    assert.deepStrictEqual(reported, [1]);
  }));

test('sessions and modules have the capabilities', () =>
  withKit({ state: true }, async (kit) => {
    const session = kit.session();
    await session.run('const kept = await state.keys(); await state.set("a", 1)');
    const cell = await session.run('[kept, await state.keys()]');
    assert.deepStrictEqual(cell.result, [[], ['a']]);
    assert.equal(cell.calls.length, 1);
    const copy = await session.fork();
    assert.deepStrictEqual((await copy.run('kept')).calls, []);
    await Promise.all([session.close(), copy.close()]);
    const run = await kit.runCode('export default await state.get("a")');
    assert.deepStrictEqual([run.result, run.calls.length], [1, 1]);
  }));

test('functions of the kit can be given to the host, in a run and between cells', () =>
  withKit({ state: true, db: true, maxCalls: 1 }, async (kit) => {
    const use = async ({ sql, atob, get }) => {
      const { rows } = await sql('SELECT 5');
      return [rows, await atob('YQ=='), await get('k').catch((error) => `${error.name}: ${error.message}`)];
    };
    const result = await kit.runTool('return await use({ sql: db.sql, atob, get: state.get })', { globals: { use } });
    assert.deepStrictEqual(result.result, [[[5]], 'a', 'CallLimit: more than 1 calls in one run'], JSON.stringify(result.error));
    assert.deepStrictEqual(result.calls.map(({ name, summary }) => [name, summary]), [['db.sql', 'SELECT 5']]);
    assert.match((await kit.runCode('export default { query: db.sql }')).error.message, /^result\.query: a function cannot be cloned/);
    let kept;
    const session = kit.session({ globals: { keep: (fn) => { kept = fn; } } });
    assert.deepStrictEqual((await session.run('keep(state.get); db.sql')).calls, []);
    assert.deepStrictEqual([await kept('a'), await kept('b')], [null, null]);
    const cell = await session.run("await state.get('c')");
    assert.deepStrictEqual(cell.calls.map(({ summary }) => summary), ['a', 'b', 'c']);
    await session.close();
  }));

test('a copy of a session has its timers', () =>
  withKit({}, async (kit) => {
    const session = kit.session();
    await session.run('const fired = new Promise((done) => setTimeout(done, 50, "fired")); setTimeout(() => {}, 2e4); 1');
    const copy = await session.fork();
    for (const one of [session, copy]) assert.equal((await one.run('await fired')).result, 'fired');
    await Promise.all([session.close(), copy.close()]);
  }));

test('an object of the host stands for what its toJSON gives, as in JSON', () =>
  withKit({ state: true, db: true }, async (kit) => {
    class Price {
      constructor(cents) {
        this.cents = cents;
      }

      toJSON(key) {
        return { key, euros: this.cents / 100 };
      }
    }
    const shared = new Price(100);
    const given = { price: new Price(250), link: new URL('https://x.org/a'), all: [shared, shared], bytes: Buffer.from('hi') };
    // One object is asked once.
    const prices = { key: '0', euros: 1 };
    const json = { price: { key: 'price', euros: 2.5 }, link: 'https://x.org/a', all: [prices, prices] };
    await kit.state.set('k', given);
    assert.deepStrictEqual(await kit.state.get('k'), { ...json, bytes: 'aGk=' });
    const { rows } = await kit.db.sql('SELECT ?, ?', [given.link, shared]);
    assert.deepStrictEqual(rows, [['https://x.org/a', '{"key":"1","euros":1}']]);
    const { bytes, ...args } = await value(kit, 'return args', { args: given });
    assert.deepStrictEqual([args, bytes], [json, 'aGk=']);
    const cyclic = { toJSON: () => ({ cyclic }) };
    await assert.rejects(kit.state.set('k', cyclic), { name: 'SerializationError', message: 'value.cyclic: a cycle has no JSON form' });
    await kit.state.set('k', { a: Symbol('s'), b: [Symbol('s'), () => 1] });
    assert.deepStrictEqual(await kit.state.get('k'), { b: [null, null] });
    const own = { a: 1, toJSON() { return this; } };
    await kit.state.set('k', own);
    assert.deepStrictEqual(await kit.state.get('k'), { a: 1 });
  }));

test('errors of the host name arguments, and a symbol is no value', () =>
  withKit({ state: true, db: true, secrets: {} }, async (kit) => {
    const rejects = (call, name, message) => assert.rejects(call, { name, message });
    await rejects(kit.state.set('k', Symbol('s')), 'TypeError', 'state.set takes a value that is no symbol');
    await rejects(kit.state.set('k', [new WeakMap()]), 'SerializationError', 'value[0]: a WeakMap cannot be cloned');
    await rejects(kit.state.get(Symbol('s')), 'SerializationError', 'key: a symbol cannot be cloned');
    await rejects(kit.db.sql('SELECT ?', [new WeakMap()]), 'SerializationError', 'params[0]: a WeakMap cannot be cloned');
    await rejects(kit.db.batch([[new WeakMap()]]), 'SerializationError', 'statements[0][0]: a WeakMap cannot be cloned');
    const wrong = [
      [{ value: () => 1 }, 'TypeError', 'secrets.KEY.value must be a string, got a function'],
      [new Map(), 'TypeError', 'secrets.KEY must be { value, hosts or reveal }, got a Map'],
      [{ value: new WeakMap() }, 'SerializationError', 'secret.value: a WeakMap cannot be cloned'],
    ];
    for (const [secret, name, message] of wrong) assert.throws(() => kit.secrets.set('KEY', secret), { name, message });
  }));

test('options that are no data are named, and files may be URLs', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'isolane-kit-'));
  const file = pathToFileURL(join(folder, 'a b.db'));
  const kit = new Kit({ runtime, db: { file } });
  await kit.db.sql('CREATE TABLE t (a)');
  await kit.close();
  assert.ok(existsSync(join(folder, 'a b.db')));
  rmSync(folder, { recursive: true });
  const wrong = [
    [{ web: () => true }, 'web must be a boolean, got a function'],
    [{ fetch: new Set(['x.org']) }, "fetch must be 'public', a list of patterns, or an object, got a Set"],
    [{ secrets: new Map() }, 'secrets must be an object, got a Map'],
    [{ db: { file: new URL('https://x.org') } }, 'db.file must be a path or the URL of a file, got an object'],
    [{ stat: true }, "unknown option 'stat'; did you mean 'state'?"],
  ];
  for (const [options, message] of wrong) assert.throws(() => new Kit({ runtime, ...options }), { name: 'TypeError', message });
  assert.throws(() => new Kit({ nothing: 1 }), ({ message }) => message.split('browser').length === 2);
});

test('a call that the close of its kit gives up says so', async () => {
  const kit = new Kit({ runtime, db: true });
  const endless = 'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n';
  const calls = Promise.allSettled([kit.db.sql(endless), kit.db.sql('SELECT 1')]);
  await kit.close();
  for (const { reason } of await calls) {
    assert.ok(reason instanceof KitError);
    assert.deepStrictEqual([reason.name, reason.message], ['AbortError', 'the kit was closed']);
  }
  await assert.rejects(kit.db.sql('SELECT 1'), { name: 'TypeError', message: 'the kit is closed' });
});

test('an error of a kit keeps its name when a host function throws it', () =>
  withKit({ libraries: true }, async (kit) => {
    const create = () => kit.libraries.create('b', 'let x = ;');
    const source = 'try { await create() } catch ({ name, message }) { return [name, message] }';
    const thrown = await value(kit, source, { globals: { create } });
    assert.deepStrictEqual(thrown, ['LibraryError', 'Unexpected token (library:b:1:9)']);
  }));

test('the host has the same as code has', () =>
  withKit({ state: true, db: true, libraries: true, secrets: {} }, async (kit) => {
    await kit.state.set('k', { a: [1, new Date(0)] });
    assert.deepStrictEqual(await kit.state.get('k'), { a: [1, '1970-01-01T00:00:00.000Z'] });
    assert.equal(await kit.state.get('none'), null);
    assert.deepStrictEqual([await kit.state.keys(), await kit.state.delete('k'), await kit.state.delete('k')], [['k'], true, false]);
    await kit.db.batch([['CREATE TABLE t (a, b)'], ['INSERT INTO t VALUES (?, ?)', [1n, new Uint8Array([1])]]]);
    const read = await kit.db.sql('SELECT * FROM t WHERE a = :a', { a: 1 });
    assert.deepStrictEqual(read.rows, [[1, new Uint8Array([1])]]);
    assert.equal((await kit.db.schema()).tables[0].row_count, 1);
    await assert.rejects(kit.db.sql('ATTACH "x" AS y'), { name: 'DbBlocked', message: 'ATTACH is not allowed' });
    await assert.rejects(kit.db.sql('INSERT INTO none VALUES (1)'), (error) => error instanceof KitError && error.code === 'SQLITE_ERROR');
    await assert.rejects(kit.db.sql(1), TypeError);
    await kit.libraries.create('a', 'exports.f = (n: number) => n + 1', { description: 'adds one' });
    assert.equal(await value(kit, "return require('a').f(1)"), 2);
    await assert.rejects(kit.libraries.create('b', '\n  )'), { name: 'LibraryError', filename: 'library:b', line: 2, column: 3 });
    assert.deepStrictEqual((await kit.libraries.list()).map(({ name, description }) => [name, description]), [['a', 'adds one']]);
    assert.equal((await kit.libraries.get('a')).language, 'typescript');
    kit.secrets.set('KEY', { value: 'hunter2hunter2', hosts: ['x.test'] });
    assert.deepStrictEqual(kit.secrets.names(), ['KEY']);
    const result = await kit.runTool('console.log("hunter2hunter2"); return [secrets.KEY, "hunter2hunter2"]');
    assert.match(result.result[0], /^sealed_KEY_[0-9a-f]{32}$/);
    assert.deepStrictEqual([result.result[1], result.logs[0].args], ['[secret KEY]', ['[secret KEY]']]);
    assert.deepStrictEqual([kit.secrets.delete('KEY'), kit.secrets.delete('KEY')], [true, false]);
    assert.match(await kit.describe(), /declare const state/);
  }));

test('a session requires a library anew when it is updated, with all that require it', () =>
  withKit({ libraries: true }, async (kit) => {
    await kit.libraries.create('a', 'exports.n = 1');
    await kit.libraries.create('b', "exports.n = require('a').n * 10; exports.ran = (globalThis.ran ??= 0, globalThis.ran += 1)");
    const session = kit.session();
    const read = async () => (await session.run("[require('b').n, require('b').ran, require('a').n]")).result;
    assert.deepStrictEqual(await read(), [10, 1, 1]);
    assert.deepStrictEqual(await read(), [10, 1, 1]);
    await kit.libraries.update('a', 'exports.n = 2');
    assert.deepStrictEqual(await read(), [20, 2, 2]);
    assert.deepStrictEqual(await read(), [20, 2, 2]);
    await kit.libraries.delete('a');
    const gone = await session.run("require('b')");
    assert.equal(gone.error.message, "Cannot find library 'a'; libraries: 'b'");
    await session.close();
  }));

test('large answers of the host are read in slices', () =>
  withKit({ db: { maxResultBytes: 64 << 20, maxRows: 400_000, maxStatementBytes: 256 << 20 } }, async (kit) => {
    const count = 300_000;
    const { rows } = await kit.db.sql(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count}) SELECT i, 'text' FROM n`);
    assert.deepStrictEqual([rows.length, rows[count - 1]], [count, [count, 'text']]);
  }));

test('fetch reaches what is allowed, with the secret that it may have', async () => {
  const seen = [];
  const server = createServer((request, response) => {
    seen.push([request.url, request.headers.authorization]);
    // One that is never answered.
    if (request.url === '/a-left') return;
    response.end(JSON.stringify({ echo: request.headers.authorization }));
  });
  await new Promise((listening) => server.listen(0, '127.0.0.1', listening));
  const { port } = server.address();
  const secrets = { KEY: { value: 'hunter2hunter2', hosts: [`http://127.0.0.1:${port}`] } };
  try {
    await withKit({ fetch: { allow: [`http://127.0.0.1:${port}/a*`], allowAddresses: ['127.0.0.1'] }, secrets }, async (kit) => {
      const source = `const r = await fetch('http://127.0.0.1:${port}/a?q=1', { headers: { authorization: 'Bearer ' + secrets.KEY } }); return (await r.json()).echo`;
      const result = await kit.runTool(source);
      assert.match(result.result, /^Bearer sealed_KEY_/, JSON.stringify(result.error));
      assert.deepStrictEqual(seen, [['/a?q=1', 'Bearer hunter2hunter2']]);
      assert.equal(result.calls[0].summary, `GET http://127.0.0.1:${port}/a 200`);
      const blocked = await kit.runTool(`await fetch('http://127.0.0.1:${port}/b')`);
      assert.equal(blocked.error.name, 'FetchBlocked');
      const left = await kit.runTool(`fetch('http://127.0.0.1:${port}/a-left'); 1`);
      assert.deepStrictEqual([left.result, left.logs.map((log) => log.args[0])], [1, [`fetch was not awaited: GET http://127.0.0.1:${port}/a-left`]]);
    });
  } finally {
    server.closeAllConnections();
    server.close();
  }
});

test('the description compiles without the types of browsers', () =>
  withKit({ state: true, db: true, fetch: 'public', libraries: true, secrets: {} }, async (kit) => {
    const folder = mkdtempSync(join(tmpdir(), 'isolane-'));
    try {
      const use = 'fetch(new URL("https://x.org"), { signal: AbortSignal.timeout(5), body: new URLSearchParams({ a: "b" }) });\n';
      const file = join(folder, 'described.ts');
      writeFileSync(file, `${await kit.describe()}\n${use}`);
      const compiler = createRequire(import.meta.url).resolve('typescript/package.json').replace('package.json', 'bin/tsc');
      const options = ['--strict', '--noEmit', '--target', 'es2022', '--lib', 'es2022', '--types', ''];
      const { status, stdout } = spawnSync(process.execPath, [compiler, ...options, file], { encoding: 'utf8' });
      assert.deepStrictEqual([status, stdout], [0, '']);
    } finally {
      rmSync(folder, { recursive: true });
    }
  }));

test('misuse throws before anything opens', () => {
  const cases = [
    [{ fech: 'public' }, TypeError, /did you mean 'fetch'/],
    [{ timeoutMs: 0 }, RangeError, /timeoutMs/],
    [{ state: { maxKeyByte: 1 } }, TypeError, /state\.maxKeyBytes/],
    [{ fetch: ['ftp://x'] }, TypeError, /fetch/],
    [{ fetch: { allow: 'public', allowAddresses: ['10.0.0.1/8'] } }, TypeError, /allowAddresses\[0\]/],
    [{ secrets: { KEY: { value: 'hunter2hunter2' } } }, TypeError, /hosts/],
    [{ runtime: {} }, TypeError, /runtime/],
    [{ agent: 1 }, TypeError, /agent/],
    [{ agent: '\ud800' }, TypeError, /^agent must be well-formed: it has a lone surrogate/],
    [{ file: 'a\udc00' }, TypeError, /^file must be well-formed/],
    [{ browser: {} }, TypeError, /browser/],
  ];
  for (const [options, kind, message] of cases) {
    assert.throws(() => new Kit(options), (error) => error instanceof kind && message.test(error.message), JSON.stringify(options));
  }
  const kit = new Kit();
  assert.throws(() => kit.runTool(1), TypeError);
  assert.throws(() => kit.runTool('1', { arg: {} }), /did you mean 'args'/);
  assert.throws(() => kit.runTool('1', { args: [] }), /args must be a plain object/);
  assert.throws(() => kit.runTool('1', { args: { f: new (class A {})() } }), /args\.f/);
  assert.throws(() => kit.runTool('1', { globals: { setTimeout: 1 } }), /globals\.setTimeout/);
  assert.throws(() => kit.runCode('1', { timeoutMs: '1' }), TypeError);
  assert.throws(() => kit.secrets.names(), /this kit has no secrets/);
});

test('a kit without a capability says so', () =>
  withKit({}, async (kit) => {
    await assert.rejects(kit.state.get('a'), /this kit has no state/);
    await assert.rejects(kit.db.sql('SELECT 1'), /this kit has no db/);
    await assert.rejects(kit.libraries.list(), /this kit has no libraries/);
    assert.equal(await value(kit, 'return typeof fetch + typeof state + typeof db + typeof require + typeof secrets'), 'undefined'.repeat(5));
  }));

test('a file that is no database is named, and files stay', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'isolane-kit-'));
  try {
    const bad = join(folder, 'bad.db');
    writeFileSync(bad, 'this is no database, but a text that is long enough to be read as one'.repeat(20));
    assert.throws(() => new Kit({ file: bad, state: true }), (error) => error.message.includes('bad.db'));
    const file = join(folder, 'agent.db');
    await withKit({ file, state: true }, (kit) => kit.state.set('k', 1));
    await withKit({ file, state: true }, async (kit) => assert.equal(await kit.state.get('k'), 1));
    await withKit({ file, agent: 'other', state: true }, async (kit) => assert.equal(await kit.state.get('k'), null));
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('closing ends what runs, and refuses what comes', async () => {
  const kit = new Kit({ runtime, state: true });
  const run = kit.runTool('await new Promise((r) => setTimeout(r, 2e4))');
  const session = kit.session();
  await session.run('1');
  const closings = [kit.close(), kit.close()];
  // It holds at once.
  assert.throws(() => kit.runTool('1'), /the kit is closed/);
  await Promise.all(closings);
  const result = await run;
  assert.deepStrictEqual([result.status, result.error.message], ['terminated', 'kit closed']);
  assert.throws(() => kit.runTool('1'), /the kit is closed/);
  assert.throws(() => kit.session(), /the kit is closed/);
  await assert.rejects(kit.state.get('a'), /the kit is closed/);
  assert.throws(() => session.run('1'), /closed/);
});

test('secrets are found in long texts', async () => {
  const secrets = { KEY: { value: 'hunter2hunter2', reveal: true } };
  await withKit({ secrets, memoryLimitBytes: 2 ** 30 }, async (kit) => {
    const source = `
      const text = '%41\\\\n'.repeat(2e5) + secrets.KEY;
      report(text); console.log(text);
      return text`;
    const reports = [];
    const run = kit.runTool(source, { timeoutMs: 300_000, report: (text) => { reports.push(text); } });
    const { status, result, reports: kept, logs, json } = await run;
    assert.equal(status, 'success');
    assert.equal(kept[0], reports[0]);
    for (const text of [result, reports[0], logs[0].args[0], JSON.parse(json)]) assert.ok(text.endsWith('[secret KEY]'));
  });
});
