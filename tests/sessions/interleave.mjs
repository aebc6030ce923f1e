// Random cells that interleave, with random ends.
//
// In: `--cells` (2,000), `--seed`. Out: the number of cells of each end; a non-zero exit code and the first difference.
// Cells wait for the host, for each other's promises, for generators and for cells that the host runs for them; they
// throw, loop, fill the memory, and are terminated. The last act of each is to note its number in the session. In the
// end the session must have the numbers of the cells that were kept, each once, and no other: no cell that has completed
// is undone, and nothing of one that was undone goes on. The same holds for the host's calls of a function of a cell that
// has completed; a call that is undone has the error of the cell that undid it. Reports and logs must be in the result of
// the cell that made them, and every cell and call must settle.

import { parseArgs } from 'node:util';

import { Runtime } from '../isolation.mjs';

const { values: options } = parseArgs({
  options: { cells: { type: 'string', default: '2000' }, seed: { type: 'string', default: '1' } },
});
const CELLS_OF_A_SESSION = 14;
const MEMORY = 12 * 1024 * 1024;
const TIMEOUT_MS = 2_000;
const LOOP_MS = 40;
const SETTLED_MS = 60_000;
/** The errors of calls that are undone, with the ends of the cells that undid them. No session is reset. */
const UNDONE = ['SessionRolledBack', 'Terminated', 'Timeout', 'MemoryLimit'];

const SOURCES = [
  (at, ms) => `n += 1; report(${at}); await later(${ms}); console.log(${at}); report(${at});`,
  (at, ms) => `for await (const step of steps(${ms})) { n += step; console.log(${at}); }`,
  (at) => `const inner${at} = await run('n += 1; await later(2); report(1); n'); console.log(${at}, inner${at}.status);`,
  (at, ms) => `shared.push(later(${ms})); await null;`,
  () => `await Promise.race([Promise.all(shared), later(3)]);`,
  (at) => `for (let i = 0; i < 50; i += 1) { await null; n += 1; } report(${at});`,
  (at, ms) => `const list${at} = new Array(5000).fill(${at}); await later(${ms}); if (list${at}[17] !== ${at}) throw 1;`,
  (at) => `try { await fail(); } catch { console.log(${at}); await later(1); }`,
  (at, ms) => `keep((by) => later(${ms}).then(() => { n += by; return n; })); await later(2);`,
];
const ENDS = [
  (at) => `done.push(${at});`,
  (at) => `done.push(${at});`,
  (at) => `done.push(${at});`,
  (at) => `done.push(${at}); throw new Error('${at}');`,
  (at) => `done.push(${at});`,
  (at) => `done.push(${at});`,
  () => 'for (;;);',
  () => 'const all = []; for (;;) all.push(new Array(1000).fill(1));',
];

const runtime = new Runtime();
const ends = new Map();
let cells = 0;
for (let seed = Number(options.seed); cells < Number(options.cells); seed += 1) {
  const difference = await play(randomly(seed));
  if (difference !== undefined) {
    console.error(`seed ${seed}: ${difference}`);
    process.exitCode = 1;
    break;
  }
}
await runtime.close();
const counts = [...ends].map(([end, count]) => `${count} ${end}`).sort().join(', ');
console.log(`property of interleaved cells: ${cells} cells (${counts})`);
// A difference may leave cells that never settle.
if (process.exitCode === 1) process.exit();

/** Plays one session; returns the first difference. */
async function play(random) {
  const held = [];
  let note;
  const calls = [];
  const noted = [];
  const refused = [];
  const later = (ms) => new Promise((resolve) => setTimeout(resolve, ms, ms));
  const session = runtime.session({
    cells: 'interleave',
    memoryLimitBytes: MEMORY,
    report: () => {},
    globals: {
      later,
      run: async (source) => ({ status: (await session.run(source)).status }),
      fail: async () => { throw new Error('host'); },
      keep: (held_) => { held.push(held_); },
      keepNote: (note_) => { note = note_; },
    },
  });
  await session.run(`let n = 0; const done = []; const shared = []; const called = [];
    keepNote(async (call) => { await null; called.push(call); return call; });
    async function* steps(ms) { for (let i = 0; i < 3; i += 1) { await later(ms); yield i; } }`);
  const started = [];
  for (let at = 0; at < CELLS_OF_A_SESSION; at += 1) {
    const end = ENDS[random(ENDS.length)](at);
    const source = `${SOURCES[random(SOURCES.length)](at, random(4))} ${end}`;
    const cell = session.run(source, { timeoutMs: end.startsWith('for') ? LOOP_MS : TIMEOUT_MS });
    started.push({ at, source, cell });
    if (random(6) === 0) setTimeout(() => cell.terminate('enough'), random(15));
    if (random(3) === 0) await later(random(4));
    if (held.length > 0 && random(4) === 0) calls.push(held[random(held.length)](1).catch((error) => { refused.push(error); }));
    if (random(2) === 0) calls.push(note(at).then((call) => { noted.push(call); }, (error) => { refused.push(error); }));
  }
  const settled = Promise.all(started.map(async ({ at, source, cell }) => ({ at, source, result: await cell })));
  const answered = Promise.all(calls);
  let timer;
  const tooLate = new Promise((resolve) => { timer = setTimeout(resolve, SETTLED_MS); });
  const results = await Promise.race([settled, tooLate]);
  // A call may wait for an answer of the host, which a later cell is handed.
  let hasAnswers = false;
  answered.then(() => { hasAnswers = true; });
  for (let left = 2_000; !hasAnswers && left > 0; left -= 1) {
    await session.run('0');
    await later(5);
  }
  clearTimeout(timer);
  if (results === undefined) {
    const left = started.filter(({ cell }) => cell.running).map(({ source }) => source);
    return `cells do not settle: ${JSON.stringify(left)}`;
  }
  if (!hasAnswers) return 'calls of held functions do not settle';
  const odd = refused.find(({ name }) => !UNDONE.includes(name));
  if (odd !== undefined) return `a call of a held function is refused: ${odd}`;
  for (const { at, source, result } of results) {
    const difference = wrong(at, result);
    if (difference !== undefined) return `${difference}: ${source}\n${JSON.stringify(result)}`;
    count(result);
  }
  const kept = results.filter(({ result }) => isDone(result)).map(({ at }) => at);
  const { result } = await session.run('[done, called].map((all) => [...all].sort((a, b) => a - b))');
  const [found, called] = result;
  await session.close();
  noted.sort((a, b) => a - b);
  if (JSON.stringify(called) !== JSON.stringify(noted)) {
    return `the session has the calls ${JSON.stringify(called)}, and ${JSON.stringify(noted)} have an answer`;
  }
  if (JSON.stringify(found) === JSON.stringify(kept)) return undefined;
  const shown = results.map(({ at, source, result }) => `${at} ${endOf(result)}: ${source}`);
  return `the session has ${JSON.stringify(found)}, and ${JSON.stringify(kept)} were kept\n${shown.join('\n')}`;
}

/** The mistake in a result by itself. */
function wrong(at, { status, session, error, reports, logs }) {
  if (session === 'reset') return 'the session was reset';
  if (reports.some((report) => report !== at)) return 'a report of another cell';
  if (logs.some(({ args }) => args[0] !== at)) return 'a log of another cell';
  if (status === 'error') return error.message === `${at}` && session === 'kept' ? undefined : 'an error of another kind';
  if (status === 'success') return session === 'kept' ? undefined : 'a success that is not kept';
  return status === 'terminated' || status === 'memory' ? undefined : 'another status';
}

function isDone({ status }) {
  return status === 'success' || status === 'error';
}

function endOf({ status, session, error }) {
  return [status, session, ...(status === 'terminated' ? [error.name] : [])].join(' ');
}

function count(result) {
  cells += 1;
  ends.set(endOf(result), (ends.get(endOf(result)) ?? 0) + 1);
}

/** Numbers below a bound, from a seed. */
function randomly(seed) {
  let state = seed * 2_654_435_761 % 2 ** 32;
  return (bound) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor(state / 2 ** 32 * bound);
  };
}
