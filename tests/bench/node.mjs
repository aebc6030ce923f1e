// What a run costs from Node, as ratios to references measured in the same process.
//
// In: nothing (`npm run bench`). Out: a Markdown table. No bounds: machines and their noise differ,
// so a figure means something only beside its reference. Kept small; comparing with other libraries
// is done elsewhere, each in a process of its own.

import { runCode } from 'isolane';

const median = (samples) => samples.sort((a, b) => a - b)[samples.length >> 1];

/** Microseconds of `act`, the median of `times` after a tenth as many to warm up. */
async function time(times, act) {
  const samples = [];
  for (let i = 0; i < times * 1.1; i += 1) {
    const start = performance.now();
    await act();
    if (i >= times * 0.1) samples.push((performance.now() - start) * 1e3);
  }
  return median(samples);
}

/** Runs a program that must succeed. */
async function succeed(source, options) {
  const outcome = await runCode(source, options);
  if (outcome.status !== 'success') throw new Error(`${outcome.status}: ${outcome.error.message}`);
  return outcome.result;
}

const CALLS = 10_000;
const rows = [];
const row = (what, cost, reference, cost0) =>
  rows.push(`| ${what} | ${cost.toFixed(2)} | ${reference} | ${cost0.toFixed(2)} | ${(cost / cost0).toFixed(2)} |`);

const turn = await time(2_000, () => new Promise((resolve) => setImmediate(resolve)));
const fresh = await time(3_000, () => succeed('export default 1 + 1'));
row('a fresh run of `1 + 1`', fresh, 'one turn of the event loop', turn);

const lines = Array.from({ length: 50 }, (_, i) => `const v${i}: number = ${i} as number;`).join('\n');
row('a fresh run of 50 lines of TypeScript, seen before', await time(1_000, () => succeed(`${lines}\nexport default v49`)), 'a fresh run of `1 + 1`', fresh);
let edition = 0;
row('the same, never seen before', await time(500, () => succeed(`${lines}\nexport default ${(edition += 1)}`)), 'a fresh run of `1 + 1`', fresh);

const loop = `export default async (n) => { for (let i = 0; i < n; i++) CALL; }`;
const calls = async (call, globals) => (await time(5, () => succeed(loop.replace('CALL', call), { globals, execute: { args: [CALLS] } }))) / CALLS;
row('a synchronous host call', await calls('add(i, 1)', { add: (a, b) => a + b }), 'one turn of the event loop', turn);
row('an asynchronous host call', await calls('await add(i, 1)', { add: async (a, b) => a + b }), 'one turn of the event loop', turn);

for (const count of [10, 1_000, 50_000]) {
  const records = Array.from({ length: count }, (_, i) => ({ id: i, name: `row ${i}`, tags: ['a', 'b'], value: i * 1.5 }));
  const times = Math.max(5, 5_000 / count);
  const there = await time(times, () => succeed('export default (x) => x', { execute: { args: [records] } }));
  const twice = await time(times, () => structuredClone(structuredClone(records)));
  row(`${count} records in and out`, there, '`structuredClone` twice', twice);
}

console.log(`| what | µs | reference | µs | ratio |\n|---|---|---|---|---|\n${rows.join('\n')}`);
