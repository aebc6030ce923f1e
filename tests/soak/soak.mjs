// The soak: a mix of all kinds of runs and of all operations on them, many at once, for a long time.
//
// In: `--runs`, `--width` (how many at once), `--seed`. Out: figures, and a non-zero exit code if a run was lost or had
// a wrong result, or if the process holds more at the end than before.

import { setTimeout as after } from 'node:timers/promises';
import { parseArgs } from 'node:util';

import { Runtime } from '../isolation.mjs';

import { Case, NAMES, SOON_MS, pick } from './mix.mjs';
import { Samples, threads } from './samples.mjs';

const SAMPLES = 20;
/** A run that has not settled by then is lost. The longest run takes about a hundredth of this. */
const LOST_MS = 120_000;
/** Threads without work end after 5 s; those in a builtin end after it. */
const THREADS_END_MS = 60_000;
const SHOWN = 20;

const { values } = parseArgs({
  options: { runs: { type: 'string', default: '10000' }, width: { type: 'string', default: '64' }, seed: { type: 'string', default: '1' } },
});
const [runs, width, seed] = [values.runs, values.width, values.seed].map(Number);

const statuses = { success: 0, error: 0, memory: 0, terminated: 0, link_error: 0 };
// Allocated at the start, so that these records of the runs do not look like a leak.
const kinds = new Uint8Array(runs).fill(255);
const tookMs = new Float64Array(runs);
const wrong = [];
let dropped = 0;
let startedHere = 0;
let lost = 0;

const threadsBefore = threads();
const runtime = new Runtime();
const samples = new Samples();

console.log(`node ${process.version}: ${runs} runs, ${width} at once, seed ${seed}`);
console.log(Samples.header());
console.log(Samples.line(samples.take(0)));
const began = performance.now();
for (let part = 0; part < SAMPLES; part += 1) {
  let next = Math.floor((runs * part) / SAMPLES);
  const end = Math.floor((runs * (part + 1)) / SAMPLES);
  const worker = async () => {
    while (next < end) await one(next++);
  };
  await Promise.all(Array.from({ length: width }, worker));
  await settled(startedHere);
  console.log(Samples.line(samples.take(end, runtime.stats().compileCacheBytes)));
}
const seconds = (performance.now() - began) / 1e3;
const { settled: bySettled } = runtime.stats();
await runtime.close();
const left = await threadsLeft();

const counted = Object.values(bySettled).reduce((sum, count) => sum + count, 0);
if (counted !== startedHere) wrong.push(`the runtime counts ${counted} settled of ${startedHere} started`);
const grown = samples.grown();
if (left > 0) grown.push(`threads: ${left} more than before`);
report();
process.exitCode = lost + wrong.length + grown.length === 0 ? 0 : 1;

async function one(n) {
  const { kind, next } = pick(seed, n);
  kinds[n] = kind;
  const run = new Case(kind, n, next);
  const started = performance.now();
  const { drop, close, terminate } = run.fields;
  if (close) {
    await closed(n);
  } else if (drop) {
    // No one awaits it; the runtime's counts show that it settles.
    startedHere += 1;
    dropped += 1;
    run.handle = runtime.runCode(run.source, run.options);
  } else {
    startedHere += 1;
    run.handle = runtime.runCode(run.source, run.options);
    if (terminate === 'at once') run.terminate();
    if (terminate === 'soon') void after(next() * SOON_MS).then(() => run.terminate());
    await expect(run);
  }
  tookMs[n] = performance.now() - started;
}

/** Waits for a run and checks its result. */
async function expect(run) {
  let timer;
  const ceiling = new Promise((resolve) => {
    timer = setTimeout(resolve, LOST_MS);
  });
  const result = await Promise.race([run.handle, ceiling]);
  clearTimeout(timer);
  if (result === undefined) {
    lost += 1;
    wrong.push(`lost: ${run.name} (${run.n})`);
    return;
  }
  statuses[result.status] += 1;
  const problem = run.handle.running ? 'running after it settled' : run.check(result);
  if (problem !== '') wrong.push(`${run.name} (${run.n}): ${problem}`);
}

/** A runtime that is closed while runs compute, wait and queue in it. */
async function closed(n) {
  const own = new Runtime({ maxConcurrentRuns: 2, readyIsolates: 1 });
  const never = () => new Promise(() => {});
  const live = ['for (;;);', 'for (;;);', 'await never()', 'for (;;) await 0;', 'for (;;);'].map((source) => own.runCode(source, { globals: { never } }));
  await own.runCode('export default 1');
  const end = own.close();
  for (const { status, error } of await Promise.all(live)) {
    statuses[status] += 1;
    if (status !== 'terminated' || error.message !== 'runtime closed') wrong.push(`closed (${n}): ${status} ${error?.message}`);
  }
  await end;
  const { computing, stuckThreads, parked, queued, readyIsolates } = own.stats();
  // A thread that the system delayed for long was given up on, and has not noticed its termination yet.
  if (Math.max(0, computing - stuckThreads) + parked + queued + readyIsolates > 0) wrong.push(`closed (${n}): ${JSON.stringify(own.stats())}`);
}

/** Waits until every started run has settled, including those that no one awaits. */
async function settled(count) {
  const deadline = performance.now() + LOST_MS;
  const sum = () => Object.values(runtime.stats().settled).reduce((all, some) => all + some, 0);
  while (sum() < count && performance.now() < deadline) await after(5);
}

async function threadsLeft() {
  const deadline = performance.now() + THREADS_END_MS;
  while (threads() > threadsBefore && performance.now() < deadline) await after(50);
  return Math.max(0, threads() - threadsBefore);
}

function report() {
  console.log(`\n${(runs / seconds).toFixed(0)} runs/s; ${Object.entries(statuses).map(([status, count]) => `${status} ${count}`).join(', ')}, dropped ${dropped}`);
  console.log('\n    runs   p50 ms   p99 ms   max ms  kind');
  NAMES.forEach((name, kind) => {
    const took = tookMs.filter((_, n) => kinds[n] === kind).sort();
    const at = (share) => (took[Math.min(took.length - 1, Math.floor(took.length * share))] ?? 0).toFixed(1).padStart(8);
    console.log(`${`${took.length}`.padStart(8)} ${at(0.5)} ${at(0.99)} ${at(1)}  ${name}`);
  });
  console.log(`\nlost: ${lost}; wrong: ${wrong.length}; grown: ${grown.join('; ') || 'nothing'}`);
  for (const line of wrong.slice(0, SHOWN)) console.log(`  ${line}`);
}
