// Values of the sandbox that this version of Node.js cannot hold: a pattern that its own engine does not support, a
// string or a collection beyond its limits. They cannot be cloned, and nothing else is lost.

import assert from 'node:assert/strict';
import { constants } from 'node:buffer';
import { test } from 'node:test';

import { SerializationError, runCode } from '../isolation.mjs';

// The isolate supports all of these.
const PATTERN = ['/(?i:a)b/', '/(?<y>a)|(?<y>b)/', '/\\p{Script=Garay}/u'].find((pattern) => !known(pattern));
const skip = PATTERN === undefined && 'this version knows every pattern of the isolate';

function known(pattern) {
  const [, source, flags] = pattern.match(/^\/(.*)\/(\w*)$/);
  try {
    return new RegExp(source, flags) instanceof RegExp;
  } catch {
    return false;
  }
}

test('in a result it is a SerializationError, and reports and logs stay', { skip }, async () => {
  const reports = [];
  const source = `report(1); console.log('two'); export default { list: [${PATTERN}] };`;
  const result = await runCode(source, { report: (value) => { reports.push(value); } });
  assert.equal(result.status, 'error');
  assert.equal(result.error.name, 'SerializationError');
  assert.match(result.error.message, /^result\.list\[0\]: the RegExp .* cannot be cloned$/);
  assert.deepStrictEqual([reports, result.reports, result.logs.map(({ args }) => args)], [[1], [1], [['two']]]);
  assert.ok(result.durationMs > 0 && result.memoryUsedBytes > 0);
  assert.ok(!Object.hasOwn(result, 'result'));
});

test('in a log it is text in its place', { skip }, async () => {
  const { status, logs } = await runCode(`console.log('at', { list: [${PATTERN}, 2] }, /a/g); export default 1;`);
  assert.equal(status, 'success');
  assert.deepStrictEqual(logs[0].args, ['at', { list: [PATTERN, 2] }, /a/g]);
});

test('as a report it throws inside, and the sink sees the others in order', { skip }, async () => {
  const seen = [];
  const source = `
    report('first');
    try { report([${PATTERN}]); } catch (error) { report(error.name); }
    report('last');
    export default 1;`;
  const run = runCode(source, { report: (value) => { seen.push([value, run.reports.length]); } });
  const { status, reports } = await run;
  assert.equal(status, 'success');
  assert.deepStrictEqual(seen, [['first', 1], ['SerializationError', 2], ['last', 3]]);
  assert.deepStrictEqual(reports, ['first', 'SerializationError', 'last']);
});

test('reading the reports of a live run never throws', { skip }, async () => {
  let run;
  const look = () => run.reports.length;
  run = runCode(`try { report(${PATTERN}); } catch {} report(2); export default look();`, { globals: { look }, report: () => {} });
  assert.deepStrictEqual([(await run).result, (await run).reports], [1, [2]]);
});

test('as an argument it throws inside; answered by the sandbox it rejects outside', { skip }, async () => {
  const taken = {};
  const globals = {
    take: () => assert.fail('called'),
    call: async (fn) => { taken.error = await fn().catch((error) => error); },
  };
  const source = `
    try { take(1, ${PATTERN}); } catch (error) { report(error.name); }
    await call(() => ${PATTERN});
    export default 1;`;
  const { status, reports } = await runCode(source, { globals, report: () => {} });
  assert.deepStrictEqual([status, reports], ['success', ['SerializationError']]);
  assert.ok(taken.error instanceof SerializationError, String(taken.error));
});

test('a thrown one is text', { skip }, async () => {
  const { status, error } = await runCode(`throw ${PATTERN}`);
  assert.deepStrictEqual([status, error.message], ['error', PATTERN]);
});

test('a string beyond the limit of this version is one', async () => {
  const source = `const long = 'x'.repeat(${constants.MAX_STRING_LENGTH} + 1); console.log('one'); export default { long };`;
  const { status, error, logs } = await runCode(source, { memoryLimitBytes: 2 ** 32 });
  assert.deepStrictEqual([status, error.name, logs.length], ['error', 'SerializationError', 1]);
  assert.match(error.message, /^result\.long: a string of \d+ bytes cannot be cloned$/);
});
