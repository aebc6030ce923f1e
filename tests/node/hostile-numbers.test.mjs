// Messages of a compromised worker: numbers that were never given out, or are no longer valid. Each event reaches a run
// as from the event loop; none may throw there.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { test } from 'node:test';

const require = createRequire(import.meta.url);
const { Reports } = require('../../bindings-node/dist/run/reports.js');
const { Run } = require('../../bindings-node/dist/run/run.js');
const { Sandbox } = require('../../bindings-node/dist/run/sandbox.js');

/** A run that is not one of the native side, and that ignores every event. */
const run = () => new Run(new Sandbox(null), undefined, new Reports(), () => {});
const mail = (value) => ({ read: (_run, _root, done) => done(true, value), skip() {} });

test('a function that is started and answers at once, with a promise that throws when it is looked at, or not at all', () => {
  const it = run();
  const hostile = Object.defineProperty(Promise.resolve(1), 'constructor', { get: () => assert.fail('looked at') });
  const numbers = [() => 5, () => hostile, () => assert.fail('thrown')].map((fn) => it.sandbox.hostFunction(fn));
  it.started(2 ** 32 - 1);
  for (const number of [...numbers, 99, 2 ** 31, 2 ** 32 - 2]) it.asyncCalled(number, 1, mail([]));
});

test('calls of numbers that were never given out', () => {
  const it = run();
  for (const number of [0, 2 ** 31, 2 ** 32 - 2, 2 ** 32 - 1]) it.called(number, 1, mail([]));
  assert.equal(it.hostFunction(2 ** 31), undefined);
});

test('a settlement that nobody waits for is dropped, and the first one counts', async () => {
  const it = run();
  it.functionSettled(1, true, mail(1));
  it.promiseSettled(1, false, mail(1));
  const call = it.sandboxFunction(0, '__proto__')();
  const promise = it.sandboxPromise(5);
  assert.equal(it.sandboxPromise(5), promise);
  for (const value of [1, 2]) {
    it.functionSettled(1, true, mail(value));
    it.promiseSettled(5, true, mail(value));
  }
  assert.deepEqual([await call, await promise], [1, 1]);
});

test('a function that comes again is the same one', () => {
  const it = run();
  const fn = it.sandboxFunction(3, 'f');
  for (let i = 0; i < 3; i += 1) assert.equal(it.sandboxFunction(3, 'g'), fn);
});
