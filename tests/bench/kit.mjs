// Costs of a kit from Node, as ratios to references measured in the same process.
//
// In: `--quick` for few samples; papaparse and better-sqlite3 in `peers/node_modules`, if they are there. Out: a table in
// Markdown. There are no bounds; the last column has the aims.

import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';

import { runCode } from 'isolane';
import { Kit } from 'isolane/kit';

import { HEAD, held, kib, quick, records, row, succeed, time } from './measure.mjs';

const KITS = quick ? 100 : 1_000;
const MIB = 2 ** 20;
const peer = createRequire(new URL('./peers/package.json', import.meta.url));

const memory = await openKits();
const text = Buffer.from(JSON.stringify(records(10 * MIB)));
const bodies = { '/small': text.subarray(0, 1024), '/large': text.subarray(0, 10 * MIB) };
const server = createServer((request, response) => response.end(bodies[request.url]));
await new Promise((listening) => server.listen(0, '127.0.0.1', listening));
const origin = `http://127.0.0.1:${server.address().port}`;
const kit = new Kit({
  state: true,
  db: true,
  libraries: true,
  fetch: { allow: [origin], allowAddresses: ['127.0.0.1'], maxResponseBytes: 16 * MIB, maxCalls: 1e6, maxTotalBytes: 2 ** 40 },
  secrets: { KEY: { value: 'correct horse battery', hosts: [origin] } },
  maxCalls: 1e9,
});
const rows = [...await runs(), ...await state(), ...await database(), ...await requests(), ...await csv(), await libraries(), memory];
console.log(`### A kit from Node\n\n${HEAD}\n${rows.join('\n')}\n`);
await kit.close();
server.close();

/** A tool that must succeed. */
async function tool(source, options) {
  const done = await kit.runTool(source, options);
  if (done.status !== 'success') throw new Error(`${done.error.name}: ${done.error.message}`);
  return done;
}

/** The median time of one step of a loop inside, without the rest of its run. */
async function each(count, step, run = tool, before = '') {
  const loop = (most) => `${before} for (let i = 0; i < ${most}; i += 1) { ${step} }`;
  const [none, all] = [await time(() => run(loop(0))), await time(() => run(loop(count)))];
  return Math.max(0, all - none) / count;
}

/** The same in a module with host functions. */
function withHost(globals) {
  return (source) => succeed(`export default 0;\n${source}`, { globals });
}

async function runs() {
  const plain = await time(() => succeed('export default 1 + 1'));
  const used = await time(() => tool('1 + 1'));
  const code = await time(() => kit.runCode('export default 1 + 1'));
  return [
    row("`runTool('1 + 1')`, all capabilities on (aim: 1.2)", used, '`runCode`', plain),
    row('`kit.runCode`, all capabilities on', code, '`runCode`', plain),
  ];
}

async function state() {
  await kit.state.set('key', 'value');
  const empty = await each(2_000, "btoa('')");
  const get = await each(2_000, "await state.get('key')");
  const many = "await Promise.all(Array.from({ length: 1_000 }, () => state.get('key')))";
  const together = await each(1, many);
  const asynchronous = withHost({ get: async () => 'value' });
  const host = await each(1, many.replaceAll('state.get', 'get'), asynchronous);
  return [
    row("`await state.get('key')` (aim: 1.5)", get, 'a synchronous call of a function in Rust', empty),
    row('1,000 of them at once (aim: 1.0)', together, 'of an asynchronous host function', host),
  ];
}

async function database() {
  const fill = 'WITH RECURSIVE n(a) AS (SELECT 1 UNION ALL SELECT a + 1 FROM n WHERE a < 1000) INSERT INTO t SELECT a, a, a, a, a FROM n';
  await kit.db.sql('CREATE TABLE t (a, b, c, d, e)');
  await kit.db.sql(fill);
  const many = await each(20, "await db.sql('SELECT * FROM t')");
  const one = await each(500, "await db.sql('SELECT * FROM t LIMIT 1')");
  const peerDb = opened();
  if (peerDb === undefined) return [];
  peerDb.exec('CREATE TABLE t (a, b, c, d, e)');
  peerDb.exec(fill);
  const sql = (text) => peerDb.prepare(text).raw().all();
  const host = withHost({ sql });
  const manyThere = await each(20, "sql('SELECT * FROM t')", host);
  const oneThere = await each(500, "sql('SELECT * FROM t LIMIT 1')", host);
  const reference = 'a host function over better-sqlite3';
  return [
    row('`db.sql`, 1,000 rows of 5 (aim: 0.8)', many, reference, manyThere),
    row('`db.sql`, one row (aim: 0.5)', one, reference, oneThere),
  ];
}

async function requests() {
  const outside = async (path) => time(async () => (await fetch(origin + path)).arrayBuffer());
  const inside = (count, path) => each(count, `await (await fetch('${origin}${path}')).arrayBuffer()`);
  const get = async (path) => (await fetch(origin + path)).arrayBuffer();
  const small = await inside(100, '/small');
  const large = await inside(3, '/large');
  return [
    row('`fetch` of 1 KB from loopback (aim: 1.2)', small, "undici, which is Node's `fetch`", await outside('/small')),
    row('the same (aim: 0.8)', small, 'undici in a host function', await each(100, "await get('/small')", withHost({ get }))),
    row('`fetch` of 10 MiB (aim: 1.3)', large, 'undici', await outside('/large')),
  ];
}

async function csv() {
  const text = Array.from({ length: 20_000 }, (_, i) => `${i},name ${i},"a ""quoted"" text",${i / 7}`).join('\n');
  const here = await each(4, 'parseCSV(args.text)', (source) => tool(source, { args: { text } }));
  const papaparse = source('papaparse');
  if (papaparse === undefined) return [];
  await kit.libraries.create('papaparse', papaparse);
  const inside = (code) => tool(code, { args: { text } });
  const there = await each(4, "require('papaparse').parse(args.text)", inside, "require('papaparse');");
  return [row('`parseCSV`, 20,000 rows of 4 (aim: 0.1)', here, 'papaparse inside', there)];
}

async function libraries() {
  const functions = Array.from({ length: 200 }, (_, i) => `exports.f${i} = (a: number) => { const b = a * ${i} + 1; return b > 10 ? b - 10 : b + ${i}; };`);
  await kit.libraries.create('large', functions.join('\n'));
  const used = await each(1, "require('large')");
  const plain = await time(() => succeed('export default 1 + 1'));
  return row(`a known library of ${Math.round(functions.join('\n').length / 1e3)} KB (aim: 0.2 ms)`, used, '`runCode`', plain);
}

/** The memory of kits that are open. */
async function openKits() {
  await runCode('1');
  const kits = [];
  const before = held();
  for (let i = 0; i < KITS; i += 1) kits.push(new Kit({ state: true, db: true, libraries: true, fetch: 'public' }));
  const bytes = held() - before;
  await Promise.all(kits.map((open) => open.close()));
  const one = 300 * 1024;
  return row(`an open kit, of ${KITS.toLocaleString('en')}`, bytes / KITS, 'its aim', one, kib);
}

/** A database of better-sqlite3, if it is compiled. */
function opened() {
  try {
    const Database = peer('better-sqlite3');
    return new Database(':memory:');
  } catch {
    console.log('better-sqlite3 is not compiled.\n');
    return undefined;
  }
}

function source(name) {
  try {
    return readFileSync(peer.resolve(name), 'utf8');
  } catch {
    console.log(`${name} is not installed.\n`);
    return undefined;
  }
}
