// Large messages: read in slices of several turns, in the order of their run, and abandoned when the run is ended.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { runCode } from '../isolation.mjs';

const LIMIT = { memoryLimitBytes: 2 ** 30 };
const RECORDS = 'Array.from({ length: 300_000 }, (_, i) => ({ i, s: "x" + i }))';

/** Turns of the event loop until the promise settles. */
async function turnsDuring(promise) {
  let turns = 0;
  let over = false;
  const turn = () => {
    turns += 1;
    if (!over) setImmediate(turn);
  };
  setImmediate(turn);
  const value = await promise;
  over = true;
  return { value, turns };
}

function check(records) {
  assert.equal(records.length, 300_000);
  for (const i of [0, 1, 150_000, 299_999]) assert.deepStrictEqual(records[i], { i, s: `x${i}` });
}

test('a result, a report, an argument, an answer and a log each leave the loop its turns', async () => {
  const taken = {};
  const globals = {
    take: (records) => { taken.argument = records; },
    start: async (records) => { taken.started = records; },
    call: async (fn) => { taken.answer = await fn(); },
    wait: async (promise) => { taken.promise = await promise; },
  };
  const source = `
    const records = ${RECORDS};
    report(records); take(records); await start(records);
    await call(() => records); await wait(Promise.resolve(records));
    console.log(records);
    export default records;`;
  const { value: result, turns } = await turnsDuring(
    runCode(source, { ...LIMIT, globals, report: (records) => { taken.report = records; } }),
  );
  assert.equal(result.status, 'success', result.error?.message);
  for (const records of [result.result, result.reports[0], result.logs[0].args[0], ...Object.values(taken)]) check(records);
  assert.equal(Object.keys(taken).length, 5);
  assert.equal(result.reports[0], taken.report);
  assert.ok(turns > 10, `${turns} turns`);
});

test('later messages of a run arrive after a large one', async () => {
  const order = [];
  const globals = {
    large: async (value) => { order.push(value.length); },
    small: async (value) => { order.push(value); },
  };
  const source = `const a = large(${RECORDS}); small(1); small(2); large('é'.repeat(3e6)); small(3); await a; export default 1;`;
  assert.equal((await runCode(source, { ...LIMIT, globals })).status, 'success');
  assert.deepStrictEqual(order, [300_000, 1, 2, 3_000_000, 3]);
});

test('small runs are heard while another one sends large messages without an end', async () => {
  const large = runCode(`const records = ${RECORDS}; for (;;) await take(records);`, { ...LIMIT, globals: { take: async () => {} } });
  for (let heard = 0; heard < 5; heard += 1) assert.equal((await runCode('export default 1')).result, 1);
  assert.equal(large.running, true);
  large.terminate();
  assert.equal((await large).status, 'terminated');
});

test('a run that is ended meanwhile makes no call of those that it had sent', async () => {
  let run;
  const globals = { ready: () => { setImmediate(() => run.terminate('enough')); }, take: () => assert.fail('called') };
  run = runCode(`const records = ${RECORDS}; ready(); take(records); take(records); for (;;);`, { ...LIMIT, globals });
  const { status, error } = await run;
  assert.deepStrictEqual([status, error.message], ['terminated', 'enough']);
});

test('texts beyond a piece are whole, in every part of an error', async () => {
  const source = `
    const long = (c) => c.repeat(3_000_000);
    class Own extends Error { name = long('n'); code = long('c'); }
    export default { text: long('€'), wide: long('\\ud83d\\ude00'), lone: long('é') + '\\ud800', error: new Own(long('m')) };`;
  const { status, result, error } = await runCode(source, LIMIT);
  assert.equal(status, 'success', error?.message);
  const long = (c) => c.repeat(3_000_000);
  assert.ok(result.text === long('€') && result.wide === long('😀') && result.lone === `${long('é')}\ud800`);
  assert.ok(result.error.name === long('n') && result.error.code === long('c') && result.error.message === long('m'));
});

test('messages from before the end of a run are read, however long that takes', async () => {
  const taken = [];
  const globals = { take: (promise) => { taken.push(promise); }, save: async (records) => records.length };
  for (let i = 0; i < 3; i += 1) {
    const source = `const records = ${RECORDS}; save(records); take(Promise.resolve(records)); export default 1;`;
    assert.equal((await runCode(source, { ...LIMIT, globals })).result, 1);
  }
  for (const records of await Promise.all(taken)) check(records);
});

test('logs that each take a while to read leave the loop its turns', async () => {
  const source = 'const p = "\\\\p{RGI_Emoji}".repeat(18); for (let i = 0; i < 40; i += 1) console.log(new RegExp(p + i, "v")); export default 1;';
  const { value: result, turns } = await turnsDuring(runCode(source));
  assert.deepStrictEqual([result.result, result.logs.length], [1, 40]);
  assert.ok(result.logs.every(({ args: [pattern] }, i) => pattern instanceof RegExp && pattern.source.endsWith(`${i}`)));
  assert.ok(turns > 10, `${turns} turns`);
});

test('many buffers, promises, functions and logs are all there', async () => {
  const taken = {};
  const source = `
    const many = (make) => Array.from({ length: 30_000 }, (_, i) => make(i));
    take(many((i) => Promise.resolve(i)), many((i) => () => i));
    for (let i = 0; i < 30_000; i += 1) console.log(i);
    await wait();
    export default many((i) => new Uint8Array([i]));`;
  const globals = { take: (promises, functions) => Object.assign(taken, { promises, functions }), wait: () => Promise.all(taken.promises) };
  const { status, result, logs, error } = await runCode(source, { ...LIMIT, globals });
  assert.equal(status, 'success', error?.message);
  assert.deepStrictEqual([result.length, result[29_999][0]], [30_000, 29_999 % 256]);
  assert.deepStrictEqual([logs.length, logs[29_999].args], [30_000, [29_999]]);
  assert.deepStrictEqual([await taken.promises[29_999], taken.functions.length], [29_999, 30_000]);
  await assert.rejects(taken.functions[29_999](), /has settled/);
});

test('promises and calls that a run leaves behind by the hundred thousand are all rejected', async () => {
  const taken = {};
  const globals = { take: (promises) => { taken.promises = promises; } };
  const source = 'take(Array.from({ length: 100_000 }, () => new Promise(() => {}))); export default 1;';
  const { value: result, turns } = await turnsDuring(runCode(source, { ...LIMIT, globals }));
  assert.equal(result.result, 1);
  const ends = await Promise.allSettled(taken.promises);
  assert.ok(ends.every(({ status }) => status === 'rejected'));
  assert.ok(turns > 3, `${turns} turns`);
});

test('a long array whose last element is of another kind is what it was', async () => {
  const source = 'const a = new Array(6e6).fill(0.5); a[1] = 300; a[2] = -7; a.push("last"); export default a;';
  const { status, result, error } = await runCode(source, LIMIT);
  assert.equal(status, 'success', error?.message);
  assert.deepStrictEqual([result.length, result.slice(0, 4), result.slice(-2)], [6e6 + 1, [0.5, 300, -7, 0.5], [0.5, 'last']]);
  assert.ok(result.every((element, at) => element === 0.5 || at < 3 || at === 6e6));
});

test('long arrays of integers, of numbers and of other values are what they were', async () => {
  const source = `
    const make = (from) => Array.from({ length: 700_000 }, from);
    export default [make((_, i) => i * 3_001 - 1e9), make((_, i) => (i % 5 === 0 ? i / 2 : i)), make((_, i) => (i === 650_000 ? [i] : i + 0.5))];`;
  const { status, result, error } = await runCode(source, LIMIT);
  assert.equal(status, 'success', error?.message);
  const [integers, numbers, others] = result;
  assert.ok(integers.every((element, i) => element === i * 3_001 - 1e9));
  assert.ok(numbers.every((element, i) => element === (i % 5 === 0 ? i / 2 : i)));
  assert.ok(others.every((element, i) => (i === 650_000 ? element[0] === i : element === i + 0.5)));
  assert.deepStrictEqual(result.map((list) => list.length), [700_000, 700_000, 700_000]);
});

test('a value that V8 cannot build in proportion to its bytes is refused inside', async () => {
  const colliding = 'new Set(Array.from({ length: 60_000 }, (_, i) => (BigInt(i) << 64n) | 1n))';
  const long = 'new Set(Array.from({ length: 3_000 }, (_, i) => "x".repeat(16_400) + (10_000 + i)))';
  const longer = 'new Set(["\u4e00".repeat(17e6) + 1, "\u4e00".repeat(17e6) + 2])';
  const pattern = 'new RegExp("[\\\\p{L}]".repeat(500), "iv")';
  const collide = 'a Set whose members collide';
  for (const [value, what] of [[colliding, collide], [long, collide], [longer, collide], [pattern, 'a RegExp that Node.js would take too long to parse']]) {
    const source = `
      try { take({ list: [${value}] }); } catch (error) { report([error.name, error.message]); }
      console.log('in a log', ${value});
      export default 1;`;
    const { status, reports, logs } = await runCode(source, { ...LIMIT, globals: { take: () => assert.fail('called') }, report: () => {} });
    assert.deepStrictEqual([status, reports], ['success', [['SerializationError', `arguments[0].list[0]: ${what} cannot be cloned`]]]);
    assert.equal(typeof logs[0].args[1], 'string');
    const { error } = await runCode(`export default ${value}`, LIMIT);
    assert.equal(error.name, 'SerializationError');
  }
});

test('numbers and patterns that programs have are not', async () => {
  const source = `
    const many = Array.from({ length: 50_000 }, (_, i) => i);
    export default [
      new Set(many), new Set(many.map((i) => i << 12)), new Set(many.map((i) => i / 4 + 0.125)),
      new Set(many.map((i) => 1.7e12 + i * 1000)), new Map(many.map((i) => [BigInt(i), i])),
      Array.from({ length: 600 }, (_, i) => 2n ** BigInt(i)), new Set(Array.from({ length: 600 }, (_, i) => 2n ** BigInt(i))),
      new RegExp('[a-z]+(?:x|y)'.repeat(500), 'i'), /^[\\p{L}\\p{N}_-]+$/u, /\\p{Emoji_Presentation}/v,
    ];`;
  const { status, error } = await runCode(source, LIMIT);
  assert.equal(status, 'success', error?.message);
});

test('elements far apart keep their values, and take no room in between', async () => {
  const source = `
    const sparse = new Array(33_554_432); sparse[5] = 'a'; sparse[33_554_431] = 'z';
    export default {
      sparse, empty: Array.from({ length: 40 }, () => new Array(33_554_432)), short: [1, , 3],
      far: { 4294967294: 'index', 4294967295: 'name', 0: 'zero', 300: 'more', b: 'last' }, dense: { 0: 'a', 1: 'b', x: 'c', 2: 'd' },
    };`;
  globalThis.gc?.();
  const { status, result, error } = await runCode(source);
  assert.equal(status, 'success', error?.message);
  const { sparse, empty, short, far, dense } = result;
  assert.deepStrictEqual([sparse.length, Object.keys(sparse), sparse[5], sparse[33_554_431]], [33_554_432, ['5', '33554431'], 'a', 'z']);
  assert.deepStrictEqual([empty.length, empty[39].length, 0 in empty[39]], [40, 33_554_432, false]);
  assert.deepStrictEqual(short, [1, , 3]);
  assert.deepStrictEqual(Object.entries(far), [['0', 'zero'], ['300', 'more'], ['4294967294', 'index'], ['4294967295', 'name'], ['b', 'last']]);
  assert.deepStrictEqual(Object.entries(dense), [['0', 'a'], ['1', 'b'], ['2', 'd'], ['x', 'c']]);
  sparse[7] = 'own';
  assert.deepStrictEqual([sparse.push('end'), Object.values(sparse)], [33_554_433, ['a', 'own', 'z', 'end']]);
});

test('a value that cannot be held far down costs as much as its path', async () => {
  const known = (() => { try { return new RegExp('(?i:a)') instanceof RegExp; } catch { return false; } })();
  const value = known ? 'new RegExp("[\\\\p{L}]".repeat(500), "iv")' : '/(?i:a)/';
  const source = `const key = '-'.repeat(1e6); let value = ${value}; for (let i = 0; i < 6000; i += 1) value = { [key]: value }; export default value;`;
  const { status, error } = await runCode(source);
  assert.deepStrictEqual([status, error.name], ['error', 'SerializationError']);
  assert.ok(error.message.length < 5_000, `${error.message.length}`);
});
