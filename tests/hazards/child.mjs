// One hazard, in this process alone.
//
// In: a program as JSON on standard input, `{ source, go, cell }`. Out: a line of JSON: whether it was still running when
// it was asked to end, its time to settle from then on and its status, the result of an innocent run beside it, and
// whether the thread returned, or under isolation by process whether the workers are gone. A program that is a cell also
// tells what became of its session, and what the next cell finds there. Then the process must be able to exit.

import { performance } from 'node:perf_hooks';
import { text } from 'node:stream/consumers';
import { setTimeout as after } from 'node:timers/promises';

import { Runtime, isolation } from '../isolation.mjs';
import { alive, workersOf } from '../processes.mjs';

const RUNS_FOR_MS = 40;
const THREAD_BACK_MS = 1_500;
const MEMORY = 256 * 1024 * 1024;

const { source, go, cell } = JSON.parse(await text(process.stdin));
// Each worker belongs to a run, and must be gone with it.
const ready = isolation === 'process' ? { readyIsolates: 0 } : {};
const runtime = new Runtime({ maxConcurrentRuns: 2, ...ready });
// This is the warm-up: the measurement covers only the termination of the hazard.
await runtime.runCode('export default 1');

let started;
const going = new Promise((resolve) => {
  started = resolve;
});
const given = {
  memoryLimitBytes: MEMORY,
  globals: { host: () => undefined, never: () => new Promise(() => {}), later: async (x) => x },
  report: started,
};
const session = cell ? runtime.session(given) : undefined;
await session?.run('const work = { of: "an hour" }');
const run = session?.run(source) ?? runtime.runCode(source, given);
if (go) await Promise.race([going, run]);
await Promise.race([after(RUNS_FOR_MS), run]);

const wasRunning = run.running;
const beside = runtime.runCode('export default 6 * 7');
const workers = isolation === 'process' ? workersOf(process.pid) : [];
const asked = performance.now();
run.terminate('hazard');
const { status, error, session: state } = await run;
const settledMs = performance.now() - asked;
const innocent = (await beside).result === 42;
// It runs on another thread if that of the hazard does not come back.
const next = await session?.run('work.of');
const kept = next && (next.result ?? next.error.name);
await session?.close();

const deadline = performance.now() + THREAD_BACK_MS;
const isBack = () => {
  const { stuckThreads, computing } = runtime.stats();
  return stuckThreads === 0 && computing === 0 && alive(workers).length === 0;
};
while (!isBack() && performance.now() < deadline) await after(5);
const threadMs = performance.now() - asked;
const threadBack = isBack();
console.log(JSON.stringify({ wasRunning, status, error: error?.name, settledMs, innocent, state, kept, threadBack, threadMs }));
