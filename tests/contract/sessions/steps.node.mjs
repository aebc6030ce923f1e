// Acts of the host between and during the cells of a case, in Node.
//
// In: a stage and a step as README.md lists them. Out: nothing, or an exception that says what differs.

import assert from 'node:assert/strict';

import { mismatch, untag } from '../tags.node.mjs';

/** How long a count of a runtime may take to show what has just settled. */
const STATS_MS = 60_000;

const turn = () => new Promise((resolve) => setImmediate(resolve));

/** Each by the key that is its name. */
const STEPS = {
  async update({ update, misuse }, stage, session) {
    const call = () => session.update(untagUpdate(update, stage.functions));
    if (misuse === undefined) call();
    else assert.throws(call, ({ name, message }) => (expect({ name, message }, misuse, 'misuse'), true));
  },
  async names({ names, refused, later }, stage, session) {
    const asked = session.names();
    const check = refused
      ? expectRejection(asked, refused)
      : asked.then((actual) => assert.equal(mismatch(actual, names, 'names'), undefined));
    await finish(stage, check, later);
  },
  async fork({ fork, refused, later }, stage, session) {
    const copy = session.fork();
    if (refused) {
      await finish(stage, expectRejection(copy, refused), later);
      return;
    }
    copy.catch(() => {});
    stage.add(fork, later ? copy : await copy);
  },
  reset: (_, stage, session) => session.reset(),
  close: (_, stage, session) => session.close(),
  closeRuntime: (_, stage) => stage.runtime.close(),
  asked: ({ asked }, stage) => stage.asked(asked).arrival,
  async answer({ answer, with: value, error }, stage) {
    if (error === undefined) stage.asked(answer).resolve(untag(value ?? { $undefined: true }, {}));
    else stage.asked(answer).reject(new Error(error));
    await turn();
  },
  async callKept({ callKept, gives, rejects, later }, stage) {
    const called = new Promise((resolve) => resolve(stage.functions.callKept(...untag(callKept, stage.functions))));
    const check = rejects
      ? expectRejection(called, rejects)
      : called.then((value) => assert.equal(mismatch(value, gives, 'the result of the function'), undefined));
    await finish(stage, check, later);
  },
  async terminate({ terminate }, stage, _, cell) {
    if (terminate === null) cell.terminate();
    else cell.terminate(untag(terminate, {}));
  },
  async terminateLate({ terminateLate }, stage, _, cell) {
    // No turn of the event loop passes, so the thread has not learned of the end.
    while (!Object.values(stage.runtime.stats().settled).some((count) => count > 0)) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
    cell.terminate(untag(terminateLate, {}));
  },
  async reports({ reports }, stage, _, cell) {
    while (cell.running && cell.reports.length < reports) await turn();
    assert.ok(cell.reports.length >= reports, 'the cell settled before that many reports');
  },
  async expectReports({ expectReports }, stage, _, cell) {
    assert.equal(mismatch([...cell.reports], expectReports, 'cell.reports'), undefined);
  },
  async expectRunning({ expectRunning }, stage, _, cell) {
    assert.equal(cell.running, expectRunning);
  },
  async turns({ turns }) {
    for (let i = 0; i < turns; i += 1) await turn();
  },
  async stats({ stats }, stage) {
    const until = Date.now() + STATS_MS;
    const why = () => mismatch({ ...stage.runtime.stats() }, stats, 'stats', true);
    while (why() !== undefined && Date.now() < until) await turn();
    assert.equal(why(), undefined);
  },
};

/** Carries out a step. */
export async function take(stage, step) {
  const name = Object.keys(STEPS).find((key) => Object.hasOwn(step, key));
  if (name === undefined) throw new Error(`unknown step ${JSON.stringify(step)}`);
  const session = await stage.session(step.in);
  await STEPS[name](step, stage, session, stage.cells.get(step.cell));
}

async function finish(stage, check, later) {
  if (later) stage.later(check);
  else await check;
}

async function expectRejection(promise, expected) {
  await assert.rejects(promise, ({ name, message }) => (expect({ name, message }, expected, 'rejection'), true));
}

function expect(actual, expected, path) {
  assert.equal(mismatch(actual, expected, path, true), undefined);
}

/** `{"$remove": true}` takes a name away. */
function untagUpdate(update, functions) {
  const removed = [];
  const tagged = Object.entries(update).map(([part, names]) => {
    const kept = Object.entries(names).filter(([name, value]) => value?.$remove !== true || !removed.push([part, name]));
    return [part, Object.fromEntries(kept)];
  });
  const untagged = untag(Object.fromEntries(tagged), functions);
  for (const [part, name] of removed) untagged[part][name] = null;
  return untagged;
}
