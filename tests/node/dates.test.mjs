// Texts that are dates, beside Node's own `Date.parse`: the same texts there and in the sandbox, in two time zones.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import process from 'node:process';
import { test } from 'node:test';
import { promisify } from 'node:util';

import { runCode } from '../isolation.mjs';
import { KNOWN, texts } from './date-texts.mjs';

const COUNT = 6000;
const SEED = 20240506;

const SANDBOXED = 'export default texts.map((text) => [Date.parse(text), new Date(text).getTime()]);';
const sandboxed = async (texts) => (await runCode(SANDBOXED, { language: 'javascript', globals: { texts } })).result;

// A zone that changes its clocks. The engine's local time is off near a change (docs/upstream/quickjs-local-time.md).
const ZONE = 'America/New_York';
const near = (time) => [1, 2, 3, 9, 10, 11].includes(new Date(time).getUTCMonth());

if (process.env.DATES_CHILD) {
  const all = texts(COUNT, SEED);
  const times = await sandboxed(all);
  const differ = all.filter((text, index) => {
    const expected = Date.parse(text);
    // Before 1970 the system's data of a zone may differ from Node's.
    if (process.env.TZ !== 'UTC' && !Number.isNaN(expected) && (near(expected) || expected < 0 || expected > 2e12)) return false;
    return !times[index].every((time) => Object.is(time, expected));
  });
  console.log(JSON.stringify({ differ, numbers: all.filter((text) => !Number.isNaN(Date.parse(text))).length }));
} else {
  for (const zone of ['UTC', ZONE]) {
    test(`texts are dates as in Node.js, in ${zone}`, async () => {
      const env = { ...process.env, TZ: zone, DATES_CHILD: '1' };
      const { stdout } = await promisify(execFile)(process.execPath, [import.meta.filename], { env });
      const { differ, numbers } = JSON.parse(stdout);
      assert.deepEqual(differ, []);
      assert(numbers > 1000, `only ${numbers} of the texts are dates`);
    });
  }

  test('the texts that the engine would misread are among them', async () => {
    const times = await sandboxed(KNOWN);
    assert.deepEqual(times.map(([time]) => time), KNOWN.map((text) => Date.parse(text)));
  });

  test('a date is made as before of everything else', async () => {
    const source = `
      class Day extends Date { get weekday() { return this.getUTCDay(); } }
      const spy = (found) => ({ [Symbol.toPrimitive](hint) { return hint === 'default' ? found : NaN; } });
      const fails = (make) => { try { make(); return 'none'; } catch (error) { return error.name; } };
      const own = (object) => Object.entries(Object.getOwnPropertyDescriptors(object))
        .map(([key, it]) => [key, typeof it.value, it.writable, it.enumerable, it.configurable].join(':'));
      function Older() {}
      Older.prototype = Array.prototype;
      export default [
        new Date(2024, 4, 6).getMonth(), new Date(5).getTime(), new Date(new Date(7)).getTime(), new Date(null).getTime(), new Date(undefined).getTime(),
        new Date(true).getTime(), new Date('2024').getTime(), new Date(new String('\\t2024-05-06')).getTime(), new Date(spy('2024-05-06')).getTime(),
        new Date(spy(9)).getTime(), new Date({ valueOf: () => ({}), toString: () => '\\n5/6/2024 Z' }).getTime(), new Date(['2024-05-06']).getTime(),
        fails(() => new Date(Symbol())), fails(() => new Date(1n)), fails(() => new Date(spy({}))), fails(() => new Date({ [Symbol.toPrimitive]: 1 })),
        fails(() => new Date(Object.create(null))), fails(() => Date.parse(Symbol())), fails(() => new Date({ valueOf() { throw new RangeError(); } })),
        new Day('2024-05-06') instanceof Day, new Day('2024-05-06').weekday, new Day(2024, 0).constructor === Day, typeof Date(), typeof Date('2024'), Date.length, Date.name,
        Date.prototype.constructor === Date, new Date().constructor === Date, Object.getPrototypeOf(Date) === Function.prototype,
        Reflect.construct(Date, ['2024-05-06'], Older) instanceof Array, Date.parse(), Date.parse.length, Date.UTC(2024, 4), typeof Date.now(),
        Object.prototype.toString.call(new Date('x')), structuredClone(new Date('2024-05-06')) instanceof Date, own(Date),
      ];`;
    const { result, error } = await runCode(source, { language: 'javascript' });
    assert.equal(error, undefined);
    const module = await import(`data:text/javascript,${encodeURIComponent(source)}`);
    assert.deepEqual(result, module.default);
  });
}
