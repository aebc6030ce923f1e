// Costs of isolation by process, beside isolates on threads of this process.
//
// In: `--quick` for few samples. Out: a table in Markdown, on Linux alone. There are no bounds.

import { setTimeout as sleep } from 'node:timers/promises';

import { Runtime } from 'isolane';

import { HEAD, clock, median, perSecond, quick, rate, records, row, succeed, time } from './measure.mjs';

const ECHO = 'export default (value) => value';
const ONE = 'export default 1 + 1';
const CALLS = quick ? 500 : 5_000;
const PACED = quick ? 10 : 200;
const COLD = quick ? 2 : 10;
/** Enough time for the next worker to be ready. */
const PAUSE_MS = 5;

const threads = new Runtime();
const processes = new Runtime({ isolation: 'process' });
const reused = new Runtime({ isolation: 'process', runsPerWorker: 1_000 });

const fresh = (runtime) => () => succeed(ONE, {}, runtime.runCode);
const rows = [
  await beside('the first run of a runtime, made for it', cold),
  await beside('a fresh run of `1 + 1`, now and then', (runtime) => paced(fresh(runtime))),
  await beside('one after another', (runtime) => time(fresh(runtime))),
  await beside('16 at once', (runtime) => rate(16, fresh(runtime)), perSecond),
  await beside('one after another, 1,000 in a worker', (runtime) => time(fresh(runtime)), undefined, reused),
  await beside('16 at once, 1,000 in a worker', (runtime) => rate(16, fresh(runtime)), perSecond, reused),
  await beside('a synchronous host call', (runtime) => calls(runtime, 'add(i, 1)', (a, b) => a + b)),
  await beside('an asynchronous one, one after another', (runtime) =>
    calls(runtime, 'await add(i, 1)', async (a, b) => a + b)),
  await beside('1 MB of records, in and out', (runtime) => echo(runtime, records(1e6))),
  await beside('1 MB of bytes, in and out', (runtime) => echo(runtime, new Uint8Array(1e6).fill(7))),
  await beside('ending an endless loop', (runtime) => ended(runtime, 'for (;;);')),
];
await Promise.all([threads, processes, reused].map((runtime) => runtime.close()));
console.log(`### Isolation by process\n\n${HEAD}\n${rows.join('\n')}\n`);

/** The cost in processes, and its ratio to the cost on threads. */
async function beside(what, measure, unit, runtime = processes) {
  return row(what, await measure(runtime), 'on threads', await measure(threads), unit);
}

async function cold(beside) {
  const isolation = beside === threads ? 'thread' : 'process';
  const samples = [];
  for (let i = 0; i < COLD; i += 1) {
    let runtime;
    samples.push(await clock(async () => {
      runtime = new Runtime({ isolation });
      await succeed(ONE, {}, runtime.runCode);
    }));
    await runtime.close();
  }
  return median(samples);
}

async function paced(act) {
  const samples = [];
  for (let i = 0; i < PACED; i += 1) {
    await sleep(PAUSE_MS);
    samples.push(await clock(act));
  }
  return median(samples);
}

async function calls({ runCode }, call, add) {
  const source = `export default async (n) => { for (let i = 0; i < n; i++) ${call}; }`;
  const settings = { globals: { add }, execute: { args: [CALLS] } };
  return (await time(() => succeed(source, settings, runCode))) / CALLS;
}

function echo({ runCode }, value) {
  return time(() => succeed(ECHO, { execute: { args: [value] } }, runCode));
}

async function ended({ runCode }, source) {
  const samples = [];
  for (let i = 0; i < PACED / 5; i += 1) {
    let begun;
    const begins = new Promise((resolve) => { begun = resolve; });
    const run = runCode(`begun(); ${source}`, { globals: { begun } });
    await begins;
    samples.push(await clock(async () => {
      run.terminate();
      await run;
    }));
  }
  return median(samples);
}
