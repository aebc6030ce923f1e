// One case of the contract table of sessions, played through the Node face.
//
// In: a case of parse.mjs. Out: nothing, or an exception that says what differs. README.md has the acts and steps.

import assert from 'node:assert/strict';

import { mismatch } from '../tags.node.mjs';
import { Stage } from './stage.node.mjs';
import { take } from './steps.node.mjs';

/** Plays all acts of a case in their order. */
export async function check(one) {
  const stage = new Stage(one);
  try {
    if (one.misuse) {
      expectMisuse(() => stage.open(), one.misuse);
      return;
    }
    stage.open();
    for (const act of one.acts) await play(stage, act);
    await stage.settleLater();
  } finally {
    await stage.clear();
  }
}

async function play(stage, act) {
  if (act.act === 'steps') {
    for (const step of act.steps) await take(stage, step);
  } else if (act.act === 'result') {
    expectResult(await stage.cells.get(act.of), act.result);
  } else {
    const session = await stage.session(act.options.in);
    if (act.misuse) {
      expectMisuse(() => stage.start(session, act), act.misuse);
      return;
    }
    const cell = stage.start(session, act);
    if (act.options.as !== undefined) return;
    expectResult(await cell, act.result ?? {});
    assert.equal(cell.running, false);
  }
}

function expectMisuse(call, expected) {
  assert.throws(call, ({ name, message }) => {
    assert.equal(mismatch({ name, message }, expected, 'misuse', true), undefined);
    return true;
  });
}

function expectResult(result, { error, ...rest }) {
  const expected = { status: 'success', session: 'kept', ...rest };
  expectNothing(mismatch(result, expected, 'outcome', true), result);
  if (error !== undefined) expectNothing(errorMismatch(result, error), result);
  expectNothing(Object.hasOwn(result, 'error') === (result.status === 'success') ? 'an error and no success exclude each other' : undefined, result);
}

/** Fails with the differences and the result of the cell. */
function expectNothing(why, result) {
  if (why === undefined) return;
  const outcome = JSON.stringify(result, (_, value) => (typeof value === 'bigint' ? `${value}n` : value));
  assert.fail(`${why}\nin ${outcome.slice(0, 3000)}`);
}

function errorMismatch(result, expected) {
  if (expected.$absent) return Object.hasOwn(result, 'error') ? `error is there: ${JSON.stringify(result.error)}` : undefined;
  return mismatch(result.error, expected, 'error', true);
}
