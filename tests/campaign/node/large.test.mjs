// The cost of large messages for the event loop.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { runCode } from '../../isolation.mjs';
import { Standstill } from '../../meter/standstill.mjs';
import { judge } from './median.mjs';

const LIMIT = { memoryLimitBytes: 2 ** 30 };
const RECORDS = 'Array.from({ length: 300_000 }, (_, i) => ({ i, s: "x" + i }))';

test('a long array whose last element is of another kind keeps no turn of the loop for long', async (t) => {
  const source = 'const a = new Array(6e6).fill(0.5); a[1] = 300; a[2] = -7; a.push("last"); export default a;';
  const measure = async () => {
    const still = new Standstill();
    const { status } = await runCode(source, LIMIT);
    const longestMs = still.end();
    assert.equal(status, 'success');
    return longestMs;
  };
  await judge(t, 'CPU milliseconds of the longest turn', measure, (longestMs) => longestMs < 150);
});

test('small runs are heard while a large message of another one is read', async (t) => {
  const measure = async () => {
    let over = false;
    const large = runCode(`export default ${RECORDS}`, LIMIT).then(({ status }) => { over = true; return status; });
    let heard = 0;
    for (; !over; heard += 1) assert.equal((await runCode('export default 1')).result, 1);
    assert.equal(await large, 'success');
    return heard;
  };
  await judge(t, 'small runs beside a large one', measure, (heard) => heard > 3);
});
