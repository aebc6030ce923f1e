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

const program = fileURLToPath(new URL('../../bindings-node/cli.cjs', import.meta.url));
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

test('types are checked by the compiler of TypeScript', { timeout }, async () => {
  const tsc = fileURLToPath(new URL('../../node_modules/.bin/tsc', import.meta.url));
  const check = (source) => run(['check', '-', '--tsc', tsc, '--global', 'rows=[{"n":1},{"n":2,"name":"b"}]'], source);
  const good = `
    const sum = (list) => list.reduce((all, { n }) => all + n, 0);
    try { report(structuredClone(sum(rows))); } catch (error) { console.warn(error.message); }
    await queueMicrotask(() => console.table(rows[1]?.name?.toUpperCase()));
    export default [1n, /a/v, rows.at(-1), Object.groupBy(rows, (row) => row.n)];
  `;
  assert.deepEqual(await check(good), [0, '', '']);
  const [code, stdout, stderr] = await check('const n: string = rows[0].n;\nrows[0].name.length; document;');
  assert.deepEqual([code, stdout], [1, '']);
  const names = [...stderr.matchAll(/^type_error  (TS[0-9]+): .*  <stdin>:([0-9]+:[0-9]+)$/gm)];
  assert.deepEqual(names.map(([, name, place]) => `${name} ${place}`), ['TS2322 1:7', 'TS2532 2:1', 'TS2584 2:22'], stderr);
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
