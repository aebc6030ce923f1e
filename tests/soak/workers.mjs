// Worker threads that end with runs in them.
//
// In: `--runs`, `--seed`. Out: figures, and a non-zero exit code if a run of a worker that lived had a wrong result, or
// if the process does not return to its number of threads.

import { setTimeout as after } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Worker, isMainThread, parentPort, workerData } from 'node:worker_threads';

import { runCode } from '../isolation.mjs';

import { Case, pick, random } from './mix.mjs';
import { threads } from './samples.mjs';

const WORKERS = 4;
const WIDTH = 16;
/** A worker is ended after at most that many of its runs, and the next one continues with the rest. */
const MOST_RUNS = 50;
const LOST_MS = 120_000;
const THREADS_END_MS = 60_000;

if (isMainThread) await main();
else await worker(workerData);

async function main() {
  const { values } = parseArgs({ options: { runs: { type: 'string', default: '2000' }, seed: { type: 'string', default: '1' } } });
  const [runs, seed] = [values.runs, values.seed].map(Number);
  // A run on this thread too, which starts the permanent threads and one that is idle.
  await runCode('export default 1');
  const before = threads();
  const wrong = [];
  const next = random(seed);
  let [at, done, ended] = [0, 0, 0];
  const one = async () => {
    while (at < runs) {
      const from = at;
      at += MOST_RUNS;
      const to = Math.min(at, runs);
      const live = new Worker(new URL(import.meta.url), { workerData: { from, to, seed } });
      const exited = new Promise((resolve) => live.once('exit', resolve));
      // The first run has settled, so from now on some of the others are in progress.
      const began = new Promise((resolve) => live.once('message', resolve));
      live.on('message', (message) => (message === 'done' ? (done += 1) : wrong.push(message)));
      live.on('error', (error) => wrong.push(String(error)));
      const lost = after(LOST_MS, 'lost', { ref: false });
      await Promise.race([began, exited, lost]);
      await after(next() * 200);
      await live.terminate();
      if ((await Promise.race([exited, lost])) === 'lost') wrong.push('a worker that did not end');
      ended += 1;
    }
  };
  await Promise.all(Array.from({ length: WORKERS }, one));
  if ((await runCode('export default 6 * 7')).result !== 42) wrong.push('no run after all that');
  // The runs that the workers left end by themselves, and then the threads do.
  const deadline = performance.now() + THREADS_END_MS;
  while (threads() > before && performance.now() < deadline) await after(50);
  if (threads() > before) wrong.push(`${threads() - before} threads more than before`);
  console.log(`workers: ${ended}, ended at random; runs that settled in time and as they must: ${done} of ${runs}; wrong: ${wrong.length}`);
  for (const line of wrong.slice(0, 20)) console.log(`  ${line}`);
  process.exitCode = wrong.length === 0 && done > 0 ? 0 : 1;
}

async function worker({ from, to, seed }) {
  let at = from;
  const one = async () => {
    while (at < to) {
      const n = at++;
      const { kind, next } = pick(seed, n);
      const run = new Case(kind, n, next);
      if (run.fields.close || run.fields.drop) continue;
      run.handle = runCode(run.source, run.options);
      if (run.fields.terminate === 'at once') run.terminate();
      if (run.fields.terminate === 'soon') void after(next() * 30).then(() => run.terminate());
      const problem = run.check(await run.handle);
      parentPort.postMessage(problem === '' ? 'done' : `${run.name} (${n}): ${problem}`);
    }
  };
  await Promise.all(Array.from({ length: WIDTH }, one));
}
