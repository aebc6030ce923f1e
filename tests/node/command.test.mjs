// The program `isolane` of the npm package, as `npx isolane` starts it.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import process from 'node:process';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const program = fileURLToPath(new URL('../../bindings-node/cli.mjs', import.meta.url));
const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
const timeout = 120_000;

const start = (...words) => spawn(process.execPath, [program, ...words], { env: { ...process.env, NO_COLOR: '1' } });

/** Runs the program to its end; gives its exit code and what it wrote. */
async function run(words, input = '') {
  const child = start(...words);
  child.stdin.end(input);
  const [[code], stdout, stderr] = await Promise.all([once(child, 'close'), text(child.stdout), text(child.stderr)]);
  return [code, stdout, stderr];
}

test('code from stdin runs, and the streams are whole', { timeout }, async () => {
  const source = 'for (let i = 0; i < 5000; i++) console.log(i); console.warn("w"); export default [1n]';
  const [code, stdout, stderr] = await run(['run', '-'], source);
  assert.deepEqual([code, stderr], [0, 'w\n']);
  assert.equal(stdout, `${Array.from({ length: 5000 }, (_, i) => `${i}\n`).join('')}[ 1n ]\n`);
  assert.deepEqual(await run(['run', '-', '--isolation', 'process'], 'export default 1 + 1'), [0, '2\n', '']);
  assert.equal((await run(['run', '-'], 'null.x'))[0], 1);
});

test('misuse, versions and problems are told', { timeout }, async () => {
  assert.deepEqual(await run(['--version']), [0, `isolane ${version}\n`, '']);
  assert.deepEqual((await run(['run', '-', '--nothing']))[0], 2);
  const [code, stdout] = await run(['check', '-', '--json'], 'const a = ;');
  const { ok, problems } = JSON.parse(stdout);
  assert.deepEqual([code, ok, problems[0].line], [3, false, 1]);
});

test('the worker of the package is found', { timeout }, async () => {
  const [code, stdout] = await run(['doctor', '--json']);
  assert.deepEqual([code, JSON.parse(stdout).isolation], [0, { thread: { ok: true }, process: { ok: true } }]);
});

test('a host reaches the server of models', { timeout }, async () => {
  const child = start('mcp');
  const clientInfo = { name: 'a test', version: '1' };
  const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo };
  child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params })}\n`);
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  assert.equal(JSON.parse((await lines.next()).value).result.serverInfo.name, 'isolane');
  const call = { name: 'run_code', arguments: { code: '6 * 7' } };
  child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id: 2, method: 'tools/call', params: call })}\n`);
  assert.equal(JSON.parse((await lines.next()).value).result.structuredContent.result, 42);
  child.stdin.end();
  assert.deepEqual(await once(child, 'close'), [0, null]);
});

for (const [signal, expected] of [['SIGINT', 130], ['SIGTERM', 143]]) {
  test(`${signal} ends the run`, { timeout, skip: process.platform === 'win32' && 'there are no signals' }, async () => {
    const child = start('run', '-');
    child.stdin.end(`console.log('begun'); for (;;);`);
    await once(child.stdout, 'data');
    child.kill(signal);
    assert.deepEqual(await once(child, 'close'), [expected, null]);
  });
}

test('a pipe that closes early ends the run quietly', { timeout }, async () => {
  const child = start('run', '-');
  child.stdin.end(`for (;;) console.log('more');`);
  await once(child.stdout, 'data');
  child.stdout.destroy();
  const [[code], stderr] = await Promise.all([once(child, 'exit'), text(child.stderr)]);
  assert.deepEqual([code, stderr], [141, '']);
});
