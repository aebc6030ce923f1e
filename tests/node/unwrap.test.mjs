// Results as exceptions: the return value or exception of `unwrap`, for each status of a real run and for copies.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inspect } from 'node:util';

import { LinkError, MemoryLimitError, StatusError, TerminatedError, UncaughtError, runCode, unwrap } from '../isolation.mjs';

const CEILING_MS = 120_000;
const filename = 'code.ts';

/** The exception of each failing run: its source, its class and the message. Code that is stopped may have a place. */
const FAILURES = [
  ['error', UncaughtError, () => runCode('const f = 1;\n\nthrow new RangeError("too far");', { filename }), 'RangeError: too far (code.ts:3:11)'],
  ['error', UncaughtError, () => runCode('throw 7;', { filename }), 'Error: 7 (code.ts:1:7)'],
  ['memory', MemoryLimitError, () => runCode('const all = []; for (;;) all.push(new Array(1000).fill(0));', { memoryLimitBytes: 4 * 1024 * 1024 }), /^MemoryLimit: the run hit its memory limit of 4194304 bytes( \(<runCode>:1:\d+\))?$/],
  ['terminated', TerminatedError, () => ended('for (;;);', 'long enough'), /^Terminated: long enough( \(<runCode>:1:1\))?$/],
  ['link_error', LinkError, () => runCode("import { a } from 'b';", { filename }), "ReferenceError: Cannot find module 'b' imported from 'code.ts'; no imports were given (code.ts:1:19)"],
  ['link_error', LinkError, () => runCode('const x = ;', { filename }), 'SyntaxError: Unexpected token (code.ts:1:11)'],
];

function ended(source, reason) {
  const run = runCode(source);
  run.terminate(reason);
  return run;
}

function thrownBy(call) {
  try {
    call();
  } catch (error) {
    return error;
  }
  return assert.fail('it did not throw');
}

test('the value of a success, undefined too', { timeout: CEILING_MS }, async () => {
  const result = await runCode('export default { a: [1n, undefined] }');
  assert.equal(unwrap(result), result.result);
  assert.equal(unwrap(await runCode('export default undefined')), undefined);
  assert.equal(unwrap(JSON.parse(JSON.stringify(await runCode('export default undefined')))), undefined);
});

for (const [status, Class, start, message] of FAILURES) {
  test(`${status}: ${Class.name} ${message}`, { timeout: CEILING_MS }, async () => {
    const result = await start();
    assert.equal(result.status, status);
    const copies = [result, structuredClone(result), JSON.parse(JSON.stringify(result))];
    for (const copy of copies) {
      const error = thrownBy(() => unwrap(copy));
      assert.equal(error.constructor, Class);
      assert.ok(error instanceof StatusError && error instanceof Error);
      if (message instanceof RegExp) assert.match(error.message, message);
      else assert.equal(error.message, message);
      assert.equal(error.name, Class.name);
      assert.equal(error.status, status);
      assert.equal(error.result, copy);
      assert.deepEqual(Object.keys(error), ['status']);
      assert.ok(error.stack.startsWith(`${Class.name}: ${error.message}\n    at `), error.stack);
      assert.doesNotMatch(error.stack, /at unwrap/);
    }
    assert.match(inspect(thrownBy(() => unwrap(result))), new RegExp(`^${Class.name}: `));
  });
}

test('a value that is no result', { timeout: CEILING_MS }, async () => {
  const run = runCode('export default 1');
  const awaiting = { name: 'TypeError', message: 'unwrap takes a result, and this one was not awaited yet: write unwrap(await run)' };
  assert.throws(() => unwrap(run), awaiting);
  assert.throws(() => unwrap(Promise.resolve()), awaiting);
  const other = { name: 'TypeError', message: "unwrap takes the result of a run, an object with a 'status'" };
  for (const value of [undefined, null, 1, 'success', {}, { status: 'done' }, { status: 'error' }, { result: 1 }, []]) {
    assert.throws(() => unwrap(value), other);
  }
});
