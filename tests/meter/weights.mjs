// Memory that Node.js really holds for a value of the sandbox, shape by shape, against the run's charge.
//
// In: `--only text` for shapes whose name contains the text, `--out file` for the table as a file too, `--jobs n` for
// so many at a time, `--mib n` for the charge in a measurement; ISOLANE_ISOLATION. Run with `--expose-gc`. Out: a table
// of bytes held and charged for each copy, worst first, and a non-zero exit code if a shape holds more than twice its
// charge and 1 MiB, or if it ends its process. Each shape is measured in a process of its own: a program makes the
// shape again and again and reports it, so that the sandbox keeps none, the host keeps all, and the run is charged for
// all.

import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { setImmediate as turn } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

import { runCode } from '../isolation.mjs';

import { SHAPES } from './shapes.mjs';

/** The sandbox holds one of them, and the host all. */
const BATCHES = 16;
/** The smallest charge that determines the size of one copy. */
const PROBE_BYTES = 256 * 1024;
const MOST_COPIES = 1_000_000;
const LIMIT_BYTES = 1024 * 1024 * 1024;
const CHILD_CEILING_MS = 60_000;
const MOST_RATIO = 2;
const FREE_BYTES = 1024 * 1024;

const { values: options } = parseArgs({
  options: { only: { type: 'string', default: '' }, shape: { type: 'string' }, out: { type: 'string' }, jobs: { type: 'string', default: '2' }, mib: { type: 'string', default: '10' } },
});
/** The approximate charge of one measurement: far above the noise of a collected heap. */
const CHARGED_BYTES = Number(options.mib) * 1024 * 1024;

if (options.shape === undefined) await all();
else console.log(JSON.stringify(await measure(SHAPES[options.shape])));

async function all() {
  const rows = [];
  // Arguments that the host keeps are its own affair: a promise that has settled is charged no more.
  const isOver = (row) => row.failure !== undefined || (!SHAPES[row.name].live && isHeavy(row));
  const left = Object.keys(SHAPES).filter((name) => name.includes(options.only));
  const work = async () => {
    for (let name = left.shift(); name !== undefined; name = left.shift()) {
      rows.push({ name, ...(await child(name)) });
      rows.sort((a, b) => b.ratio - a.ratio);
      if (options.out !== undefined) writeFileSync(options.out, `${table(rows)}\n`);
    }
  };
  await Promise.all(Array.from({ length: Number(options.jobs) }, work));
  console.log(table(rows));
  const over = rows.filter(isOver);
  console.log(`\nweights: ${rows.length} shapes, ${over.length} over ${MOST_RATIO}x and 1 MiB`);
  process.exitCode = rows.length > 0 && over.length === 0 ? 0 : 1;
}

/** The output of a process that measures one shape. */
async function child(name) {
  const args = ['--expose-gc', fileURLToPath(import.meta.url), '--shape', name, '--mib', options.mib];
  const process_ = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  const ceiling = setTimeout(() => process_.kill('SIGKILL'), CHILD_CEILING_MS);
  const exited = new Promise((resolve) => process_.once('close', (code, signal) => resolve(signal ?? code)));
  const [output, errors, exit] = await Promise.all([text(process_.stdout), text(process_.stderr), exited]);
  clearTimeout(ceiling);
  if (exit === 0) return JSON.parse(output);
  const fatal = errors.split('\n').find((part) => /FATAL|Error/.test(part)) ?? errors.slice(0, 200);
  return { ratio: Infinity, failure: `ended with ${exit}: ${fatal}` };
}

/** Bytes held and charged for one copy of a shape. */
async function measure(shape) {
  const size = await batchSize(shape);
  const one = await charged(shape, size, 1, 1e3);
  const before = await held();
  const many = await charged(shape, size, 1 + BATCHES, 1e3 + size);
  const after = await held();
  // The additional batch is the sandbox's own copy at the peak, in both runs.
  const chargedBytes = (many.bytes - one.bytes) / BATCHES / size;
  const copies = (1 + BATCHES) * size;
  const heldBytes = (after.heap - before.heap) / copies;
  const residentBytes = (after.resident - before.resident) / copies;
  if (many.kept.length !== (1 + BATCHES) * (shape.alone ? size + 1 : 1)) throw new Error('some reports were not kept');
  const most = shape.outside ? Math.max(heldBytes, residentBytes) : heldBytes;
  return { copies, held: heldBytes, resident: residentBytes, charged: chargedBytes, ratio: most / chargedBytes, excess: most * copies - MOST_RATIO * chargedBytes * copies };
}

/** The number of copies in a batch, so that all batches are charged enough. */
async function batchSize(shape) {
  for (let size = 1; ; size *= 8) {
    const one = await charged(shape, size, 1, 0);
    const many = await charged(shape, size, 1 + BATCHES, 0);
    const each = (many.bytes - one.bytes) / BATCHES / size;
    if (size * each > PROBE_BYTES / BATCHES || size * 8 * BATCHES > MOST_COPIES) {
      return Math.max(1, Math.min(MOST_COPIES / BATCHES, Math.ceil(CHARGED_BYTES / BATCHES / Math.max(1, each))));
    }
  }
}

/** A run that hands out so many batches of so many copies. Returns its charge and the values. */
async function charged({ make, setup = '', live = false, alone = false }, size, batches, start) {
  const kept = [];
  const keep = (value) => void kept.push(value);
  const source = `
    ${setup}
    const make = ${make};
    let next = ${start};
    for (let batch = 0; batch < ${batches}; batch += 1) {
      let copies = [];
      for (let copy = 0; copy < ${size}; copy += 1) {
        copies.push(make(next++));
        ${alone ? 'report(copies); copies = [];' : ''}
      }
      ${live ? 'keep' : 'report'}(copies);
    }
    export default async () => {${live ? ' await later();' : ''} };`;
  const { resolve, promise } = withResolvers();
  const run = runCode(source, { language: 'javascript', memoryLimitBytes: LIMIT_BYTES, report: keep, globals: { keep, later: () => promise } });
  resolve();
  const { status, error, memoryUsedBytes } = await run;
  if (status !== 'success') throw new Error(`${status}: ${error.message}`);
  return { bytes: memoryUsedBytes, kept };
}

function withResolvers() {
  let resolve;
  const promise = new Promise((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}

/** The memory of this process after a collection. */
async function held() {
  for (let times = 0; times < 4; times += 1) {
    globalThis.gc();
    await turn();
  }
  const { heapUsed, external, rss } = process.memoryUsage();
  return { heap: heapUsed + external, resident: rss };
}

function isHeavy({ ratio, excess }) {
  return ratio > MOST_RATIO && excess > FREE_BYTES;
}

function table(rows) {
  return [header(), ...rows.map(line)].join('\n');
}

function header() {
  return `${'ratio'.padStart(8)} ${'held'.padStart(11)} ${'RSS'.padStart(11)} ${'charged'.padStart(11)} ${'copies'.padStart(8)}  shape`;
}

function line(row) {
  if (row.failure !== undefined) return `   CRASH  ${row.name}: ${row.failure}`;
  const bytes = (number) => number.toFixed(1).padStart(11);
  const mark = isHeavy(row) ? '  OVER' : '';
  return `${row.ratio.toFixed(2).padStart(8)} ${bytes(row.held)} ${bytes(row.resident)} ${bytes(row.charged)} ${`${row.copies}`.padStart(8)}  ${row.name}${mark}`;
}
