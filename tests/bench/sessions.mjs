// Costs of sessions from Node, as ratios to references measured in the same process.
//
// In: `--quick` for few samples. Out: a table in Markdown. There are no bounds.

import vm from 'node:vm';

import { Session, runCode } from 'isolane';

import { HEAD, clock, held, kib, median, quick, row, succeed, time } from './measure.mjs';

const FRESH = 'a fresh run of `1 + 1`';
const SESSIONS = quick ? 200 : 10_000;
const ENDED = quick ? 5 : 50;
const LARGE = `const large = Array.from({ length: 80_000 }, (_, index) => ({ index, text: 'row ' + index })); large.length`;

// This comes first: memory that the others leave behind would hide the memory of sessions.
const memory = await idle();
const fresh = await time(() => succeed('export default 1 + 1'));
const context = await time(() => vm.runInNewContext('1 + 1'));
const rows = [...await cells(), ...await forks(), await undone(), memory];
console.log(`### Sessions from Node\n\n${HEAD}\n${rows.join('\n')}\n`);

/** A cell that must succeed. */
async function cell(session, source, options) {
  const outcome = await session.run(source, options);
  if (outcome.status !== 'success') throw new Error(`${outcome.status}: ${outcome.error.message}`);
  return outcome;
}

async function open(source) {
  const session = new Session();
  await cell(session, source);
  return session;
}

async function cells() {
  const opened = await time(async () => (await open('1 + 1')).close());
  const small = await open('let x = 1');
  const later = await time(() => cell(small, 'x + 1'));
  const unseen = await time((count) => cell(small, `x + ${count}`));
  const inContext = vm.createContext();
  vm.runInContext('var x = 1', inContext);
  const v8 = await time(() => vm.runInContext('x + 1', inContext));
  const large = await open(LARGE);
  const touched = await time((count) => cell(large, `large[${count % 1_000}].index = ${count}; null`));
  await Promise.all([small.close(), large.close()]);
  return [
    row('a session with its first cell, `1 + 1`', opened, FRESH, fresh),
    row('the same', opened, 'in a fresh context of V8', context),
    row('a later cell, `x + 1`, with its checkpoint', later, FRESH, fresh),
    row('the same', later, 'in a kept context of V8, which cannot go back', v8),
    row('a later cell that was never seen', unseen, 'a later cell, `x + 1`', later),
    row('a cell that touches little of 10 MB', touched, 'a later cell, `x + 1`', later),
  ];
}

async function forks() {
  const small = await open('const plan = [1, 2, 3]');
  const one = await time(async () => (await small.fork()).close());
  const used = await time(async () => {
    const fork = await small.fork();
    await cell(fork, 'plan.push(4)');
    await fork.close();
  });
  await small.close();
  return [
    row('a fork', one, FRESH, fresh),
    row('a fork, a cell in it, and its end', used, FRESH, fresh),
  ];
}

/** From `terminate()` to settlement, with the state put back. */
async function undone() {
  const samples = async (act) => {
    const all = [];
    for (let i = 0; i < ENDED; i += 1) all.push(await act());
    return median(all);
  };
  const looping = (start) => {
    let started;
    const loops = new Promise((resolve) => { started = resolve; });
    return { loops, execution: start('started(); for (;;);', { started: () => started() }) };
  };
  const ended = async ({ loops, execution }) => {
    await loops;
    return clock(async () => {
      execution.terminate();
      const { status } = await execution;
      if (status !== 'terminated') throw new Error(status);
    });
  };
  let started;
  const session = new Session({ globals: { started: () => started() } });
  const cost = await samples(() => {
    const loops = new Promise((resolve) => { started = resolve; });
    return ended({ loops, execution: session.run('started(); for (;;);') });
  });
  const reference = await samples(() => ended(looping((source, globals) => runCode(source, { globals }))));
  await session.close();
  return row('ending an endless loop, which is undone', cost, 'ending it in a run', reference);
}

/** The memory of a session at rest. */
async function idle() {
  const { memoryUsedBytes } = await cell(new Session(), 'const rows = [1, 2, 3]');
  const before = held();
  const sessions = [];
  for (let i = 0; i < SESSIONS; i += 1) sessions.push(await open('const rows = [1, 2, 3]'));
  const each = (held() - before) / SESSIONS;
  await cell(sessions[SESSIONS >> 1], 'rows.push(4)');
  await Promise.all(sessions.map((session) => session.close()));
  const what = `held by a session at rest, of ${SESSIONS.toLocaleString('en')}`;
  return row(what, each, 'its heap, as its cell reports it', memoryUsedBytes, kib);
}
