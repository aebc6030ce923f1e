// How a run's cost grows: with the runs beside it, with its values, its source and its modules.
//
// In: `--quick` for small sizes only. Out: tables in Markdown, and one plot per table in `plots/`. Both
// axes of a plot are logarithmic, with a line for growth in proportion: what rises steeper is a cliff.
// No bounds: machines differ.

import { mkdirSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';

import { Runtime, runCode } from 'isolane';

import { plot } from './plot.mjs';

const { values: options } = parseArgs({ options: { quick: { type: 'boolean', default: false } } });
const most = (sizes, quick) => sizes.filter((size) => !options.quick || size <= quick);
const PLOTS = new URL('plots/', import.meta.url);
mkdirSync(PLOTS, { recursive: true });

const median = (samples) => samples.toSorted((a, b) => a - b)[samples.length >> 1];
const clock = async (act) => {
  const began = performance.now();
  await act();
  return performance.now() - began;
};
const times = async (count, act) => {
  const samples = [];
  for (let i = 0; i < count; i += 1) samples.push(await clock(() => act(i)));
  return median(samples);
};

async function succeed(source, settings, run = runCode) {
  const outcome = await run(source, settings);
  if (outcome.status !== 'success') throw new Error(`${outcome.status}: ${outcome.error.message}`);
  return outcome.result;
}

await beside();
await values();
await lines();
await modules();

/** Runs that wait, and what a fresh run costs beside them. */
async function beside() {
  const rows = [];
  for (const size of most([1, 10, 100, 1_000, 10_000], 100)) {
    const runtime = new Runtime();
    for (let i = 0; i < 50; i += 1) await succeed('export default 1', {}, runtime.runCode);
    globalThis.gc?.();
    const before = process.memoryUsage.rss();
    let release;
    const gate = new Promise((resolve) => { release = resolve; });
    const waiting = [];
    const made = await clock(async () => {
      for (let i = 0; i < size; i += 1) waiting.push(runtime.runCode('export default await gate()', { globals: { gate: () => gate } }));
      while (runtime.stats().parked < size) await new Promise((resolve) => { setImmediate(resolve); });
    });
    const bytes = (process.memoryUsage.rss() - before) / size;
    const fresh = await times(500, () => succeed('export default 1 + 1', {}, runtime.runCode));
    const burst = 2_000;
    const together = await clock(() => Promise.all(Array.from({ length: burst }, () => succeed('export default 1 + 1', {}, runtime.runCode))));
    const settled = await clock(() => {
      release(1);
      return Promise.all(waiting);
    });
    await runtime.close();
    rows.push({ size, fresh: fresh * 1e3, rate: burst / (together / 1e3), made: (made / size) * 1e3, settled: (settled / size) * 1e3, bytes: bytes / 1024 });
  }
  table('Runs that wait for their host', 'waiting runs', rows, {
    fresh: 'a fresh run beside them, µs', rate: 'fresh runs per second, all at once', made: 'to start one and park it, µs', settled: 'to wake one and settle it, µs', bytes: 'held by one, KiB',
  });
  draw('waiting', 'waiting runs', 'µs', rows, { fresh: 'a fresh run beside them', made: 'to start one and park it', settled: 'to wake one and settle it' });
}

/** Records in and out again, beside `structuredClone` twice. */
async function values() {
  const rows = [];
  for (const size of most([1, 10, 100, 1_000, 10_000, 50_000], 1_000)) {
    const record = (id) => ({ id, name: `record ${id}`, tags: ['a', 'b'], score: id * 1.5 });
    const count = Math.ceil((size * 1024) / JSON.stringify(record(1)).length);
    const value = Array.from({ length: count }, (_, id) => record(id));
    const bytes = new Uint8Array(size * 1024).fill(7);
    const settings = (arg) => ({ execute: { args: [arg] }, memoryLimitBytes: 4e9 });
    const echo = (arg) => succeed('export default (value) => value', settings(arg));
    const rounds = Math.max(3, Math.min(200, Math.round(20_000 / size)));
    rows.push({
      size,
      records: (await times(rounds, () => echo(value))) * 1e3,
      clone: (await times(rounds, () => structuredClone(structuredClone(value)))) * 1e3,
      bytes: (await times(rounds, () => echo(bytes))) * 1e3,
      copy: (await times(rounds, () => structuredClone(structuredClone(bytes)))) * 1e3,
    });
  }
  table('Values in and out', 'KiB, as JSON or as bytes', rows, {
    records: 'records, µs', clone: '`structuredClone` twice, µs', bytes: 'a `Uint8Array`, µs', copy: '`structuredClone` twice, µs',
  });
  draw('values', 'KiB', 'µs', rows, { records: 'records', clone: 'structuredClone of records, twice', bytes: 'bytes', copy: 'structuredClone of bytes, twice' });
}

/** Lines of TypeScript, never seen before and seen. */
async function lines() {
  const rows = [];
  for (const size of most([10, 100, 1_000, 5_000, 20_000], 1_000)) {
    const source = (edition) => `const edition: number = ${edition};\n${Array.from({ length: size }, (_, i) => `export const f${i} = (x: number, y?: string): number => x * ${i} + (y?.length ?? edition);`).join('\n')}\nexport default f1(2);`;
    const rounds = Math.max(3, Math.min(100, Math.round(20_000 / size)));
    const seen = source(-1);
    await succeed(seen);
    rows.push({
      size,
      cold: (await times(rounds, (i) => succeed(source(i)))) * 1e3,
      warm: (await times(rounds, () => succeed(seen))) * 1e3,
    });
  }
  table('Lines of TypeScript', 'lines', rows, { cold: 'never seen before, µs', warm: 'seen before, µs' });
  draw('lines', 'lines', 'µs', rows, { cold: 'never seen before', warm: 'seen before' });
}

/** Modules in a graph: each imports the two after it. */
async function modules() {
  const rows = [];
  for (const size of most([1, 10, 100, 500, 2_000], 100)) {
    const graph = (edition) => Object.fromEntries(Array.from({ length: size }, (_, i) => {
      const next = [i + 1, i + 2].filter((n) => n < size);
      const imports = next.map((n) => `import { value as v${n} } from './m${n}.ts';`).join('\n');
      return [`./m${i}.ts`, `${imports}\nexport const value: number = (${['1', ...next.map((n) => `v${n}`)].join(' + ')}) % 1000 + ${edition};`];
    }));
    const run = (graph) => succeed(`import { value } from './m0.ts'; export default value`, { modules: graph });
    const rounds = Math.max(3, Math.min(50, Math.round(2_000 / size)));
    const seen = graph(-1);
    await run(seen);
    const cold = Array.from({ length: rounds }, (_, i) => graph(i));
    rows.push({ size, cold: (await times(rounds, (i) => run(cold[i]))) * 1e3, warm: (await times(rounds, () => run(seen))) * 1e3 });
  }
  table('Modules in a graph', 'modules', rows, { cold: 'never seen before, µs', warm: 'seen before, µs' });
  draw('modules', 'modules', 'µs', rows, { cold: 'never seen before', warm: 'seen before' });
}

function table(title, size, rows, columns) {
  const keys = Object.keys(columns);
  const number = (value) => (value < 10 ? value.toFixed(1) : Math.round(value).toLocaleString('en'));
  console.log(`\n### ${title}\n\n| ${[size, ...Object.values(columns)].join(' | ')} |\n|${'---|'.repeat(keys.length + 1)}`);
  for (const row of rows) console.log(`| ${[row.size.toLocaleString('en'), ...keys.map((key) => number(row[key]))].join(' | ')} |`);
}

function draw(name, x, y, rows, series) {
  const lines = Object.entries(series).map(([key, label]) => ({ label, points: rows.map((row) => [row.size, row[key]]) }));
  writeFileSync(new URL(`${name}.svg`, PLOTS), plot({ x, y, lines }));
}
