// Cases of the meter, one after the other, in this process alone.
//
// In: `--seed` of the first, `--count`, `--isolation`, `--most` bytes of a value, `--limit` of a run in MiB; `--cells` for
// cells of sessions instead of runs. Out: on standard output a line of
// JSON before each case and one after it: the values handed out and their way, the memory that this process held of
// them after a collection, the run's charge, and the longest standstill of the event loop, in CPU time of this thread.
// Of a cell also the memory that its session left with the host: the cell is over, the host has let go of all values, and
// the session is open. Every second cell is ended and undone. Run with `--expose-gc`.

import { readFileSync } from 'node:fs';
import { setImmediate as turn } from 'node:timers/promises';
import { parseArgs } from 'node:util';

import { Runtime } from 'isolane';

import { Standstill } from './standstill.mjs';

const GENERATE = readFileSync(new URL('generate.js', import.meta.url), 'utf8');
/** A value is handed out again until about so much is held: far above the noise of a collected heap. */
const HELD_BYTES = 4 * 1024 * 1024;
/** A value that holds less is within the bounds, whatever its charge. */
const FREE_BYTES = 1024 * 1024;
const MOST_COPIES = 200;
const UNDONE = 'undone by the meter';
/** Which cells are undone: half of those of each way. */
const isUndone = (seed) => ((seed >>> 0) / Object.keys(WAYS).length) % 2 >= 1;
/** The maximum number of times that each fresh copy is handed out. */
const MOST_TIMES = 50;
/** The approximate time for the copies: the sandbox may take far longer to make a value than the host to read it. */
const CASE_MS = 600;

/** Ways out of the sandbox. A `kept` value is charged as long as the result is held. */
const WAYS = {
  report: { kept: true, give: 'report(value)' },
  log: { kept: true, text: true, give: 'console.log(value)' },
  result: { once: true, give: 'answer = value' },
  thrown: { once: true, give: 'throw value' },
  argument: { live: true, give: 'take(value)' },
  promise: { live: true, give: 'take(Promise.resolve(value)); await tick()' },
  answer: { live: true, give: 'await call(() => value)' },
  rejection: { live: true, give: 'await call(() => { throw value; })' },
};

const { values: options } = parseArgs({
  options: {
    seed: { type: 'string' },
    count: { type: 'string', default: '1' },
    isolation: { type: 'string', default: 'thread' },
    most: { type: 'string', default: '3000000' },
    limit: { type: 'string', default: '320' },
    cells: { type: 'boolean', default: false },
  },
});
const LIMIT_BYTES = Number(options.limit) * 1024 * 1024;
/** More than the sandbox takes while it makes a value. */
const BALLAST_BYTES = Math.max(64 * 1024 * 1024, 2 * Number(options.most));
const RUN_MS = Math.max(5_000, Number(options.most) / 4_000);
const runtime = new Runtime({ isolation: options.isolation });
const first = Number(options.seed);
await hand('report', 0, 0);
/** The charge of a run that hands nothing out. */
const empty = (await hand('report', 0, 0)).charged;
for (let seed = first; seed < first + Number(options.count); seed += 1) {
  console.log(JSON.stringify({ began: seed }));
  console.log(JSON.stringify(await one(seed)));
}
await runtime.close();

/** One seed, handed out in its way. */
async function one(seed) {
  const way = Object.keys(WAYS)[(seed >>> 0) % Object.keys(WAYS).length];
  const { kept, once } = WAYS[way];
  const began = performance.now();
  const single = await hand(way, seed, 1);
  if (single.status === 'terminated' || single.status === 'memory') return row(seed, way, 1, single);
  if (once) {
    if (single.held > FREE_BYTES) single.charged = await own(way, seed, 1, 1);
    return row(seed, way, 1, single);
  }
  const each = Math.max(1, single.charged - empty, single.held);
  const affordable = Math.ceil(CASE_MS / (performance.now() - began));
  const wanted = Math.min(MOST_COPIES, Math.ceil(HELD_BYTES / each));
  const fresh = 1 + Math.min(affordable, wanted);
  const times = Math.min(MOST_TIMES, Math.ceil(wanted / fresh));
  const many = await hand(way, seed, fresh, times);
  const worst = { ...many, stoodMs: Math.max(single.stoodMs, many.stoodMs), left: Math.max(single.left, many.left) };
  // Only a successful run allocated its ballast.
  if (many.status === 'success') {
    if (kept) worst.charged -= empty;
    else if (many.held > FREE_BYTES) worst.charged = await own(way, seed, fresh, times);
  }
  return row(seed, way, fresh * times, worst);
}

/** The charge for what a run hands out, without that for its own values: at its peak, it holds both and ballast. */
async function own(way, seed, copies, times) {
  const handed = await hand(way, seed, copies, times, true);
  const made = await hand(way, seed, 1, 0, true);
  return Math.max(0, handed.charged - made.charged);
}

function row(seed, way, copies, { status, failure, kind, held, charged, stoodMs, left }) {
  return { seed, way, isolation: options.isolation, copies, status, failure, kind, held, charged, ratio: held / Math.max(charged, 1), stoodMs, left };
}

/** A run that hands out so many fresh copies, each so many times, and its result; `early` if beside its ballast. */
async function hand(way, seed, copies, times = 1, early = false) {
  const { live = false, text = false, give } = WAYS[way];
  const made = { live: live || text, text, most: Number(options.most) };
  const source = `
    import { generate } from './generate.js';
    let answer;
    const make = (copy) => generate(${seed}, { ...${JSON.stringify(made)}, from: copy * 1e7 });
    const give = async (copy) => {
      const { kind, value } = make(copy);
      if (copy === 0) say(kind);
      ${early ? 'hold();' : ''}
      for (let time = 0; time < ${times}; time += 1) {
        ${give};
      }
    };
    let ballast;
    const hold = () => (ballast ??= new ArrayBuffer(${BALLAST_BYTES}));
    for (let copy = 0; copy < ${copies}; copy += 1) await give(copy);
    // Above whatever the run took on the way: at its peak it holds this and what it gave away.
    hold();
    await parked();
    export default answer;`;
  let kind = '';
  // The host's own code keeps only the last of them.
  const keep = {};
  const take = (value) => {
    keep.value = value;
    value?.then?.((settled) => (keep.value = settled), (reason) => (keep.value = reason));
  };
  const call = async (f) => {
    const value = await f().catch((reason) => reason);
    keep.value = value;
  };
  const parked = withResolvers();
  let reached;
  const atEnd = new Promise((resolve) => {
    reached = resolve;
  });
  const say = (text) => void (kind = text);
  const park = () => {
    reached();
    return parked.promise;
  };
  const globals = { say, take, call, tick: () => turn(), parked: park };
  const before = await heldBytes();
  const still = new Standstill();
  const capabilities = { language: 'javascript', memoryLimitBytes: LIMIT_BYTES, modules: { './generate.js': GENERATE }, globals };
  const session = options.cells ? runtime.session(capabilities) : undefined;
  const report = () => {};
  let run = session ? session.run(source, { report }) : runtime.runCode(source, { ...capabilities, report });
  const timer = setTimeout(() => run.terminate('too long to measure'), RUN_MS);
  await Promise.race([atEnd, run]);
  let held;
  if (live) {
    still.pause();
    held = (await heldBytes()) - before;
    still.resume();
  }
  // A result or an exception has to come to its end.
  if (session && live && isUndone(seed)) run.terminate(UNDONE);
  else parked.resolve();
  let result = await run;
  clearTimeout(timer);
  await turn();
  const stoodMs = still.end();
  held ??= (await heldBytes()) - before;
  const status = result.error?.message === UNDONE ? 'success' : result.status;
  const outcome = { status, failure: failure(way, result), kind, held: Math.max(0, held), charged: result.memoryUsedBytes ?? LIMIT_BYTES, stoodMs, left: 0 };
  if (session === undefined) return outcome;
  // The values stay alive until here.
  [result, run, keep.value] = [];
  outcome.left = Math.max(0, (await heldBytes()) - before);
  await session.close();
  return outcome;
}

/** The failure of a run with a forbidden result. */
function failure(way, { status, error }) {
  if (status === 'link_error') return error.message;
  // A host that cannot hold a value reports that error.
  const expected = way === 'thrown' || error?.name === 'SerializationError';
  return status === 'error' && !expected ? `${error.name}: ${error.message}` : undefined;
}

function withResolvers() {
  let resolve;
  const promise = new Promise((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}

/** The heap of this thread and its external memory, after a collection. */
async function heldBytes() {
  for (let times = 0; times < 3; times += 1) {
    globalThis.gc();
    await turn();
  }
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
