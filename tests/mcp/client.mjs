// The official client of the Model Context Protocol for TypeScript, with `isolane mcp` as Node.js has it.
//
// In: the built addon. Out: a line for each step, and exit code 1 at the first that is not as it must be. The client
// checks structured answers against the schemas of the tools by itself.

import assert from 'node:assert/strict';
import process from 'node:process';
import { fileURLToPath } from 'node:url';

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';

const program = fileURLToPath(new URL('../../bindings-node/cli.mjs', import.meta.url));
const client = new Client({ name: 'a-host', version: '1.0.0' });
await client.connect(new StdioClientTransport({ command: process.execPath, args: [program, 'mcp', '--global', 'tax=0.5'] }));
step(`connected to ${client.getServerVersion().name}`);

const { tools } = await client.listTools();
assert.deepEqual(tools.map(({ name }) => name), ['run_code', 'run_cell', 'list_names', 'reset_session']);
step('tools are listed');

const call = (name, args, options) => client.callTool({ name, arguments: args }, undefined, options);
const run = await call('run_code', { code: 'console.log("a"); [1 + tax, 2n]' });
assert.deepEqual([run.content, run.isError], [[{ type: 'text', text: 'a\n[ 1.5, 2n ]' }], false]);
assert.deepEqual(run.structuredContent.result, [1.5, { $bigint: '2' }]);
const failed = await call('run_code', { code: 'null.x' });
assert.equal(failed.isError, true);
assert.match(failed.content[0].text, /^TypeError: /);
const misused = await call('run_code', { code: 5 });
assert.deepEqual([misused.isError, misused.content[0].text], [true, 'code must be a string, got 5']);
step('run_code answers');

await call('run_cell', { session: 'a', code: 'let n = 1' });
const abort = new AbortController();
const onprogress = ({ message }) => message === 'begun' && abort.abort();
const endless = call('run_cell', { session: 'a', code: `n = 2; report('begun'); for (;;);` }, { onprogress, signal: abort.signal });
await assert.rejects(endless);
const after = await call('run_cell', { session: 'a', code: 'n' });
assert.equal(after.structuredContent.result, 1);
step('a cell that is canceled is undone, and progress is told');

const both = await Promise.all(['b', 'c'].map((session) => call('run_cell', { session, code: `'${session}'` })));
assert.deepEqual(both.map(({ structuredContent }) => structuredContent.result), ['b', 'c']);
const { structuredContent } = await call('list_names', { session: 'a' });
assert.deepEqual(structuredContent.names, [{ name: 'n', kind: 'let', type: 'number' }]);
assert.equal((await call('reset_session', { session: 'a' })).structuredContent.session, 'reset');
step('sessions are listed and reset');

await client.close();
step('closed');

function step(text) {
  process.stdout.write(`typescript: ${text}\n`);
}
