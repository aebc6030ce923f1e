// Growth of a run's cost: with the runs beside it, its values, its source and its modules.
//
// In: `--quick` for small sizes only. Out: `docs/scale.md`, which is printed too, with tables and a picture of each
// beside it; with `--quick`, the same in `target/bench/`. There are no bounds: machines differ.

import { mkdirSync, writeFileSync } from 'node:fs';

import { Runtime } from 'isolane';

import { edition, machine } from './machine.mjs';
import { clock, digits, held, median, quick, records, succeed, time } from './measure.mjs';
import { picture } from './plot.mjs';

const FOLDER = new URL(quick ? '../../target/bench/' : '../../docs/', import.meta.url);
const ONE = 'export default 1 + 1';
const WAITS = 'export default await gate()';
const KIB = 1024;
const MIB = KIB * KIB;
/** At least so many runs are parked for a row, a few at a time if necessary. */
const FEWEST_PARKED = 100;
/** Values from this size on exceed the default limit. */
const LARGE_KIB = 10_000;
/** 20,000 lines exceed it too; this is the largest limit of a slot's isolate. */
const LINES_LIMIT_BYTES = 512 * MIB;
const MICROS = 1e3;

mkdirSync(FOLDER, { recursive: true });
const page = [
  '# How the cost of a run grows', '',
  '`npm run bench:scale` writes this page. Figures are medians, and both axes of every plot are logarithmic. A dotted',
  'line shows growth in proportion; a curve that is steeper grows faster than its size.', '',
  `${machine()}; Node.js ${process.version}; ${edition()}`, '',
];

await beside();
await together();
await values();
await lines();
await modules();
console.log(page.join('\n'));
writeFileSync(new URL('scale.md', FOLDER), page.join('\n'));

/** Runs that wait, and the cost of a new run beside them. */
async function beside() {
  const rows = [];
  for (const size of most([1, 10, 100, 1_000, 10_000], 100)) {
    const runtime = new Runtime();
    for (let i = 0; i < 50; i += 1) await succeed(ONE, {}, runtime.runCode);
    const rounds = Math.ceil(FEWEST_PARKED / size);
    let [made, settled, fresh, holds] = [0, 0, 0, 0];
    for (let round = 0; round < rounds; round += 1) {
      const before = held();
      const parked = await park(runtime, size);
      made += parked.made / rounds;
      if (round === 0) {
        holds = Math.max(0, held() - before);
        fresh = await time(() => succeed(ONE, {}, runtime.runCode));
      }
      settled += (await parked.settle()) / rounds;
    }
    await runtime.close();
    rows.push({
      size,
      fresh: fresh * MICROS,
      made: (made / size) * MICROS,
      settled: (settled / size) * MICROS,
      starts: size / (made / 1e3),
      holds: holds / MIB,
    });
  }
  add('waiting', 'Runs that wait for their host', 'waiting runs', rows, [
    { unit: 'µs', fresh: 'a fresh run beside them', made: 'to start one', settled: 'to settle one' },
    { unit: 'runs/s', starts: 'started' },
    { unit: 'MiB', holds: 'held by all' },
  ]);
}

/** Starts runs and waits until all of them wait. Returns the time that took, and a function that lets them settle. */
async function park(runtime, size) {
  let [waiting, all, open] = [0];
  const full = new Promise((resolve) => { all = resolve; });
  const opened = new Promise((resolve) => { open = resolve; });
  const gate = () => {
    waiting += 1;
    if (waiting === size) all();
    return opened;
  };
  const runs = [];
  const made = await clock(() => {
    for (let i = 0; i < size; i += 1) runs.push(succeed(WAITS, { globals: { gate } }, runtime.runCode));
    return full;
  });
  const settle = () => clock(() => {
    open(1);
    return Promise.all(runs);
  });
  return { made, settle };
}

/** Runs that are started all at once. */
async function together() {
  const rows = [];
  for (const size of most([1, 10, 100, 1_000, 10_000], 100)) {
    const runtime = new Runtime();
    const latencies = [];
    const one = async () => latencies.push(await clock(() => succeed(ONE, {}, runtime.runCode)));
    const burst = () => Promise.all(Array.from({ length: size }, one));
    const before = held();
    await burst();
    latencies.length = 0;
    const took = await time(burst);
    const slow = latencies.toSorted((a, b) => a - b)[Math.floor(latencies.length * 0.99)];
    rows.push({
      size,
      p50: median(latencies) * MICROS,
      p99: slow * MICROS,
      rate: size / (took / 1e3),
      holds: Math.max(0, process.memoryUsage.rss() - before) / MIB,
    });
    await runtime.close();
  }
  add('together', 'Runs started all at once', 'runs', rows, [
    { unit: 'µs', p50: 'half of them settle within', p99: '99 % within' },
    { unit: 'runs/s', rate: 'settled' },
    { unit: 'MiB', holds: 'the process grew by' },
  ]);
}

/** Records and bytes in both directions, beside two calls of `structuredClone`. */
async function values() {
  const rows = [];
  for (const size of most([1, 10, 100, 1_000, 10_000, 50_000], 1_000)) {
    const value = records(size * KIB);
    const bytes = new Uint8Array(size * KIB).fill(7);
    const limit = size < LARGE_KIB ? {} : { memoryLimitBytes: 4e9 };
    const echo = (arg) => succeed('export default (value) => value', { execute: { args: [arg] }, ...limit });
    const there = await time(() => echo(value));
    const { memoryUsedBytes } = await echo(value);
    rows.push({
      size,
      records: there * MICROS,
      clone: (await time(() => structuredClone(structuredClone(value)))) * MICROS,
      bytes: (await time(() => echo(bytes))) * MICROS,
      copy: (await time(() => structuredClone(structuredClone(bytes)))) * MICROS,
      rate: size / KIB / (there / 1e3),
      holds: memoryUsedBytes / MIB,
    });
  }
  add('values', 'Values in and out', 'KiB, as JSON or as bytes', rows, [
    {
      unit: 'µs',
      records: 'records',
      clone: 'structuredClone of records, twice',
      bytes: 'bytes',
      copy: 'structuredClone of bytes, twice',
    },
    { unit: 'MiB/s', rate: 'records' },
    { unit: 'MiB', holds: 'the most that the run held' },
  ]);
}

/** Lines of TypeScript: functions of ten lines each, and as many names at the top level as lines. */
async function lines() {
  const shaped = (i) => {
    if (i % 10 === 0) return `function f${i}(x: number, y?: string): number { let sum: number = edition;`;
    return i % 10 === 9 ? '  return sum; }' : `  sum += x * ${i} + ((y?.length ?? 1) as number);`;
  };
  const named = (i) => `const f${i} = (x: number, y?: string): number => x * ${i} + (y?.length ?? edition);`;
  const source = (size, line, edition) => {
    const body = Array.from({ length: size }, (_, i) => line(i)).join('\n');
    return `const edition: number = ${edition};\n${body}\nexport default f0(2);`;
  };
  const run = (text) => succeed(text, { memoryLimitBytes: LINES_LIMIT_BYTES });
  const rows = [];
  for (const size of most([10, 100, 1_000, 5_000, 20_000], 1_000)) {
    const row = await coldAndWarm(size, (edition) => source(size, shaped, edition), run);
    const flat = await time((_, text) => run(text), (count) => source(size, named, count));
    rows.push({ ...row, flat: flat * MICROS });
  }
  const [times, ...others] = grown('lines/s');
  const panels = [{ ...times, flat: 'never seen, each line a name of the module' }, ...others];
  add('lines', 'Lines of TypeScript', 'lines', rows, panels);
}

/** Modules in a graph: each imports the two after it. */
async function modules() {
  const graph = (size, edition) => {
    const module = (i) => {
      const next = [i + 1, i + 2].filter((n) => n < size);
      const imports = next.map((n) => `import { value as v${n} } from './m${n}.ts';\n`).join('');
      const sum = ['1', ...next.map((n) => `v${n}`)].join(' + ');
      return [`./m${i}.ts`, `${imports}export const value: number = (${sum}) % 1000 + ${edition};`];
    };
    return Object.fromEntries(Array.from({ length: size }, (_, i) => module(i)));
  };
  const entry = "import { value } from './m0.ts'; export default value";
  const rows = [];
  for (const size of most([1, 10, 100, 500, 2_000], 100)) {
    const run = (modules) => succeed(entry, { modules });
    rows.push(await coldAndWarm(size, (edition) => graph(size, edition), run));
  }
  add('modules', 'Modules in a graph', 'modules', rows, grown('modules/s'));
}

/** The cost of a run with so much source; `make` returns as many different versions as are needed. */
async function coldAndWarm(size, make, run) {
  const seen = make(0);
  const { memoryUsedBytes } = await run(seen);
  const warm = await time(() => run(seen));
  const cold = await time((_, source) => run(source), (count) => make(count + 1));
  const rate = size / (cold / 1e3);
  return { size, cold: cold * MICROS, warm: warm * MICROS, rate, holds: memoryUsedBytes / MIB };
}

function grown(unit) {
  return [
    { unit: 'µs', cold: 'never seen', warm: 'seen before' },
    { unit, rate: 'never seen' },
    { unit: 'MiB', holds: 'the most that the run held' },
  ];
}

function most(sizes, bound) {
  return sizes.filter((size) => !quick || size <= bound);
}

/** Adds a table to the page, with its picture: a panel for each unit. */
function add(name, title, size, rows, panels) {
  const columns = panels.flatMap(({ unit, ...series }) =>
    Object.entries(series).map(([key, label]) => ({ key, label, unit })));
  const head = [size, ...columns.map(({ label, unit }) => `${label}, ${unit}`)];
  const cells = (row) => [row.size.toLocaleString('en'), ...columns.map(({ key }) => digits(row[key]))];
  const body = rows.map(cells);
  const table = [head, head.map(() => '--:'), ...body].map((cells) => `| ${cells.join(' | ')} |`);
  page.push(`## ${title}`, '', `![${title}](scale-${name}.svg)`, '', ...table, '');
  const drawn = panels.map(({ unit, ...series }) => ({
    x: size,
    y: unit,
    proportional: !unit.endsWith('/s'),
    lines: Object.entries(series).map(([key, label]) => {
      return { label, points: rows.map((row) => [row.size, row[key]]) };
    }),
  }));
  writeFileSync(new URL(`scale-${name}.svg`, FOLDER), picture(drawn));
}
