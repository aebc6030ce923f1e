// Costs of a run from Node, as ratios to references measured in the same process.
//
// In: `--quick` for few samples. Out: a table in Markdown. There are no bounds: machines and their noise differ, so a
// figure means something only beside its reference. `python.py` and `core/examples/cost.rs` have the same rows.

import { readFileSync } from 'node:fs';
import vm from 'node:vm';
import { Worker } from 'node:worker_threads';

import { Runtime, runCode } from 'isolane';

import {
  HEAD, clock, held, kib, median, perSecond, quick, rate, records, row, succeed, time,
} from './measure.mjs';

const text = (name) => readFileSync(new URL(name, import.meta.url), 'utf8');
const ECHO = 'export default (value) => value';
const FRESH = 'a fresh run of `1 + 1`';
const TURN = 'one turn of the event loop';
const CLONE = '`structuredClone` twice';
const CALLS = quick ? 1_000 : 10_000;
const PARKED = quick ? 100 : 1_000;
const ENDED = quick ? 5 : 50;

// This comes first: memory that the others leave behind would hide the memory of runs.
const memory = await parked();
const turn = await time(() => new Promise((resolve) => { setImmediate(resolve); }));
const rows = [...await fresh(), ...await calls(), ...await values(), await agent(), await endless(), memory];
console.log(`### A run from Node\n\n${HEAD}\n${rows.join('\n')}\n`);

async function fresh() {
  const one = () => succeed('export default 1 + 1');
  const cost = await time(one);
  const single = await rate(1, one);
  const lines = text('fifty.ts');
  const edited = (edition) => lines.replace('edition: number = 0', `edition: number = ${edition}`);
  const context = await time(() => vm.runInNewContext('1 + 1'));
  return [
    row(FRESH, cost, 'in a fresh context of V8', context),
    row('2 at once', await rate(2, one), 'one after another', single, perSecond),
    row('16 at once', await rate(16, one), 'one after another', single, perSecond),
    row('50 lines of TypeScript, seen before', await time(() => succeed(lines)), FRESH, cost),
    row('50 lines, never seen', await time((edition) => succeed(edited(edition + 1))), FRESH, cost),
  ];
}

async function calls() {
  const each = async (source, globals) => {
    const settings = { globals, execute: { args: [CALLS] } };
    return (await time(() => succeed(source, settings))) / CALLS;
  };
  const loop = (call) => `export default async (n) => { for (let i = 0; i < n; i++) ${call}; }`;
  const all = `const calls = (n) => Array.from({ length: n }, (_, i) => add(i, 1));
    export default async (n) => (await Promise.all(calls(n))).length`;
  const add = (a, b) => a + b;
  const later = async (a, b) => a + b;
  const synchronous = await each(loop('add(i, 1)'), { add });
  const successive = await each(loop('await add(i, 1)'), { add: later });
  const together = await each(all, { add: later });
  // A run with a console of the caller is told of no lost calls, so it does not watch for them.
  const unwatched = await each(loop('await add(i, 1)'), { add: later, console: { log: () => {} } });
  return [
    row('a synchronous host call', synchronous, TURN, turn),
    row('an asynchronous one, one after another', successive, TURN, turn),
    row('an asynchronous one, all at once', together, TURN, turn),
    row('an asynchronous one, watched for its answer', successive, 'one that is not watched', unwatched),
  ];
}

async function values() {
  const rows = [];
  const each = {
    '1 KB of records': records(1e3),
    '100 KB of records': records(1e5),
    '5 MB of records': records(5e6),
    '10 MB of bytes': new Uint8Array(1e7).fill(7),
  };
  for (const [what, value] of Object.entries(each)) {
    const there = await time(() => succeed(ECHO, { execute: { args: [value] } }));
    const twice = await time(() => structuredClone(structuredClone(value)));
    rows.push(row(`${what}, in and out`, there, CLONE, twice));
  }
  return rows;
}

/** Rows of an agent's table, some 200 KB as JSON. */
async function agent() {
  const regions = ['north', 'east', 'south', 'west'];
  const table = Array.from({ length: 2_000 }, (_, id) => ({
    id,
    region: regions[id % 4],
    product: `product ${id % 37}`,
    units: id % 100,
    price: id / 7,
    note: id % 9 ? 'as agreed' : 'urgent',
  }));
  const settings = { globals: { taxOf: async () => 0.25 }, execute: { args: [table] } };
  const program = text('agent.ts');
  const whole = await time(() => succeed(program, settings));
  const clone = await time(() => structuredClone(structuredClone(table)));
  return row('8 host calls and 200 KB in, TypeScript', whole, `${CLONE}, of the 200 KB`, clone);
}

/** From `terminate()` to settlement. */
async function endless() {
  const ended = async () => {
    let started;
    const loops = new Promise((resolve) => { started = resolve; });
    const run = runCode('started(); for (;;);', { globals: { started } });
    await loops;
    return clock(async () => {
      run.terminate();
      const { status } = await run;
      if (status !== 'terminated') throw new Error(status);
    });
  };
  const worker = async () => {
    const source = "require('worker_threads').parentPort.postMessage(0); for (;;);";
    const worker = new Worker(source, { eval: true });
    await new Promise((resolve) => { worker.once('message', resolve); });
    return clock(() => worker.terminate());
  };
  const samples = async (act) => {
    const all = [];
    for (let i = 0; i < ENDED; i += 1) all.push(await act());
    return median(all);
  };
  const [cost, reference] = [await samples(ended), await samples(worker)];
  return row('ending an endless loop', cost, 'ending a `Worker` in one', reference);
}

/** The memory of a run that waits for its host. */
async function parked() {
  const runtime = new Runtime();
  await succeed('export default 1 + 1', {}, runtime.runCode);
  let release;
  const gate = new Promise((resolve) => { release = resolve; });
  const wait = () => runtime.runCode('export default await gate()', { globals: { gate: () => gate } });
  const before = held();
  const waiting = Array.from({ length: PARKED }, wait);
  while (runtime.stats().parked < PARKED) await new Promise((resolve) => { setImmediate(resolve); });
  const each = (held() - before) / PARKED;
  release(1);
  await Promise.all(waiting);
  await runtime.close();
  const empty = held();
  const contexts = Array.from({ length: 100 }, () => vm.createContext());
  const context = (held() - empty) / contexts.length;
  const what = `held by a run that waits, of ${PARKED.toLocaleString('en')}`;
  return row(what, each, 'by a context of V8', context, kib);
}
