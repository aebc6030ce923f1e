// The official client of the Model Context Protocol for TypeScript, with `isolane mcp` as Node.js has it.
//
// In: the built addon. Out: a line for each step, and exit code 1 at the first that is not as it must be. The client
// checks structured answers against the schemas of the tools by itself.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';

const program = fileURLToPath(new URL('../../bindings-node/cli.cjs', import.meta.url));
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

// Code mode: the tools of a server of the same library, over its standard streams and over HTTP.
const server = fileURLToPath(new URL('server.mjs', import.meta.url));
const web = spawn(process.execPath, [server, 'http'], { stdio: ['ignore', 'pipe', 'inherit'] });
const [port] = await once(web.stdout, 'data');
const folder = mkdtempSync(join(tmpdir(), 'isolane-mcp-'));
const config = join(folder, 'tools.json');
writeFileSync(config, JSON.stringify({
  mcpServers: {
    shop: { command: process.execPath, args: [server] },
    'web-shop': { url: `http://127.0.0.1:${String(port).trim()}/mcp`, headers: { Authorization: 'Bearer ${SHOP_TOKEN}' } },
  },
  policy: { 'web-shop.cancel_order': 'deny' },
}));
const host = new Client({ name: 'a-host', version: '1.0.0' }, { capabilities: { elicitation: {} } });
const questions = [];
host.setRequestHandler(ElicitRequestSchema, ({ params }) => {
  questions.push(params.message);
  return { action: questions.length === 1 ? 'accept' : 'decline', content: {} };
});
const env = { ...process.env, SHOP_TOKEN: 'a-secret-token' };
await host.connect(new StdioClientTransport({ command: process.execPath, args: [program, 'mcp', '--config', config], env }));
const named = (await host.listTools()).tools.map(({ name }) => name);
assert.deepEqual(named, ['run_code', 'run_cell', 'list_names', 'reset_session', 'describe_tools']);
const code = (source) => host.callTool({ name: 'run_code', arguments: { code: source } });
const orders = (module) => `import { listOrders } from '${module}';
  const { orders } = await listOrders({ customer: 'ada', least: 10 });
  const failed = await listOrders({ customer: 'bob' }).catch(({ message }) => message);
  return [orders, failed];`;
for (const module of ['shop', 'web-shop']) {
  const { structuredContent } = await code(orders(module));
  assert.deepEqual(structuredContent.result[0], [{ id: 1, total: 20 }], JSON.stringify(structuredContent));
  assert.match(structuredContent.result[1], /there is no customer bob/);
}
step('code imports the tools of servers');
const cancel = 'import { cancel_order } from "shop"; return cancel_order({ id: 1 })';
assert.equal((await code(cancel)).structuredContent.result, 'canceled 1');
assert.match((await code(cancel)).structuredContent.error.message, /declined/);
assert.deepEqual(questions[0], 'Code that the model wrote wants to call shop.cancel_order with {"id":1}');
assert.match((await code(cancel.replace('shop', 'web-shop'))).structuredContent.error.message, /no export 'cancel_order'/);
step('the user is asked about calls');
const found = await host.callTool({ name: 'describe_tools', arguments: { query: 'orders' } });
assert.match(found.content[0].text, /export function listOrders\(/);
step('tools are described');
await host.close();
web.kill();
rmSync(folder, { recursive: true });

function step(text) {
  process.stdout.write(`typescript: ${text}\n`);
}
