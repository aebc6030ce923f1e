// The place of a run that is ended while it waits for its host.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Runtime, ofThreads } from '../isolation.mjs';

const globals = { never: () => new Promise(() => {}), load: async () => new Promise(() => {}) };

/** The error of code that is ended once it waits. */
async function ended(runtime, run) {
  while (runtime.stats().parked === 0) await new Promise(setImmediate);
  run.terminate('too long');
  const { status, error } = await run;
  assert.deepStrictEqual([status, error.message], ['terminated', 'too long']);
  return error;
}

const AWAIT_IN_CALLEE = `const id: number = 1;
async function user(): Promise<unknown> {
  return await load(id);
}
export default await user();`;

test('a run that is ended while it waits has the line of its await, and of those that wait for it', { skip: ofThreads }, async () => {
  const runtime = new Runtime();
  const options = { globals, filename: 'code.ts' };
  const place = async (source) => {
    const { line, stack } = await ended(runtime, runtime.runCode(source, options));
    return [line, stack?.split('\n').length];
  };
  assert.deepStrictEqual(await place(AWAIT_IN_CALLEE), [3, 3]);
  assert.deepStrictEqual(await place('export default await Promise.all([1, 2].map(async (id) => {\n  await load(id);\n}));'), [2, 3]);
  assert.deepStrictEqual(await place('load(1);\nexport default await never();'), [2, 2]);
  // Nothing waits for the call here but the host.
  assert.deepStrictEqual(await place('const one = 1;\nexport default never();'), [2, 2]);
  // The lines of a long text are not counted on a thread of the host.
  assert.deepStrictEqual(await place(`/*${'x'.repeat(40_000)}*/\nawait load(1);`), [undefined, undefined]);
  await runtime.close();
});

test('a cell that is ended while it waits has the place of its await, and its session is as it was before', async () => {
  for (const cells of ['queue', 'interleave']) {
    const runtime = new Runtime();
    const session = runtime.session({ globals, cells });
    await session.run('let kept = 1; const load1 = async () => {\n  await load(1);\n};');
    const { filename, line, column, stack } = await ended(runtime, session.run('kept = 2;\nawait load1();'));
    assert.deepStrictEqual([filename, line, column], ['<cell 1>', 2, 3]);
    assert.deepStrictEqual(stack.split('\n').map((part) => part.trim()), [
      'Terminated: too long', 'at load1 (<cell 1>:2:3)', 'at <anonymous> (<cell 2>:2:1)',
    ]);
    assert.equal((await session.run('kept')).result, 1);
    await runtime.close();
  }
});

test('a run that no call of the host keeps waiting has no place', { skip: ofThreads }, async () => {
  const runtime = new Runtime();
  const hold = () => {};
  const run = runtime.runCode('hold(() => 1);\nawait new Promise(() => {});', { globals: { hold } });
  assert.equal((await ended(runtime, run)).line, undefined);
  await runtime.close();
});
