// The contract table, run through the Node face.
//
// In: the tables next to this file. Out: one test per case, and at the end the numbers of cases that ran and of those
// that were skipped; also in the file in ISOLANE_CONTRACT_COUNTS, for counts.mjs.

import assert from 'node:assert/strict';
import { appendFileSync } from 'node:fs';
import { after, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { isolation, runCode } from '../isolation.mjs';
import { hostFunctions } from './host.node.mjs';
import { cases } from './parse.mjs';
import { mismatch, untag } from './tags.node.mjs';

// Builds with a sanitizer are slow and set this variable.
const CEILING_MS = 60_000 * Number(process.env.ISOLANE_TEST_PATIENCE ?? 1);
const counts = { ran: 0, skipped: 0 };
const all = cases(fileURLToPath(new URL('.', import.meta.url)));

for (const file of new Set(all.map((one) => one.file))) {
  describe(file, () => {
    for (const one of all.filter((other) => other.file === file)) {
      const skip = one.skip.node;
      if (skip !== undefined) counts.skipped += 1;
      test(one.heading, { skip: skip ?? false, timeout: CEILING_MS }, () => check(one));
    }
  });
}

after(() => {
  const said = `${counts.ran} ran, ${counts.skipped} skipped`;
  console.log(`contract: ${said}`);
  const path = process.env.ISOLANE_CONTRACT_COUNTS;
  if (path) appendFileSync(path, `node${isolation === 'process' ? ' in processes' : ''}: ${said}\n`);
});

async function check(one) {
  counts.ran += 1;
  let handle;
  const functions = hostFunctions(() => handle);
  const options = optionsOf(one, functions);
  if (one.misuse !== undefined) {
    assert.throws(() => runCode(one.entry.source, options), (error) => {
      const { name, message } = error;
      assert.equal(mismatch({ name, message }, one.misuse, 'misuse', true), undefined);
      return true;
    });
    return;
  }
  handle = runCode(one.entry.source, options);
  for (const step of one.handle ?? []) await take(step, handle);
  const result = await handle;
  assert.equal(handle.running, false);
  const { error, ...rest } = one.result;
  expectNothing(mismatch(result, rest, 'outcome', true), result);
  if (error !== undefined) expectNothing(errorMismatch(result, error), result);
}

/** Fails with the differences and the result of the run. */
function expectNothing(why, result) {
  if (why === undefined) return;
  const outcome = JSON.stringify(result, (_, value) => (typeof value === 'bigint' ? `${value}n` : value));
  assert.fail(`${why}\nin ${outcome.slice(0, 3000)}`);
}

function errorMismatch(result, expected) {
  if (expected.$absent) return Object.hasOwn(result, 'error') ? `error is there: ${JSON.stringify(result.error)}` : undefined;
  return mismatch(result.error, expected, 'error', true);
}

function optionsOf(one, functions) {
  const options = untag(one.options, functions);
  if (one.entry.language !== 'typescript') options.language ??= one.entry.language;
  if (Object.keys(one.modules).length > 0) options.modules = { ...options.modules, ...one.modules };
  if (options.report === true) options.report = () => undefined;
  return options;
}

async function take(step, handle) {
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  if ('terminate' in step) {
    const reason = untag(step.terminate, {});
    if (reason === null) handle.terminate();
    else handle.terminate(reason);
  } else if ('reports' in step) {
    while (handle.running && handle.reports.length < step.reports) await turn();
    assert.ok(handle.reports.length >= step.reports, 'the run settled before that many reports');
  } else if ('turns' in step) {
    for (let i = 0; i < step.turns; i += 1) await turn();
  } else if ('expectReports' in step) {
    assert.equal(mismatch([...handle.reports], step.expectReports, 'handle.reports'), undefined);
  } else if ('expectRunning' in step) {
    assert.equal(handle.running, step.expectRunning);
  } else {
    throw new Error(`unknown step ${JSON.stringify(step)}`);
  }
}
