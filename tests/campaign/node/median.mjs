// Judgements of measurements, each of which may be far off by chance.
//
// In: a way to measure, and a bound. Out: nothing, or an exception if the median of five is not within.

import assert from 'node:assert/strict';

const TIMES = 5;

/** Measures, says what it saw, and throws unless the median fits. */
export async function judge(t, what, measure, fits) {
  const seen = [];
  for (let times = 0; times < TIMES; times += 1) seen.push(await measure());
  const median = seen.toSorted((a, b) => a - b)[TIMES >> 1];
  const line = `${what}: ${seen.map((one) => one.toFixed(1)).join(', ')}`;
  t.diagnostic(line);
  assert.ok(fits(median), line);
}
