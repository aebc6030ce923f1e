// The cost of the kit and the executors for the event loop, and how soon a signal ends a call.

import assert from 'node:assert/strict';
import process from 'node:process';
import { test } from 'node:test';

import { CodeLoop, LocalCodeExecutor, ScriptedModel } from 'isolane/executors';
import { Kit } from 'isolane/kit';

import { Standstill } from '../../meter/standstill.mjs';
import { judge } from './median.mjs';

const COUNT = 4;
const BYTES = 7 << 20;
const shell = () => new LocalCodeExecutor({ interpreter: 'sh', args: ['-s'], timeoutMs: null });

/** The result of an action, and the longest turn of the event loop meanwhile, in CPU milliseconds. */
async function watched(act) {
  const still = new Standstill();
  const result = await act();
  return { result, longestMs: still.end() };
}

/** The CPU milliseconds that files as JSON take, beside other contents. */
function jsonMs(...contents) {
  const json = JSON.stringify([Array.from({ length: COUNT }, () => Buffer.alloc(BYTES).toString('base64')), ...contents]);
  const cpu = process.cpuUsage();
  JSON.parse(json)[0].map((one) => Buffer.from(one, 'base64'));
  const { user, system } = process.cpuUsage(cpu);
  return (user + system) / 1000;
}

test('the search for secrets leaves the loop its turns', async (t) => {
  const source = "const text = '%41\\\\n'.repeat(2e5) + secrets.KEY; report(text); console.log(text); return text";
  const kit = new Kit({ secrets: { KEY: { value: 'hunter2hunter2', reveal: true } }, memoryLimitBytes: 2 ** 30 });
  const measure = async () => {
    const { result, longestMs } = await watched(() => kit.runTool(source, { timeoutMs: 300_000, report: () => {} }));
    assert.equal(result.status, 'success');
    return longestMs;
  };
  await judge(t, 'CPU milliseconds of the longest turn', measure, (longestMs) => longestMs < 150);
  await kit.close();
});

test('results stop the event loop for less time than JSON would', async (t) => {
  const code = `head -c ${BYTES} /dev/zero > f; for i in $(seq ${COUNT}); do cp f $i.bin; done; rm f; head -c 900000 /dev/zero | tr '\\0' x`;
  const measure = async () => {
    const asJsonMs = jsonMs();
    const { result, longestMs } = await watched(() => shell().executeCode(undefined, { code }));
    assert.equal(result.outputFiles.length, COUNT);
    return longestMs / asJsonMs;
  };
  await judge(t, 'the longest turn, by the time for JSON', measure, (part) => part < 1);
});

test('files and long contents stop the event loop for less time than JSON would', async (t) => {
  const code = `for i in $(seq ${COUNT}); do head -c ${BYTES} /dev/zero > $i.bin; done`;
  const long = Array.from({ length: 4_000 }, (_, index) => ({ x: { index, list: [index, `${index}`] } }));
  const made = () => {
    const model = new ScriptedModel();
    model.pushCode('shell', code);
    model.pushText('Done.');
    return new CodeLoop({ model, executor: shell() });
  };
  const measure = async () => {
    const asJsonMs = jsonMs(long, long);
    // The input is read at once.
    const stream = made().stream([{ role: 'user', parts: long }]);
    await new Promise((turned) => setImmediate(turned));
    const { result, longestMs } = await watched(async () => {
      for await (const _ of stream);
      return made().run('go');
    });
    assert.deepStrictEqual([stream.result.files.length, result.files.length], [COUNT, COUNT]);
    return longestMs / asJsonMs;
  };
  await judge(t, 'the longest turn, by the time for JSON', measure, (part) => part < 1);
});

test('the signal ends the staging of large files', async (t) => {
  const inputFiles = Array.from({ length: 10 }, (_, at) => ({ name: `f${at}`, content: new Uint8Array(20 << 20) }));
  // Without the time for the copy at the begin.
  const staged = async (ctx) => {
    const call = shell().executeCode(ctx, { code: 'true', inputFiles });
    const copied = performance.now();
    const ended = await call.then(() => 'success', (error) => error.code);
    return { ended, restMs: performance.now() - copied };
  };
  const measure = async () => {
    const whole = await staged(undefined);
    const cancelled = await staged({ signal: AbortSignal.timeout(1) });
    assert.deepStrictEqual([whole.ended, cancelled.ended], ['success', 'cancelled']);
    return cancelled.restMs / whole.restMs;
  };
  await judge(t, 'the time of a cancelled call, by that of a whole one', measure, (part) => part < 0.5);
});
