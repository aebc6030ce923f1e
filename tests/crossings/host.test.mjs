// Hostile values against Node's side of a crossing: nothing that the sandbox sends may stall the caller's thread, or
// throw where the caller does not expect it.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { runCode } from '../isolation.mjs';

const CEILING = { timeout: 120_000 };

test('an array with its few elements at certain places is not gone through hole by hole', CEILING, async () => {
  const source = `
    for (const length of [5000, 2 ** 25, 2 ** 32 - 1]) {
      for (const places of [1, 2, 3, 4, 5, 7, 8, 15, 16, 31, 32]) {
        const list = [];
        list.length = length;
        for (let at = 0; at <= places; at += 1) list[Math.min(length - 1, Math.floor(((length - 1) * at) / places))] = 1;
        if (echo(list).length !== length) throw new Error('another length');
      }
    }
    export default 1;`;
  const { status } = await runCode(source, { globals: { echo: (list) => list } });
  assert.equal(status, 'success');
});

test('a host function takes as many arguments as the sandbox can spread', CEILING, async () => {
  const source = `export default [100, 10_000, 65_000].map((n) => count(...new Array(n).fill(1)));`;
  const { result } = await runCode(source, { globals: { count: (...args) => args.length } });
  assert.deepEqual(result, [100, 10_000, 65_000]);
});

const CHANGES = {
  detaches: (buffer) => structuredClone(buffer, { transfer: [buffer] }),
  shrinks: (buffer) => buffer.resize(2),
  grows: (buffer) => buffer.resize(16),
};
for (const [does, change] of Object.entries(CHANGES)) {
  test(`a getter that ${does} a buffer that was met makes the value one that cannot be cloned`, async () => {
    const hostile = () => {
      const buffer = new ArrayBuffer(8, { maxByteLength: 16 });
      return { buffer, view: new Uint8Array(buffer), get change() { return change(buffer), 1; } };
    };
    const message = (root) => `${root}: an ArrayBuffer that changed while it was read cannot be cloned`;
    assert.throws(() => runCode('', { globals: { v: hostile() } }), { name: 'SerializationError', message: message('globals.v') });
    const source = `let told; try { answer(); } catch (error) { told = [error.name, error.message]; } export default told;`;
    const { result } = await runCode(source, { globals: { answer: hostile } });
    assert.deepEqual(result, ['SerializationError', message('the answer of answer')]);
  });
}

test('a getter that takes a property away leaves nothing of Object.prototype in its place', async () => {
  const v = { get first() { delete this.toString; delete this.plain; return 1; }, toString: 2, plain: 3 };
  const { result } = await runCode('export default Object.keys(v)', { globals: { v } });
  assert.deepEqual(result, ['first']);
});
