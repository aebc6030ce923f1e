// The meter: memory that a run hands over, against the run's charge, over random values.
//
// In: `--seconds` (30), `--seed` of the first value, `--isolation thread|process|both`, `--jobs n` at a time,
// `--most bytes` of a value, `--limit` of a run in MiB, `--only seed` to measure one alone, `--cells` for cells of sessions
// instead of runs. Out: the worst ten by memory that the host really holds for each charged byte, and the worst ten by
// standstill of the event loop, on the standard output and, of runs, in RESULTS.md beside this; a non-zero exit code if a
// value held more than twice its charge and 1 MiB, blocked the loop for more than 100 ms of CPU time, ended its process, or
// left more than 1 MiB with the session of its cell. Cases run in processes of their own, so that one that ends its process
// is reported with its seed. A case over a bound is measured again, alone.

import { spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const CASE = fileURLToPath(new URL('case.mjs', import.meta.url));
const RESULTS = new URL('RESULTS.md', import.meta.url);
const MOST_RATIO = 2;
const FREE_BYTES = 1024 * 1024;
const MOST_STANDSTILL_MS = 100;
/** The number of cases of one process, so that the leftovers of one affect only a few. */
const BATCH = 20;
/** A case that has not been measured by then has blocked its process: its own runs are asked to end long before. */
const LEAST_CEILING_MS = 30_000;
const BYTES_PER_MS_OF_CEILING = 500;
const SHOWN = 10;
const SHOWN_KIND = 160;
/** Random numbers and noise are not the value's fault, so the best of so many counts. */
const AGAIN = 2;

const { values: options } = parseArgs({
  options: {
    seconds: { type: 'string', default: '30' },
    seed: { type: 'string' },
    only: { type: 'string' },
    isolation: { type: 'string', default: 'thread' },
    jobs: { type: 'string', default: '1' },
    most: { type: 'string' },
    limit: { type: 'string' },
    cells: { type: 'boolean', default: false },
  },
});
const CASE_CEILING_MS = Math.max(LEAST_CEILING_MS, Number(options.most ?? 0) / BYTES_PER_MS_OF_CEILING);
const isolations = options.isolation === 'both' ? ['thread', 'process'] : [options.isolation];
const seed = Number(options.only ?? options.seed ?? Date.now() % 2 ** 30);
const rows = [];

if (options.only !== undefined) {
  for (const isolation of isolations) await batch(seed, 1, isolation);
  for (const row of rows) console.log(`${JSON.stringify(row, undefined, 2)}\n${wrong(row).join('\n')}`);
} else {
  await all();
  const section = report();
  console.log(section);
  if (!options.cells) writeFileSync(RESULTS, results(section));
}
process.exitCode = rows.length > 0 && rows.every((row) => wrong(row).length === 0) ? 0 : 1;

async function all() {
  const deadline = performance.now() + Number(options.seconds) * 1000;
  console.log(`meter: node ${process.version}, seed ${seed}, ${isolations.join(' and ')}, ${options.cells ? 'as cells, ' : ''}${options.seconds} s`);
  let next = seed;
  let turns = 0;
  const work = async () => {
    while (performance.now() < deadline) {
      const isolation = isolations[turns++ % isolations.length];
      // Both isolations get the same values.
      const from = next;
      if (turns % isolations.length === 0) next += BATCH;
      await batch(from, BATCH, isolation, deadline);
    }
  };
  await Promise.all(Array.from({ length: Number(options.jobs) }, work));
  for (const row of rows.filter((row) => row.crash === undefined && wrong(row).length > 0)) await again(row);
}

/** Measures a case over a bound again alone, and keeps the best. */
async function again(row) {
  for (let times = 0; times < AGAIN && wrong(row).length > 0; times += 1) {
    const [alone] = await batch(row.seed, 1, row.isolation, Infinity, []);
    if (alone === undefined || alone.crash !== undefined) return;
    if (alone.ratio < row.ratio) Object.assign(row, { held: alone.held, charged: alone.charged, ratio: alone.ratio });
    row.stoodMs = Math.min(row.stoodMs, alone.stoodMs);
    row.left = Math.min(row.left, alone.left);
  }
}

/** Some cases in processes of their own: a new process after each that ended early. */
async function batch(from, count, isolation, deadline = Infinity, into = rows) {
  for (let next = from; next < from + count && performance.now() < deadline; ) {
    next = await inProcess(next, from + count - next, isolation, deadline, into);
  }
  return into;
}

/** Cases in one process, as long as it lives. Returns the first seed that is left. */
async function inProcess(from, count, isolation, deadline, into) {
  const args = ['--expose-gc', CASE, '--seed', `${from}`, '--count', `${count}`, '--isolation', isolation];
  if (options.most !== undefined) args.push('--most', options.most);
  if (options.limit !== undefined) args.push('--limit', options.limit);
  if (options.cells) args.push('--cells');
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  const exited = new Promise((resolve) => child.once('close', (code, signal) => resolve(signal ?? code)));
  const errors = text(child.stderr);
  let begun = from;
  let done = true;
  let late = false;
  let timer;
  const watch = () => {
    clearTimeout(timer);
    timer = setTimeout(() => (late = child.kill('SIGKILL')), CASE_CEILING_MS);
  };
  watch();
  let enough = false;
  for await (const line of createInterface({ input: child.stdout })) {
    const said = JSON.parse(line);
    watch();
    done = said.began === undefined;
    if (!done) begun = said.began;
    else into.push(said);
    if (done && performance.now() > deadline) enough = child.kill();
  }
  const exit = await exited;
  clearTimeout(timer);
  if (exit === 0 || enough) return begun + count;
  const why = late ? `no answer in ${CASE_CEILING_MS / 1000} s` : ((await errors).split('\n').find((part) => /FATAL|Error/.test(part)) ?? `ended with ${exit}`);
  into.push({ seed: begun, isolation, crash: why, kind: '', ratio: Infinity, stoodMs: 0, held: 0, charged: 0 });
  return begun + 1;
}

/** The broken promises of a case. */
function wrong({ crash, failure, held, charged, stoodMs, left }) {
  const found = [];
  if (crash !== undefined) found.push(`ended its process: ${crash}`);
  if (failure !== undefined) found.push(`came to ${failure}`);
  if (held > MOST_RATIO * charged + FREE_BYTES) found.push(`held ${mib(held)} of ${mib(charged)} charged`);
  if (left > FREE_BYTES) found.push(`left ${mib(left)} with the open session`);
  if (stoodMs > MOST_STANDSTILL_MS) found.push(`stood still for ${stoodMs.toFixed(0)} ms`);
  return found;
}

function report() {
  const crashed = rows.filter(({ crash }) => crash !== undefined);
  const measured = rows.filter(({ crash }) => crash === undefined);
  // A small value's ratio is mostly the collector's noise.
  const large = measured.filter(({ held }) => held > FREE_BYTES);
  const worst = (list, by) => list.toSorted((a, b) => b[by] - a[by]).slice(0, SHOWN);
  const over = rows.filter((row) => wrong(row).length > 0);
  const failed = rows.filter(({ crash, failure }) => (crash ?? failure) !== undefined);
  const counts = `${rows.length} values from seed ${seed}, ${isolations.join(' and ')}; ${over.length} beyond a bound, ${crashed.length} of them ended their process.`;
  const processor = cpus()[0]?.model ?? 'an unknown processor';
  return [
    `Node.js ${process.version}, ${processor}: ${counts}`,
    ...(failed.length === 0 ? [] : ['', '| seed | failed |', '|---|---|', ...failed.slice(0, SHOWN).map((row) => `| ${row.seed}, ${row.isolation} | ${escaped(wrong(row)[0])} |`)]),
    '',
    '| held / charged | held, MiB | charged, MiB | seed | by | value |',
    '|---|---|---|---|---|---|',
    ...worst(large, 'ratio').map((row) => `| ${row.ratio.toFixed(2)} | ${mib(row.held)} | ${mib(row.charged)} | ${place(row)} |`),
    '',
    '| stood still, ms | seed | by | value |',
    '|---|---|---|---|',
    ...worst(measured, 'stoodMs').map((row) => `| ${row.stoodMs.toFixed(1)} | ${place(row)} |`),
  ].join('\n');
}

function place({ seed, isolation, way, copies, kind }) {
  return `${seed}, ${isolation} | ${way} × ${copies} | ${escaped(kind)}`;
}

function escaped(kind) {
  return kind.slice(0, SHOWN_KIND).replaceAll('|', '\\|').replaceAll('\n', '\\n');
}

function mib(bytes) {
  return (bytes / 1024 / 1024).toFixed(2);
}

/** The file of results with a new version of this section; the other language's stays. */
function results(section) {
  const title = '## Node.js';
  let before = '';
  try {
    before = readFileSync(RESULTS, 'utf8');
  } catch (error) {
    if (error.code !== 'ENOENT') throw error;
  }
  const others = before.split(/^(?=## )/m).slice(1).filter((part) => !part.startsWith(title));
  const head = '# The meter, on one machine\n\nWritten by the programs that the README beside this describes.\n\n';
  return head + [`${title}\n\n${section}\n`, ...others.map((part) => `${part.trim()}\n`)].join('\n');
}
