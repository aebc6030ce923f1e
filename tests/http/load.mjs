// Many clients at once: they create processes, wait for them, read their events, leave in the middle and come back, kill.
//
//   node tests/http/load.mjs [--clients 200] [--seconds 60]     # in: the addon of any build
//
// Out: the acts of each kind, and the resident bytes of the server; exit code 1 if an answer is lost or wrong, if the counts
// of the server are others than those of the clients, or if the server holds twice as much at the end as after the first
// third, when all that is kept of old processes is there.

import assert from 'node:assert/strict';
import process from 'node:process';
import { parseArgs } from 'node:util';

import { started } from './started.mjs';

const { values } = parseArgs({ options: { clients: { type: 'string', default: '200' }, seconds: { type: 'string', default: '60' } } });
const clients = Number(values.clients);
const seconds = Number(values.seconds);
const server = await started('');
const done = { waited: 0, followed: 0, resumed: 0, killed: 0, expired: 0 };
const exits = { success: 0, failed: 0, timeout: 0, canceled: 0 };
const acts = [waited, followed, resumed, killed, expired];

const until = performance.now() + seconds * 1000;
const sizes = [];
const sampling = sample();
await Promise.all(Array.from({ length: clients }, (_, client) => loop(client)));
await sampling;

const metrics = await (await fetch(`${server.url}/metrics`)).text();
for (const [state, count] of Object.entries(exits)) {
  assert.ok(metrics.includes(`isolane_exits_total{exit_state="${state}"} ${count}\n`), `${state}: ${count}\n${metrics}`);
}
const { items } = await json('GET', '/processes?state=running');
assert.deepEqual(items, []);
await server.end();
console.log(done);
console.log(`resident MiB: ${sizes.map((bytes) => (bytes / 2 ** 20).toFixed(0)).join(' ')}`);
const [first, last] = [sizes[Math.floor(sizes.length / 3)], sizes.at(-1)];
assert.ok(last < 2 * first, `${first} bytes grew to ${last}`);
process.exit(0);

async function loop(client) {
  for (let turn = client; performance.now() < until; turn++) {
    const act = acts[turn % acts.length];
    await act(turn);
    done[act.name] += 1;
  }
}

async function sample() {
  while (performance.now() < until) {
    sizes.push(await server.residentBytes());
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
}

/** Creates a process and waits for it. */
async function waited(n) {
  const code = `import { find } from 'shop'; const a = await find({ name: 'n${n}' }); return a.name;`;
  const record = await json('POST', '/processes?wait=60000', { code });
  assert.deepEqual([record.exitState, record.output], ['success', { result: `n${n}` }]);
  exits.success += 1;
}

/** Follows all events of a process. */
async function followed(n) {
  const pid = await created(`for (let i = 0; i < 20; i++) { console.log(${n}, i); await null; } throw new Error('no');`);
  const read = await events(pid);
  assert.equal(text(read), Array.from({ length: 20 }, (_, i) => `${n} ${i}\n`).join(''));
  assert.equal(read.at(-1).data.exitState, 'failed');
  exits.failed += 1;
}

/** Leaves a stream after its second event, and goes on behind it. */
async function resumed(n) {
  const pid = await created(`for (let i = 0; i < 20; i++) { stdout('${n} '); await null; }`);
  const begun = await events(pid, { most: 2 });
  const rest = await events(pid, { after: begun.at(-1).id });
  const all = [...begun, ...rest];
  assert.deepEqual(all.map(({ id }) => id), all.map((_, index) => index + 1));
  assert.equal(text(all), `${n} `.repeat(20));
  exits.success += 1;
}

/** Kills a process that computes for ever. */
async function killed() {
  const pid = await created(`console.log('begun'); for (;;);`);
  await json('POST', `/processes/${pid}/kill`, {});
  const record = await json('GET', `/processes/${pid}?wait=60000`);
  assert.deepEqual([record.state, record.exitState, record.error], ['idle', 'canceled', null]);
  exits.canceled += 1;
}

/** Lets the time limit end a process. */
async function expired() {
  const pid = await created('await new Promise(() => {})', 20);
  const { exitState } = await json('GET', `/processes/${pid}?wait=60000`);
  assert.ok(['timeout', 'failed'].includes(exitState), exitState);
  exits[exitState] += 1;
}

async function created(code, timeoutMs) {
  const { pid } = await json('POST', '/processes', { code, timeoutMs });
  return pid;
}

async function json(method, path, body) {
  const headers = body ? { 'content-type': 'application/json' } : {};
  const response = await fetch(server.url + path, { method, headers, body: body && JSON.stringify(body) });
  const answer = await response.json();
  assert.ok(response.ok, `${method} ${path}: ${JSON.stringify(answer)}`);
  return answer;
}

/** The events of a process after an id, to their end, or as many. */
async function events(pid, { after = 0, most = Infinity } = {}) {
  const stop = new AbortController();
  const headers = { 'last-event-id': String(after) };
  const response = await fetch(`${server.url}/processes/${pid}/events`, { headers, signal: stop.signal });
  const read = [];
  if (response.status === 204) return read;
  let rest = '';
  for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
    const blocks = (rest + chunk).split('\n\n');
    rest = blocks.pop();
    for (const block of blocks.filter((block) => !block.startsWith(':'))) {
      const field = (name) => block.split('\n').find((line) => line.startsWith(`${name}: `)).slice(name.length + 2);
      read.push({ id: Number(field('id')), event: field('event'), data: JSON.parse(field('data')) });
      if (read.length === most) {
        stop.abort();
        return read;
      }
    }
  }
  return read;
}

function text(read) {
  return read.filter(({ event }) => event === 'stdout').map(({ data }) => data.text).join('');
}
