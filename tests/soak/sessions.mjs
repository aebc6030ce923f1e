// Many sessions in one process: cells in any of them in any order, and many forks of one.
//
// In: `--sessions`, `--cells`, `--forks`, `--seed`. Out: figures, and a non-zero exit code if a session had another state
// than its own cells left, if sessions at rest hold more than 1.1 of what their heaps hold, or if the process has more
// threads for them than without.

import { setTimeout as after } from 'node:timers/promises';
import { parseArgs } from 'node:util';

import { Session } from 'isolane';

import { random } from './mix.mjs';
import { Samples, threads } from './samples.mjs';

const WIDTH = 16;
const MOST_RATIO = 1.1;
/** One cell in so many never ends, and is undone. */
const ENDLESS = 100;
const TIMEOUT_MS = 5;
/** The heaps of so many sessions are looked at. */
const SAMPLE = 100;
const THREADS_END_MS = 60_000;
const MIB = 2 ** 20;

const { values } = parseArgs({
  options: {
    sessions: { type: 'string', default: '10000' },
    cells: { type: 'string', default: '20000' },
    forks: { type: 'string', default: '1000' },
    seed: { type: 'string', default: '1' },
  },
});
const [count, cells, forks, seed] = [values.sessions, values.cells, values.forks, values.seed].map(Number);
const next = random(seed);
const at = (length) => Math.floor(next() * length);
const wrong = [];
let mostThreads = 0;

const samples = new Samples();
await warmUp();
const before = samples.take(0).rss;
const threadsBefore = threads();

const began = performance.now();
const sessions = [];
await each(count, async (own) => {
  const session = new Session();
  const source = `const rows = Array.from({ length: 200 }, (_, at) => ({ at, own: ${own} })); let cells = 0;`;
  expect(await session.run(source), undefined, 'the first cell');
  sessions[own] = { session, cells: 0 };
});
const opened = performance.now();
await each(cells, async (n) => {
  const own = at(count);
  const it = sessions[own];
  const isEndless = n % ENDLESS === 0;
  if (isEndless) {
    const { status, session } = await it.session.run('cells = -1; rows.length = 0; for (;;);', { timeoutMs: TIMEOUT_MS });
    // On a busy machine its time may be over before it begins.
    if (status !== 'terminated' || session === 'reset') wrong.push(`an endless cell: ${status}, ${session}`);
    return;
  }
  it.cells += 1;
  const expected = [own, it.cells, 200];
  expect(await it.session.run('cells += 1; [rows[cells % 200].own, cells, rows.length]'), expected, `session ${own}`);
});
const done = performance.now();

const atRest = await threadsAtRest();
const held = (samples.take(count).rss - before) / count;
let heap = 0;
for (let n = 0; n < SAMPLE; n += 1) heap += (await sessions[at(count)].session.run('')).memoryUsedBytes / MIB / SAMPLE;
const ratio = held / heap;
if (ratio > MOST_RATIO) wrong.push(`a session at rest holds ${ratio.toFixed(2)} of its heap`);
await Promise.all(sessions.map(({ session }) => session.close()));

await forked();
if (atRest > threadsBefore) wrong.push(`${atRest} threads with ${count} sessions at rest, before ${threadsBefore}`);
if (mostThreads > threadsBefore + WIDTH) wrong.push(`${mostThreads} threads for ${WIDTH} cells at once, before ${threadsBefore}`);
const rate = (all, ms) => `${Math.round(all / (ms / 1e3)).toLocaleString('en')}/s`;
console.log(`sessions: ${count} opened (${rate(count, opened - began)}), ${cells} cells in any of them (${rate(cells, done - opened)}), ${forks} forks`);
console.log(`a session at rest: ${(held * 1024).toFixed(0)} KiB, its heap ${(heap * 1024).toFixed(0)} KiB, ratio ${ratio.toFixed(2)}; threads: ${atRest}, at most ${mostThreads}, before ${threadsBefore}`);
for (const line of wrong.slice(0, 20)) console.log(`  ${line}`);
process.exitCode = wrong.length === 0 ? 0 : 1;

/** Forks of one session, each changed by cells of its own, all at once. */
async function forked() {
  const origin = new Session();
  expect(await origin.run('const plan = [1, 2, 3]; let mine = -1; const read = () => [mine, ...plan.slice(3)];'), undefined, 'the origin');
  const all = await Promise.all(Array.from({ length: forks }, () => origin.fork()));
  const change = (fork, own) => fork.run(`mine = ${own}; plan.push(${own}); plan.sort((a, b) => a - b); let only${own} = 1;`);
  await Promise.all(all.map(async (fork, own) => expect(await change(fork, own + 4), [1, 2, 3, own + 4], `fork ${own}`)));
  // In an order of their own, so that each comes back to a home that others have used.
  const order = all.map((_, own) => own).sort(() => next() - 0.5);
  await Promise.all(order.map(async (own) => {
    expect(await all[own].run('read()'), [own + 4, own + 4], `fork ${own} afterwards`);
    const names = (await all[own].names()).map(({ name }) => name);
    if (names.join() !== `plan,mine,read,only${own + 4}`) wrong.push(`fork ${own} has ${names}`);
  }));
  expect(await origin.run('read()'), [-1], 'the origin afterwards');
  mostThreads = Math.max(mostThreads, threads());
  await Promise.all([origin, ...all].map((session) => session.close()));
}

/** Threads and code that stay, so that they do not count. */
async function warmUp() {
  const warm = Array.from({ length: WIDTH }, () => new Session());
  await Promise.all(warm.map((session) => session.run('const rows = Array.from({ length: 200 }, (_, at) => ({ at }));')));
  await Promise.all(warm.map((session) => session.close()));
}

/** Threads that gave their place to others end some time after their run. */
async function threadsAtRest() {
  const deadline = performance.now() + THREADS_END_MS;
  while (threads() > threadsBefore && performance.now() < deadline) await after(50);
  return threads();
}

/** Acts so many times, a few at once. */
async function each(times, act) {
  let begun = 0;
  const lane = async () => {
    while (begun < times) {
      begun += 1;
      await act(begun - 1);
      if (begun % 100 === 0) mostThreads = Math.max(mostThreads, threads());
    }
  };
  await Promise.all(Array.from({ length: WIDTH }, lane));
}

function expect({ status, result, error }, expected, what) {
  if (status !== 'success') wrong.push(`${what}: ${status}, ${error.message}`);
  else if (JSON.stringify(result) !== JSON.stringify(expected)) wrong.push(`${what}: ${JSON.stringify(result)}`);
}
