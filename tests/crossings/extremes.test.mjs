// Values of extreme depth and length, out of the sandbox and into it, at every kind of crossing.
//
// The result of a shape is its measure on arrival (depth, length) or one word: the name of the error that refused it,
// or the status of the run. Everything happens in one process and one runtime, which computes `1 + 1` after each. So a
// crash, or a run that spoils the next one, fails the test.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Runtime } from '../isolation.mjs';

import { DEEP, LONG, LONG_IN, NESTED, depth, length } from './extremes.mjs';

const CEILING = { timeout: 300_000 };
const MiB = 1 << 20;
const LEVELS = 20_000;

const runtime = new Runtime();

/** Ways out: each makes its value with `make()`, which is measured on the other side. */
const OUT = {
  result: 'export default make();',
  'a result of the export': 'export default async () => make();',
  argument: 'take(make());',
  'one argument of many': 'take(...[make(), 1, 2]);',
  report: 'report(make());',
  log: 'console.log(make());',
  'what the console dumps': 'console.dir(make());',
  clone: 'tell(measure(structuredClone(make())));',
  'what a callback gives': 'await callBack(() => make());',
  'what a callback throws': 'await callThrower(() => { throw make(); });',
  'a promise': 'await settle(Promise.resolve(make()));',
  'a rejection': 'await settleRejected(Promise.reject(make()));',
};

/** Ways in: the host has the value. */
const IN = {
  globals: 'tell(measure(v));',
  imports: 'import { v } from "m"; tell(measure(v));',
  args: 'export default (v) => tell(measure(v));',
  answer: 'tell(measure(answer()));',
  'a promised answer': 'tell(measure(await later()));',
  'what the host throws': 'try { fail(); } catch (thrown) { tell(measure(thrown)); }',
  'what the host rejects with': 'await failLater().catch((thrown) => tell(measure(thrown)));',
  'what a callback is given': 'await callWith((v) => tell(measure(v)));',
  'what a report is answered': 'tell(measure(report(1)));',
};

/** Ways to end a run with a value that no host receives: it becomes text. */
const ENDS = { thrown: 'throw make();', rejected: 'await Promise.reject(make());' };

/** The result of a run that crosses a value, measured by `measure` on the side where it arrives. */
async function crossing(source, { measure, make = '', value, way, limit }) {
  const told = [];
  const tell = (what) => void told.push(what);
  const thrown = (error) => error;
  const globals = {
    tell,
    take: (given) => tell(measure(given)),
    settle: async (promise) => tell(measure(await promise)),
    settleRejected: async (promise) => tell(measure(await promise.catch(thrown))),
    callBack: async (f) => tell(measure(await f())),
    callThrower: async (f) => tell(measure(await f().catch(thrown))),
    callWith: (f) => f(value),
    answer: () => value,
    later: async () => value,
    fail: () => {
      throw value;
    },
    failLater: () => Promise.reject(value),
  };
  if (way === 'globals') globals.v = value;
  const options = {
    language: 'javascript',
    memoryLimitBytes: limit,
    globals,
    imports: way === 'imports' ? { m: { v: value } } : {},
    execute: way === 'args' ? { args: [value] } : undefined,
    report: () => value,
  };
  const program = `${source}\n${/export default/.test(source) ? '' : 'export default null;'}\n${measure}
    function measure(value) { return ${measure.name}(value); } function make() { ${make} }`;
  const ended = await settled(runtime.runCode(program, options), limit);
  if (ended.status !== 'success') return ended.status === 'error' ? ended.error.name : ended.status;
  const { result, reports, logs } = ended;
  if (way.includes('result')) tell(measure(result));
  if (way === 'report') tell(measure(reports[0]));
  if (way === 'log' || way === 'what the console dumps') tell(measure(logs[0].args[0]));
  assert.equal(told.length, 1);
  return told[0];
}

/** The result of a run that stays within its bounds and leaves no trace for the next one. */
async function settled(run, limit) {
  const ended = await run;
  assert.ok((ended.memoryUsedBytes ?? 0) <= limit + MiB, `held ${ended.memoryUsedBytes} bytes`);
  assert.ok((ended.error?.message.length ?? 0) <= 16 << 10, 'a message without a bound');
  const after = await runtime.runCode('export default 1 + 1');
  assert.deepEqual([after.status, after.result], ['success', 2]);
  return ended;
}

const building = (step, levels) => `let d = 0; for (let i = 0; i < ${levels}; i += 1) ${step}; return d;`;

for (const [name, step] of Object.entries(DEEP)) {
  test(`${name}, nested deep`, CEILING, async () => {
    const limit = 256 * MiB;
    const make = building(step, LEVELS);
    const expected = name === 'causes of errors' ? 1 : LEVELS;
    for (const [way, source] of Object.entries(OUT)) {
      assert.equal(await crossing(source, { measure: depth, make, way, limit }), expected, way);
    }
    const value = new Function(make)();
    for (const [way, source] of Object.entries(IN)) {
      assert.equal(await crossing(source, { measure: depth, value, way, limit }), expected, way);
    }
    for (const [way, source] of Object.entries(ENDS)) {
      assert.equal(await crossing(source, { measure: depth, make, way, limit }), 'Error', way);
    }
  });
}

test('a million levels', CEILING, async () => {
  const limit = 512 * MiB;
  const make = building(DEEP.arrays, 1e6);
  const out = (way, more) => crossing(OUT[way], { measure: depth, make, way, limit, ...more });
  assert.equal(await out('result'), 1e6);
  assert.equal(await out('clone', { limit: 32 * MiB }), 'memory');
  const value = new Function(make)();
  assert.equal(await crossing(IN.args, { measure: depth, value, way: 'args', limit }), 1e6);
});

test('ten thousand promises, each in the outcome of the one before', CEILING, async () => {
  const walk = 'async (p) => { let steps = 0; for (; p !== 0; steps += 1) p = (await p).p; return steps; }';
  const make = 'let p = 0; for (let i = 0; i < 10_000; i += 1) p = Promise.resolve({ p }); return p;';
  const source = `const walk = ${walk}, make = () => { ${make} };
    export default [await hostWalk(make()), await walk(hostMake().p)];`;
  const globals = {
    hostWalk: new Function(`return ${walk}`)(),
    hostMake: () => ({ p: new Function(make)() }),
  };
  const limit = 256 * MiB;
  const options = { language: 'javascript', globals, memoryLimitBytes: limit };
  assert.deepEqual((await settled(runtime.runCode(source, options), limit)).result, [10_000, 10_000]);
});

const LONG_OUT_WAYS = ['result', 'argument', 'report', 'clone', 'what a callback gives', 'a promise'];
const LONG_IN_WAYS = ['globals', 'args', 'answer', 'a promised answer', 'what a callback is given'];
const limit = 64 * MiB;

for (const [name, [expression, expected]] of Object.entries(LONG)) {
  test(`out: ${name}`, CEILING, async () => {
    const make = `return ${expression};`;
    for (const way of LONG_OUT_WAYS) {
      assert.equal(await crossing(OUT[way], { measure: length, make, way, limit }), expected, way);
    }
  });
}

for (const [name, [expression, expected]] of Object.entries(LONG_IN)) {
  test(`in: ${name}`, CEILING, async () => {
    const value = new Function(`return ${expression};`)();
    for (const way of LONG_IN_WAYS) {
      const got = crossing(IN[way], { measure: length, value, way, limit }).catch((error) => error.name);
      assert.equal(await got, expected, way);
    }
  });
}

const TIMES = 100_000;

for (const [name, parts] of Object.entries(NESTED)) {
  test(`a source of nested ${name}`, CEILING, async () => {
    const [before, middle, after] = parts;
    const text = `export default () => ${before.repeat(TIMES)}${middle}${after.repeat(TIMES)};`;
    for (const language of ['javascript', 'typescript']) {
      const options = (modules) => ({ language, modules, memoryLimitBytes: limit });
      const ends = (source, modules = {}) => settled(runtime.runCode(source, options(modules)), limit);
      assert.equal((await ends(text)).status, 'link_error');
      const modules = { './m.js': text };
      assert.equal((await ends('import "./m.js";', modules)).status, 'link_error');
      const imports = 'export default await import("./m.js").then(() => 0, (error) => error.name);';
      assert.equal((await ends(imports, modules)).result, 'SyntaxError');
    }
    const makes = 'try { new Function(...text); } catch (error) { told = error.name; }';
    const source = `let told; ${makes} export default told;`;
    const ended = await settled(runtime.runCode(source, { globals: { text: ['a', text] } }), 128 * MiB);
    assert.equal(ended.result, 'TypeError');
  });
}
