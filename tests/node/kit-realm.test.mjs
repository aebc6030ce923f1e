// The extension of the kit's realms, in Node's engine with natives of the test. `crates/kit-realm/tests` runs it in the
// engine of the sandbox.
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { test } from 'node:test';

import { named, openRealm, outcomeOf } from './kit-realm/realm.mjs';

// A table of tools: the source, the expected value or error, and what the host gives.
const table = (title, cases) => {
  for (const [name, source, expected, given] of cases) {
    test(`${title}: ${name}`, async () => {
      const { value, error, stalls } = await outcomeOf(source, given);
      if (stalls) assert.equal('stalls', expected);
      else if (error === undefined) assert.deepEqual(value, expected);
      else assert.equal(error, expected);
    });
  }
};

const thrownBy = (call) => `try { ${call}; p[1] = 'none' } catch (e) { p[1] = e.name + ': ' + e.message }`;

table('value', [
  ['the completion value', 'p[1] = 1 + 1', 2],
  ['none', '', null],
  ['undefined', 'p[1] = undefined', null],
  ['a return before it', 'p[1] = 1; p[2] = 2', 2],
  ['a returned undefined', 'p[1] = 1; p[2] = undefined', null],
  ['a thenable is awaited', 'p[1] = Promise.resolve(3)', 3],
  ['one of the code', 'p[1] = { then(done) { done(4) } }', 4],
  ['a rejection', "p[1] = Promise.reject(new RangeError('no'))", 'RangeError: no'],
  ['a throw', "throw new TypeError('bad')", 'TypeError: bad'],
  ['a promise that nothing settles', 'p[1] = new Promise(() => {})', 'stalls'],
]);

const resolves = "p[0] = ['fetch', 'resolve'];";
table('resolve', [
  ['at once', `${resolves} resolve(1); p[1] = 2`, 1],
  ['the first one', `${resolves} resolve(1); resolve(2)`, 1],
  ['before a return', `${resolves} resolve(1); p[2] = 2`, 1],
  ['gives undefined', `${resolves} p[1] = resolve(1) === undefined ? p[3] : 0`, 1],
  ['undefined', `${resolves} resolve()`, null],
  ['from a timer', `${resolves} p[1] = setTimeout(() => resolve(42), 10)`, 42],
  ['from a later timer', `${resolves} setTimeout(() => setTimeout(() => resolve('b'), 9_000), 10)`, 'b'],
  ['from an interval alone', `${resolves} setInterval(() => resolve(1), 5); p[1] = 'stands'`, 'stands'],
  ['from an interval beside a timeout', `${resolves} setInterval(() => resolve('i'), 5); setTimeout(() => {}, 50)`, 'i'],
  ['intervals after the last timeout', `${resolves} let n = 0; setInterval(() => { n += 1; if (n > 9) resolve(n) }, 5);
    setTimeout(() => {}, 12); p[1] = 'stands'`, 'stands'],
  ['from a call', `${resolves} state.get('a').then((v) => resolve([v]))`, [null]],
  ['never', `${resolves} p[1] = 'stands'`, 'stands'],
  ['never, after a timer', `${resolves} setTimeout(() => {}, 10); p[1] = 'stands'`, 'stands'],
  ['after a return', `${resolves} setTimeout(() => resolve(1), 10); p[2] = 'returned'`, 'returned'],
  ['after a returned undefined', `${resolves} setTimeout(() => resolve(1), 10); p[2] = undefined`, 1],
  ['not named', 'setTimeout(() => resolve(1), 10); p[1] = 2', 2],
  ['a thenable', `${resolves} resolve(Promise.resolve(5))`, 5],
  ['a thenable that comes later', `${resolves} resolve(new Promise((r) => setTimeout(r, 10, 6)))`, 6],
  ['a thenable once', `${resolves} let n = 0; resolve({ then(done) { n += 1; done({ n }) } })`, { n: 1 }],
  ['a rejection', `${resolves} resolve(Promise.reject(new Error('late')))`, 'Error: late'],
  ['a rejection while the body goes on', `${resolves} resolve(Promise.reject(new Error('late')));
    await new Promise((r) => setTimeout(r, 10)); p[1] = 1`, 'Error: late'],
  ['a throw after it', `${resolves} resolve(1); throw new Error('after')`, 'Error: after'],
  ['the body ends too', `${resolves} resolve([]); await new Promise((r) => setTimeout(r, 10)); p[1] = 1`, []],
  ['the value is read at the call', `${resolves} const o = { a: 1 }; resolve(o); o.a = 2`, { a: 1 }],
  ['a cycle is thrown there', `${resolves} const o = {}; o.o = o; ${thrownBy('resolve(o)')}`,
    'SerializationError: result.o: a cycle has no JSON form'],
  ['another value after a cycle', `${resolves} const o = []; o[0] = o; try { resolve(o) } catch { resolve(7) }`, 7],
  ['by a getter of its value', `${resolves} resolve({ get a() { resolve('inner'); return 1 } })`, 'inner'],
  ['is no constructor', "p[1] = ['prototype' in resolve, resolve.name, resolve.length]", [false, 'resolve', 1]],
]);

table('JSON form', [
  ['bigints', 'p[1] = [1n, -9007199254740991n, 9007199254740992n, Object(3n)]',
    [1, -9007199254740991, '9007199254740992', 3]],
  ['a map', "p[1] = new Map([['a', 1], ['__proto__', new Map([[1, 2]])]])",
    JSON.parse('{ "a": 1, "__proto__": [[1, 2]] }')],
  ['an empty map', 'p[1] = new Map()', {}],
  ['a set', 'p[1] = new Set([1, new Set([2])])', [1, [2]]],
  ['bytes', 'p[1] = [new Uint8Array([1, 2]), new Uint8Array([9, 1, 2]).subarray(1).buffer, new Uint16Array([1]),'
    + ' new DataView(new ArrayBuffer(4), 1, 2), new Uint8Array(0)]', ['AQI=', 'CQEC', 'AQA=', 'AAA=', '']],
  ['errors', "class E extends RangeError {} p[1] = [new TypeError('t'), new E('e'), new DOMException('d', 'AbortError')]",
    [{ name: 'TypeError', message: 't' }, { name: 'RangeError', message: 'e' }, { name: 'AbortError', message: 'd' }]],
  ['what JSON has', "p[1] = { a: undefined, b() {}, c: [undefined, () => {}, Symbol()], d: NaN, e: -0, f: new Date(0) }",
    { c: [null, null, null], d: null, e: 0, f: '1970-01-01T00:00:00.000Z' }],
  ['toJSON', "p[1] = { toJSON(key) { return ['as', key] } }", ['as', '']],
  ['a function alone', 'p[1] = () => 1', null],
  ['the same object twice', 'const o = {}; p[1] = [o, o, new Set([o])]', [{}, {}, [{}]]],
  ['a cycle', "const o = { a: [{}] }; o.a[0]['b c'] = o; p[1] = o",
    'SerializationError: result.a[0]["b c"]: a cycle has no JSON form'],
  ['a cycle through a map', "const m = new Map(); m.set('k', [m]); p[1] = { m }",
    'SerializationError: result.m.k[0]: a cycle has no JSON form'],
  ['a promise', 'p[1] = { a: [1, Promise.resolve()] }',
    'SerializationError: result.a[1]: a promise has no JSON form; await it first'],
  ['a long path', "let o = Promise.resolve(); for (let i = 0; i < 40; i += 1) o = [o]; p[1] = o",
    `SerializationError: result${'[0]'.repeat(12)}…${'[0]'.repeat(12)}: a promise has no JSON form; await it first`],
  ['a false map', 'p[1] = Object.create(Map.prototype, { a: { value: 1, enumerable: true } })', { a: 1 }],
  ['a proxy', 'p[1] = new Proxy([1, 2], {})', [1, 2]],
]);

table('timers', [
  ['ids count from 1', 'p[1] = [setTimeout(() => {}), setInterval(() => {}, 5), setTimeout(() => {}, 1)]', [1, 2, 3]],
  ['by due time, then id', `const order = []; const push = (x) => () => order.push(x);
    setTimeout(push('c'), 20); setTimeout(push('a'), 10); setTimeout(push('d'), 20); setTimeout(push('b'), 10);
    await new Promise((r) => setTimeout(r, 30)); p[1] = order`, ['a', 'b', 'c', 'd']],
  ['jobs of one before the next', `const order = [];
    setTimeout(() => { order.push(1); Promise.resolve().then(() => order.push(2)) }); setTimeout(() => order.push(3));
    await new Promise((r) => setTimeout(r, 1)); p[1] = order`, [1, 2, 3]],
  ['arguments', 'p[1] = await new Promise((r) => setTimeout((...a) => r(a), 0, 1, 2))', [1, 2]],
  ['no this', 'p[1] = await new Promise((r) => setTimeout(function () { r(this === undefined) }))', true],
  ['an interval until it is cleared', `let n = 0; await new Promise((r) => {
    const id = setInterval(() => { n += 1; if (n === 3) { clearInterval(id); r() } }, 10) }); p[1] = n`, 3],
  ['clearTimeout', `let n = 0; const id = setTimeout(() => { n += 1 }, 1); clearTimeout(id);
    await new Promise((r) => setTimeout(r, 10)); p[1] = n`, 0],
  ['clearing what is not', "p[1] = [clearTimeout(), clearTimeout(99), clearInterval('x'), clearTimeout({}), clearTimeout(Symbol())]",
    [null, null, null, null, null]],
  ['a text is a number', `let n = 0; clearTimeout(String(setTimeout(() => { n += 1 }, 1)));
    await new Promise((r) => setTimeout(r, 10)); p[1] = n`, 0],
  ['clearing the last does not hold the run', 'clearTimeout(setTimeout(() => {}, 30_000)); await new Promise(() => {})', 'stalls'],
  ['a text for a function', thrownBy("setTimeout('1')"), 'TypeError: setTimeout takes a function first'],
  ['nothing for a function', thrownBy('setInterval()'), 'TypeError: setInterval takes a function first'],
  ['too many', thrownBy('for (let i = 0; i < 4; i += 1) setTimeout(() => {})'), 'RangeError: more than 3 timers are pending',
    { config: { maxPending: 3 } }],
  ['names', 'p[1] = [setTimeout, setInterval, clearTimeout].map((f) => [f.name, f.length, Object.hasOwn(f, "prototype")])',
    [['setTimeout', 1, false], ['setInterval', 1, false], ['clearTimeout', 1, false]]],
]);

for (const [given, cut] of [['1e9', 30_000], ['-5', 0], ['NaN', 0], ['1.9', 1], ['Infinity', 30_000], ["'7'", 7], ['', 0]]) {
  test(`timers: ${given} is ${cut} ms`, async () => {
    const { seen } = await outcomeOf(`await new Promise((r) => setTimeout(r${given && ', '}${given}))`);
    assert.deepEqual(seen.delays, [cut]);
  });
}

test('timers: one delay is outstanding, that of the earliest', async () => {
  const source = 'for (const ms of [50, 20, 90]) setTimeout(() => {}, ms); await new Promise((r) => setTimeout(r, 100))';
  const { seen } = await outcomeOf(source);
  assert.deepEqual([seen.delays, seen.cancelled], [[50, 20, 30, 40, 10], [1]]);
});

test('timers: a throw is logged, and others go on', async () => {
  const source = `setTimeout(() => { throw new TypeError('lost') }, 1);
    p[1] = await new Promise((r) => setTimeout(r, 2, 'went on'))`;
  const { value, seen } = await outcomeOf(source);
  assert.deepEqual([value, seen.uncaught], ['went on', ['TypeError: lost']]);
});

test('timers: one that is due in the next cell is called there', async () => {
  const realm = openRealm();
  const order = [];
  realm.values.setTimeout(() => order.push('due'), 50);
  realm.clock.now += 1_000;
  assert.deepEqual(order, []);
  const { due, fulfil } = [...realm.delays.values()][0];
  assert.equal(due, 1_050);
  fulfil();
  await new Promise((done) => setImmediate(done));
  assert.deepEqual(order, ['due']);
});

test('timers: a delay that the host ended is made anew', async () => {
  const realm = openRealm();
  const order = [];
  realm.values.setTimeout(() => order.push('due'), 50);
  const [[id, { reject }]] = realm.delays;
  realm.delays.delete(id);
  reject(named('AbortError', 'the cell has ended'));
  const outcome = await realm.tool("await new Promise((r) => setTimeout(r, 100)); p[1] = 'ended'");
  assert.deepEqual([order, outcome.value[1]], [['due'], 'ended']);
});

const answered = (body = 'hi', more = {}) => ({
  fetch: () => ({
    status: 200, statusText: 'OK', url: 'https://x.org/', redirected: false,
    headers: [['Content-Type', 'text/plain'], ['set-cookie', 'a=1'], ['Set-Cookie', 'b=2'], ['__proto__', 'p']],
    body: new TextEncoder().encode(body), ...more,
  }),
});
const get = "const r = await fetch('https://x.org');";

table('fetch', [
  ['a response', `${get} p[1] = [r.ok, r.status, r.statusText, r.url, r.redirected, r.bodyUsed, await r.text(), r.bodyUsed]`,
    [true, 200, 'OK', 'https://x.org/', false, false, 'hi', true], answered()],
  ['not ok', `${get} p[1] = r.ok`, false, answered('', { status: 304 })],
  ['headers', `${get} p[1] = [Object.keys(r.headers), r.headers['set-cookie'], r.headers.get('SET-COOKIE'),
    r.headers.has('x'), r.headers.get('x'), r.headers.get('toString'), r.headers.has('get')]`,
    [['content-type', 'set-cookie', '__proto__'], 'a=1, b=2', 'a=1, b=2', false, null, null, false], answered()],
  ['a header called get', `${get} p[1] = [r.headers.get, r.headers.has('get')]`, ['g', true],
    answered('', { headers: [['get', 'g']] })],
  ['json', `${get} p[1] = await r.json()`, { a: [1] }, answered('\ufeff{"a":[1]}')],
  ['bad json', `${get} p[1] = await r.json().catch((e) => e.name)`, 'SyntaxError', answered('{')],
  ['text without a mark', `${get} p[1] = await r.text()`, 'é€😀', answered('\ufeffé€😀')],
  ['bytes', `${get} const b = await r.bytes(); p[1] = [...b]`, [104, 105], answered()],
  ['arrayBuffer', `${get} const b = await r.arrayBuffer(); p[1] = b.byteLength`, 2, answered()],
  ['once', `${get} await r.text(); p[1] = await r.json().catch((e) => e.name + ': ' + e.message)`,
    'TypeError: the body has been read already', answered()],
  ['an error of the host', 'p[1] = await fetch("https://x.org").catch((e) => e.name + ": " + e.message)',
    "FetchBlocked: 'x.org' is not allowed", { fetch: () => Promise.reject(named('FetchBlocked', "'x.org' is not allowed")) }],
  ['is no constructor', "p[1] = [Object.hasOwn(fetch, 'prototype'), fetch.name, fetch.length]", [false, 'fetch', 1]],
]);

const refused = (args) => `p[1] = await fetch(${args}).then(() => 'none', (e) => e.name + ': ' + e.message)`;
const url = "'https://x.org'";
table('arguments of fetch', [
  ['nothing', refused(''), 'TypeError: fetch takes a URL as a text or a URL'],
  ['an object', refused('{}'), 'TypeError: fetch takes a URL as a text or a URL'],
  ['options', refused(`${url}, 1`), 'TypeError: fetch takes its options as an object'],
  ['OPTIONS', refused(`${url}, { method: 'OPTIONS' }`), "TypeError: method 'OPTIONS' is not supported"],
  ['a body with GET', refused(`${url}, { body: '' }`), 'TypeError: a GET request has no body'],
  ['a body with HEAD', refused(`${url}, { method: 'head', body: 'a' }`), 'TypeError: a HEAD request has no body'],
  ['an object as body', refused(`${url}, { method: 'POST', body: {} }`),
    'TypeError: the body is a text, bytes or URLSearchParams; for JSON, use JSON.stringify'],
  ['timeout 0', refused(`${url}, { timeout: 0 }`), 'TypeError: timeout is a number of milliseconds above 0'],
  ['timeout as text', refused(`${url}, { timeout: '9' }`), 'TypeError: timeout is a number of milliseconds above 0'],
  ['redirect', refused(`${url}, { redirect: 'no' }`), "TypeError: redirect is 'follow', 'error' or 'manual'"],
  ['signal', refused(`${url}, { signal: {} }`), 'TypeError: signal is an AbortSignal'],
  ['headers as text', refused(`${url}, { headers: 'a' }`), 'TypeError: headers are an object or pairs'],
  ['a header of three', refused(`${url}, { headers: [['a', 'b', 'c']] }`), 'TypeError: each header is a pair of a name and a value'],
  ...['\\r', '\\n', '\\0', '€'].map((c) => [`a header with ${c}`, refused(`${url}, { headers: { a: 'b${c}' } }`),
    "TypeError: header 'a' has a character that a header cannot have"]),
]);

const requests = [
  ['as given', url, { url: 'https://x.org', method: 'GET', id: 1, headers: [], body: null, redirect: 'follow' }],
  ['a URL', "new URL('/a?b', 'https://x.org')", { url: 'https://x.org/a?b' }],
  ['a method in lower case', `${url}, { method: 'patch' }`, { method: 'PATCH' }],
  ['headers as an object', `${url}, { headers: { A: 1, b: 'ü' } }`, { headers: [['A', '1'], ['b', 'ü']] }],
  ['headers as pairs', `${url}, { headers: new Map([['a', 'b']]) }`, { headers: [['a', 'b']] }],
  ['headers of a setter', `${url}, { headers: { ['__proto__']: 'x' } }`, { headers: [['__proto__', 'x']] }],
  ['a text', `${url}, { method: 'POST', body: 'a\\ud800' }`,
    { body: 'a\ufffd', headers: [['content-type', 'text/plain;charset=UTF-8']] }],
  ['a type of its own', `${url}, { method: 'PUT', body: '{}', headers: { 'CONTENT-TYPE': 'x/y' } }`,
    { headers: [['CONTENT-TYPE', 'x/y']] }],
  ['parameters', `${url}, { method: 'POST', body: new URLSearchParams({ a: 'b c' }) }`,
    { body: 'a=b+c', headers: [['content-type', 'application/x-www-form-urlencoded;charset=UTF-8']] }],
  ['bytes', `${url}, { method: 'POST', body: new Uint8Array([9, 1]).subarray(1) }`, { body: { 0: 1 }, headers: [] }],
  ['an empty body', `${url}, { method: 'POST', body: null }`, { body: null, headers: [] }],
  ['a timeout', `${url}, { timeout: 5 }`, { timeout: 5 }],
  ['redirect', `${url}, { redirect: 'manual' }`, { redirect: 'manual' }],
];
for (const [name, args, expected] of requests) {
  test(`request: ${name}`, async () => {
    const { seen } = await outcomeOf(`await fetch(${args})`, answered());
    const [request] = JSON.parse(JSON.stringify(seen.requests));
    assert.deepEqual({ ...request, ...expected }, request);
  });
}

test('fetch: a signal ends it', async () => {
  const source = `const c = new AbortController(); setTimeout(() => c.abort(), 5);
    p[1] = await fetch('https://x.org', { signal: c.signal }).catch((e) => [e.name, e.code, e instanceof DOMException])`;
  const { value, seen } = await outcomeOf(source);
  assert.deepEqual([value, seen.aborted, seen.requests.length], [['AbortError', 20, true], [1], 1]);
  const before = "p[1] = await fetch('https://x.org', { signal: AbortSignal.abort('why') }).catch((e) => e)";
  const early = await outcomeOf(before);
  assert.deepEqual([early.value, early.seen.requests], ['why', []]);
});

const library = (libraries, config) => ({ libraries, config });
table('require', [
  ['exports', "p[1] = require('a').one", 1, library({ a: 'exports.one = 1' })],
  ['module.exports', "p[1] = require('a')()", 2, library({ a: 'module.exports = () => 2' })],
  ['this', "p[1] = require('a')", [true, true], library({ a: 'module.exports = [this === exports, this === module.exports]' })],
  ['a return', "p[1] = require('a')", { a: 1 }, library({ a: 'exports.a = 1; return; exports.a = 2' })],
  ['once', "const a = require('a'); a.n += 1; p[1] = [require('a').n, require('b').n]", [2, 2],
    library({ a: 'exports.n = 1', b: "exports.n = require('a').n" })],
  ['unknown', thrownBy("require('x')"), "RequireError: Cannot find library 'x'"],
  ['no text', thrownBy('require(1)'), 'TypeError: require takes the name of a library'],
  ['a name of Object', thrownBy("require('toString')"), "RequireError: Cannot find library 'toString'"],
  ['itself', thrownBy("require('a')"), 'RequireError: libraries require each other: a → a', library({ a: "require('a')" })],
  ['a cycle', thrownBy("require('z')"), 'RequireError: libraries require each other: a → b → a',
    library({ z: "require('a')", a: "require('b')", b: "require('a')" })],
  ['a cycle that is caught', "p[1] = require('a')", ['RequireError', {}],
    library({ a: "try { require('b') } catch (e) { module.exports = [e.name, {}] }", b: "require('a')" })],
  ['too deep', thrownBy("require('a')"), 'RequireError: libraries nest deeper than 2: a → b → c',
    library({ a: "require('b')", b: "require('c')", c: '' }, { maxDepth: 2 })],
  ['as deep as it may', "p[1] = require('a').v", 3,
    library({ a: "exports.v = require('b')", b: 'module.exports = 3' }, { maxDepth: 2 })],
  ['one that throws is not kept', `globalThis.n = 0; try { require('a') } catch {} p[1] = [require('a').n, require('b')]`, [2, {}],
    library({ a: "globalThis.n += 1; if (globalThis.n === 1) throw new Error('first'); exports.n = globalThis.n", b: '' })],
]);

test('require: compiles with its name and language', async () => {
  const { seen } = await outcomeOf("require('a'); require('a')", library({ a: '' }));
  assert.deepEqual(seen.libraries, [['library:a', 'javascript']]);
});

table('state', [
  ['a missing key', "p[1] = await state.get('x')", null],
  ['a value', "await state.set('k', { a: [1n, new Set([2])] }); p[1] = await state.get('k')", { a: [1, [2]] }],
  ['delete', "await state.set('k', 0); p[1] = [await state.delete('k'), await state.delete('k')]", [true, false]],
  ['keys', "await state.set('a1', 0); await state.set('b', 0); p[1] = [await state.keys(), await state.keys('a')]",
    [['a1', 'b'], ['a1']]],
  ['undefined', "p[1] = await state.set('k', undefined).catch((e) => e.message)",
    'state.set takes a value that is not undefined'],
  ['a function', "p[1] = await state.set('k', () => 1).catch((e) => e.name + e.message)",
    'TypeErrorstate.set takes a value that is no function'],
  ['a symbol', "p[1] = await state.set('k', Symbol()).catch((e) => e.message)", 'state.set takes a value that is no symbol'],
  ['a cycle', "const o = {}; o.o = o; p[1] = await state.set('k', o).catch((e) => e.message)",
    'value.o: a cycle has no JSON form'],
  ['no key', "p[1] = await Promise.all([state.get(), state.set(1, 1), state.delete({}), state.keys(1)].map((c) => c.catch((e) => e.message)))", [
    'state.get takes a key, a well-formed string, first', 'state.set takes a key, a well-formed string, first',
    'state.delete takes a key, a well-formed string, first', 'state.keys takes a prefix, a well-formed string, or nothing',
  ]],
  ['read at the call', "const o = { a: 1 }; const s = state.set('k', o); o.a = 2; await s; p[1] = await state.get('k')", { a: 1 }],
]);

table('the others', [
  ['secrets', "p[1] = [secrets.KEY, Object.isFrozen(secrets), secrets.NONE === undefined]", ['sealed', true, true]],
  ['db', "p[1] = [await db.sql('SELECT 1'), await db.schema()]", ['SELECT 1', { tables: [] }]],
  ['evaluate of a function', "p[1] = await browser.evaluate(() => document.title)", '() => document.title'],
  ['evaluate of a text', "p[1] = await browser.evaluate('1')", '1'],
  ['functions of the host are of the run', `const passed = [atob, btoa, parseCSV, ...Object.values(db), ...Object.values(browser)];
    p[1] = [passed.map((f) => f.name), passed.every((f) => Object.getPrototypeOf(f) === Function.prototype && !('prototype' in f))]`, [[
    'atob', 'btoa', 'parseCSV', 'sql', 'batch', 'schema', 'navigate', 'screenshot', 'click', 'type', 'extractText',
    'extractHtml', 'evaluate', 'close'], true]],
  ['as many arguments as given', "p[1] = [await db.sql('a', 1), await db.sql()]", [['a', 1], []],
    { natives: { 'db.sql': async (...args) => args } }],
]);

const errors = (calls) => `p[1] = [${calls.map((call) => `(() => { try { return ${call} } catch (e) {
  return [e.name, e.code ?? 0, e instanceof DOMException, e instanceof Error] } })()`)}]`;
const invalid = ['InvalidCharacterError', 5, true, true];
const wrong = ['TypeError', 0, false, true];
table('base64', [
  ['there and back', "p[1] = [btoa('a'), atob('YQ==')]", ['YQ==', 'a']],
  ['of what is no text', "p[1] = [btoa(5), btoa(null), btoa({ toString: () => 'a' }), atob(null), atob(1234), btoa([])]",
    ['NQ==', 'bnVsbA==', 'YQ==', '\x9e\xe9e', '\xd7m\xf8', '']],
  ['errors', errors(['atob(5)', "atob('a')", 'atob(undefined)', "atob('\\ud800')", "btoa('\\ud800')", "btoa('€')"]),
    [invalid, invalid, invalid, invalid, invalid, invalid]],
  ['wrong calls', errors(['atob()', 'btoa()', 'atob(Symbol())', 'btoa(Object.create(null))']), [wrong, wrong, wrong, wrong]],
  ['the form', 'p[1] = [atob, btoa].map((f) => [f.name, f.length])', [['atob', 1], ['btoa', 1]]],
]);

table('DOMException', [
  ['name, message and code', `const all = [new DOMException(), new DOMException('m'), new DOMException('m', 'DataCloneError'),
    new DOMException(5, 'Own'), new DOMException('m', undefined), new DOMException(undefined, 'SyntaxError')];
    p[1] = all.map((e) => [e.name, e.message, e.code, String(e)])`,
    [['Error', '', 0, 'Error'], ['Error', 'm', 0, 'Error: m'], ['DataCloneError', 'm', 25, 'DataCloneError: m'],
      ['Own', '5', 0, 'Own: 5'], ['Error', 'm', 0, 'Error: m'], ['SyntaxError', '', 12, 'SyntaxError']]],
  ['an Error', `const e = new DOMException('m', 'AbortError'); p[1] = [e instanceof Error, e instanceof DOMException,
    Object.prototype.toString.call(e), typeof e.stack, Object.keys(e), e.constructor === DOMException, 'cause' in e]`,
    [true, true, '[object DOMException]', 'string', [], true, false]],
  ['nothing can be set', `const e = new DOMException('m', 'AbortError');
    const set = (k) => { try { e[k] = 1; return 'set' } catch (error) { return error.name } };
    p[1] = [set('name'), set('message'), set('code'), e.name, e.message, e.code]`,
    ['TypeError', 'TypeError', 'TypeError', 'AbortError', 'm', 20]],
  ['of the prototype', `const { name, message, code } = Object.getOwnPropertyDescriptors(DOMException.prototype);
    const thrown = (f) => { try { f(); } catch (e) { return e.name } };
    p[1] = [[name, message, code].map((d) => [d.enumerable, d.configurable, d.set === undefined]),
      thrown(() => DOMException.prototype.name), thrown(() => DOMException('m')), DOMException.length, DOMException.name]`,
    [[[true, true, true], [true, true, true], [true, true, true]], 'TypeError', 'TypeError', 0, 'DOMException']],
  ['constants', `const names = Object.keys(DOMException); const d = Object.getOwnPropertyDescriptor(DOMException.prototype, 'ABORT_ERR');
    p[1] = [names.length, names[0], DOMException.DATA_CLONE_ERR, d, names.every((n) => DOMException.prototype[n] === DOMException[n])]`,
    [25, 'INDEX_SIZE_ERR', 25, { value: 20, writable: false, enumerable: true, configurable: false }, true]],
]);

const signals = `const events = []; const listen = (name, s) => { s.onabort = (e) => events.push([name, e.type, e.isTrusted, s.reason]); return s };`;
table('signals', [
  ['timeout is a TimeoutError', `const s = AbortSignal.timeout(5); await new Promise((r) => setTimeout(r, 6));
    p[1] = [s.aborted, s.reason.name, s.reason.code, s.reason instanceof DOMException]`, [true, 'TimeoutError', 23, true]],
  ['timeout takes a number that is safe', errors(['AbortSignal.timeout(-1)', 'AbortSignal.timeout()', 'AbortSignal.timeout(NaN)',
    'AbortSignal.timeout(2 ** 53)', 'AbortSignal.timeout(Infinity)', "AbortSignal.timeout('5.9').aborted"]),
    [wrong, wrong, wrong, wrong, wrong, false]],
  ['any follows the first', `${signals} const [a, b] = [new AbortController(), new AbortController()];
    const s = listen('any', AbortSignal.any([a.signal, b.signal])); listen('a', a.signal); listen('b', b.signal);
    b.abort('b'); a.abort('a'); p[1] = [s.aborted, s.reason, events]`,
    [true, 'b', [['b', 'abort', true, 'b'], ['any', 'abort', true, 'b'], ['a', 'abort', true, 'a']]]],
  ['any of one that has aborted', `const a = new AbortController(); const s = AbortSignal.any([a.signal, AbortSignal.abort('was')]);
    a.abort('late'); p[1] = [s.aborted, s.reason]`, [true, 'was']],
  ['any of any', `${signals} const a = new AbortController(); const one = AbortSignal.any([a.signal, AbortSignal.timeout(9_000)]);
    const two = listen('two', AbortSignal.any(new Set([one, one, a.signal]))); listen('one', one);
    a.abort(7); p[1] = [one.aborted, two.aborted, events]`, [true, true, [['one', 'abort', true, 7], ['two', 'abort', true, 7]]]],
  ['any of none', 'p[1] = AbortSignal.any([]).aborted', false],
  ['any takes signals', errors(['AbortSignal.any()', 'AbortSignal.any([{}])', 'AbortSignal.any(1)']), [wrong, wrong, wrong]],
  ['any of a timeout', `const s = AbortSignal.any([AbortSignal.timeout(5), new AbortController().signal]);
    await new Promise((r) => s.addEventListener('abort', r)); p[1] = s.reason.name`, 'TimeoutError'],
  ['any ends a request', "p[1] = await fetch('https://x.org', { signal: AbortSignal.any([AbortSignal.timeout(5)]) }).catch((e) => e.name)",
    'TimeoutError'],
]);

test('signals: a timeout beyond the longest delay is waited for in parts', async () => {
  const source = `const s = AbortSignal.timeout(70_000); const began = Date.now();
    await new Promise((r) => s.addEventListener('abort', r)); p[1] = Date.now() - began`;
  const { value, seen } = await outcomeOf(source);
  assert.deepEqual([value, seen.delays], [70_000, [30_000, 30_000, 10_000]]);
});

test('timers: a delay that was cancelled in a cell that was undone is made anew', async () => {
  const realm = openRealm();
  const order = [];
  realm.values.setTimeout(() => order.push('due'), 50);
  const [[id, { fulfil }]] = realm.delays;
  realm.delays.delete(id);
  fulfil(true);
  await new Promise((done) => setImmediate(done));
  assert.deepEqual([order, [...realm.delays.values()].map(({ due }) => due)], [[], [1_050]]);
});

// Code that spoils what the extension could rely on; it must go on working.
const TAMPERING = [
  ['prototypes of arrays', "for (const k of ['push', 'map', 'forEach', 'slice', 'shift']) Array.prototype[k] = () => { throw 1 };"
    + ' Object.defineProperty(Array.prototype, 0, { set() { throw 2 }, configurable: true });'],
  ['methods of promises', 'Promise.prototype.then = Promise.prototype.catch = Promise.resolve = () => { throw 1 };'],
  ['maps and sets', 'for (const C of [Map, Set]) for (const k of ["get", "set", "has", "add", "delete", "forEach"]) C.prototype[k] = () => { throw 1 };'],
  ['globals', "for (const k of ['Promise', 'Map', 'Set', 'Array', 'Object', 'Reflect', 'JSON', 'Math', 'Date', 'Error', 'TypeError', 'String', 'Symbol', 'Uint8Array']) globalThis[k] = undefined;"],
  ['functions of globals', "Reflect.apply = Object.defineProperty = JSON.stringify = JSON.parse = Math.max = Math.min = Date.now = Number.isSafeInteger = () => { throw 1 };"],
  ['Object.prototype', `for (const k of ['value', 'get', 'set', 'writable', 'text', 'error', 'then'])
      Object.defineProperty(Object.prototype, k, { __proto__: null, get() { return undefined }, set() { throw 3 }, configurable: true });`],
  ['Function.prototype', 'Function.prototype.call = Function.prototype.apply = Function.prototype.bind = () => { throw 1 };'],
  ['strings', "for (const k of ['charCodeAt', 'slice', 'toLowerCase', 'toUpperCase', 'indexOf', 'toWellFormed']) String.prototype[k] = () => { throw 1 };"],
];
test('no template literals, which call the concat of the run', () => {
  const folder = new URL('../../crates/kit-realm/src/', import.meta.url);
  for (const file of readdirSync(folder).filter((name) => name.endsWith('.js'))) {
    const code = readFileSync(new URL(file, folder), 'utf8').replace(/^\s*\/\/.*$/gm, '');
    assert.ok(!code.includes('`'), file);
  }
});

for (const [name, spoil] of TAMPERING) {
  test(`tampering: ${name}`, async () => {
    const { settled, values, context, tool } = openRealm({ ...answered(), libraries: { a: 'exports.a = 1' } });
    const source = `${spoil}
      const r = await fetch('https://x.org', { method: 'post', body: 'b', headers: { a: 'b' } });
      await state.set('k', { a: [1] });
      const { a } = require('a');
      await (() => { const p = { w: undefined }; return { __proto__: null, then(done) { setTimeout(done, 1) } } })();
      p[1] = { a, ok: r.ok, stored: await state.get('k'), text: await r.text(), type: r.headers['content-type'] };`;
    const outcome = await tool(source);
    assert.equal(outcome?.error?.stack ?? outcome?.error, undefined);
    assert.equal(outcome.value[0], '{"a":1,"ok":true,"stored":{"a":[1]},"text":"hi","type":"text/plain"}');
  });
}
