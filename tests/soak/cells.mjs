// One session and many cells of it, of each class whose memory once stayed or whose end once was the wrong one.
//
// In: `--cells` of each session, `--seed`. There are four sessions, one after another: in threads and in processes, with
// cells in a queue and with cells that interleave. Out: the memory after each twentieth of the cells, and a non-zero exit
// code if a cell had another outcome than its class says, or if the process, the host's heap or the session's own memory
// has grown.

import { parseArgs } from 'node:util';

import { Runtime } from 'isolane';

import { random } from './mix.mjs';
import { Samples } from './samples.mjs';

const PARTS = 20;
/** Runs that stay parked beside a session on threads: more than there are slots of memory. */
const PARKED = 60;
/** Where cells interleave, only a reset lets go of what undone cells were handed. */
const RESET_EVERY = 1_000;
const IN_FLIGHT = 8;
const QUEUED = 4;
const LONG_NAME = `name_${'n'.repeat(1_000)}`;
const LONG_NAMES = 20;
const MOST_OF_A_NAME = 256;
/** The bytes by which the session's own memory may differ between two samples. */
const TOLERANCE = 1024 * 1024;
/** Words that were once taken for those of a module; the text has nothing but a comment and a string. */
const WORDS = ['metadata', 'arguments', 'import.meta', '=>', String.raw`\u0041`, 'await', 'class', 'eval'];
const FILLING = 'x'.repeat(3_700);

const { values } = parseArgs({
  options: { cells: { type: 'string', default: '40000' }, seed: { type: 'string', default: '1' } },
});
const [count, seed] = [values.cells, values.seed].map(Number);
const wrong = [];

/** One session through all its cells. */
async function soak(isolation, cells) {
  const began = performance.now();
  const runtime = new Runtime({ isolation });
  const host = makeHost();
  const { globals } = host;
  const parked = isolation === 'thread' ? Array.from({ length: PARKED }, () => runtime.runCode('await never()', { globals })) : [];
  const modules = { './slow.js': 'export default await gate();' };
  const session = runtime.session({ cells, globals, modules });
  const expect = expectations(`${isolation}, ${cells}`);
  const classes = Object.entries(CLASSES).filter(([, { only }]) => only === undefined || only === cells);
  const next = random(seed);
  const samples = new Samples();
  const own = [];
  await begin(session, expect);
  console.log(`${isolation}, ${cells}: ${count} cells\n${Samples.header()}  session MiB`);
  for (let part = 0; part < PARTS; part += 1) {
    const from = Math.floor((count * part) / PARTS);
    const end = Math.floor((count * (part + 1)) / PARTS);
    for (let n = from; n < end; n += 1) {
      if (cells === 'interleave' && n % RESET_EVERY === RESET_EVERY - 1) await again(session, host, expect);
      const [name, { act }] = classes[Math.floor(next() * classes.length)];
      await act(session, n, { expect: (...result) => expect(`${name}, cell ${n}`, ...result), host });
    }
    const { memoryUsedBytes } = await session.run('null');
    own.push(memoryUsedBytes);
    const row = samples.take(end, runtime.stats().compileCacheBytes);
    console.log(`${Samples.line(row)} ${(memoryUsedBytes / 2 ** 20).toFixed(2).padStart(12)}`);
  }
  await end(session, host, expect);
  for (const line of samples.grown()) wrong.push(`${isolation}, ${cells}: ${line}`);
  const quarter = PARTS / 4;
  const [before, after] = [Math.max(...own.slice(quarter, 2 * quarter)), Math.min(...own.slice(-quarter))];
  if (after > before + TOLERANCE) wrong.push(`${isolation}, ${cells}: the session's own memory, from ${before} to ${after} bytes`);
  for (const run of parked) run.terminate('the soak is over');
  await Promise.all(parked);
  await session.close();
  await runtime.close();
  console.log(`${isolation}, ${cells}: ${((performance.now() - began) / 1e3).toFixed(0)} s`);
}

/** The functions of the host, and the promises behind them. */
function makeHost() {
  const host = { gate: deferred(), turn: deferred(), kept: undefined };
  host.globals = {
    never: () => {
      host.called.resolve();
      return new Promise(() => {});
    },
    gate: () => host.gate.promise,
    turn: () => host.turn.promise,
    echo: async (value) => value,
    make: () => ({ fn: () => 1, promise: new Promise(() => {}) }),
    keep: (value) => void (host.kept = value),
  };
  host.called = deferred();
  return host;
}

/** What stays for the whole soak: long names, and a module that is loading. */
async function begin(session, expect) {
  const names = Array.from({ length: LONG_NAMES }, (_, at) => `let long_${at}_${'n'.repeat(100_000)} = ${at};`).join('');
  expect('long names', await session.run(names), undefined);
  expect('an import that loads', await session.run(`let ran = 0; const slow = import('./slow.js'); null`), null);
}

/** A reset, and all that stays once more. The import that was loading has gone with the state. */
async function again(session, host, expect) {
  await session.reset();
  host.kept = undefined;
  await begin(session, expect);
}

/** A module that began to load with the first cell comes to its end in the last one. */
async function end(session, host, expect) {
  host.gate.resolve('late');
  expect('the import of the first cell', await session.run('(await slow).default'), 'late');
}

const CLASSES = {
  'text like a module': {
    async act(session, n, { expect }) {
      const word = WORDS[n % WORDS.length];
      expect(await session.run(`/* ${word} ${n} */ '${FILLING} ${word.replace('\\', '\\\\')}'.length`), FILLING.length + 1 + word.length);
    },
  },
  'a name anew': {
    async act(session, n, { expect }) {
      expect(await session.run(`${['let', 'const', 'var'][n % 3]} ${LONG_NAME} = ${n}; ${LONG_NAME}`), n);
    },
  },
  'an undone cell with functions and promises': {
    async act(session, n, { expect, host }) {
      host.called = deferred();
      const cell = session.run(`ran = -1; const made = Array.from({ length: 50 }, make); keep(() => made); keep(Promise.resolve(made)); await never()`);
      await host.called.promise;
      cell.terminate('enough');
      host.kept = undefined;
      expect(await cell, 'enough', 'rolledBack');
      expect(await session.run('[ran, typeof made]'), [0, 'undefined']);
    },
  },
  'states in flight': {
    only: 'interleave',
    async act(session, n, { expect, host }) {
      host.turn = deferred();
      const cell = (own) => session.run(`globalThis.block_${own} = new Uint8Array(65_536).fill(${own}); await turn(); ${own}`);
      const cells = Array.from({ length: IN_FLIGHT }, (_, own) => cell(own));
      host.turn.resolve();
      for (const [own, result] of (await Promise.all(cells)).entries()) expect(result, own);
    },
  },
  'long names': {
    async act(session, n, { expect }) {
      const names = await session.names();
      const long = names.filter(({ name }) => name.startsWith('long_'));
      const most = Math.max(...names.map(({ name }) => name.length));
      expect({ status: 'success', result: [long.length, most <= MOST_OF_A_NAME] }, [LONG_NAMES, true]);
    },
  },
  'an end that comes too late': {
    async act(session, n, { expect }) {
      const cell = session.run(`var later = echo(${n}); null`);
      cell.then(() => cell.terminate('too late'));
      expect(await cell, null);
      cell.terminate('too late');
      expect(await session.run('await later'), n);
    },
  },
  'one signal for a queue': {
    async act(session, n, { expect, host }) {
      host.called = deferred();
      const controller = new AbortController();
      const { signal } = controller;
      const first = session.run('await never()', { signal });
      await host.called.promise;
      // Where cells interleave the others would run: they wait for one that computes.
      const others = Array.from({ length: QUEUED }, () => session.run('await never(); ran += 1', { signal }));
      controller.abort(new Error('all'));
      for (const result of await Promise.all([first, ...others])) expect(result, 'Error: all', ['kept', 'rolledBack']);
      expect(await session.run('ran'), 0);
    },
  },
};

for (const isolation of ['thread', 'process']) {
  for (const cells of ['queue', 'interleave']) await soak(isolation, cells);
}
for (const line of wrong.slice(0, 20)) console.log(`  ${line}`);
process.exitCode = wrong.length === 0 ? 0 : 1;

/** A check of results that names a class. An expected end is given with the states of the session that it may leave. */
function expectations(where) {
  return (what, { status, result, error, session }, expected, states) => {
    const ended = states !== undefined;
    const got = ended ? error?.message : result;
    const isRight = status === (ended ? 'terminated' : 'success') && JSON.stringify(got) === JSON.stringify(expected);
    const isLeft = !ended || [states].flat().includes(session);
    if (!isRight || !isLeft) wrong.push(`${where}: ${what}: ${status}, ${session}, ${JSON.stringify(got) ?? error?.message}`);
  };
}

/** A promise and the function that fulfils it. */
function deferred() {
  const made = {};
  made.promise = new Promise((resolve) => (made.resolve = resolve));
  return made;
}
