// Costs of a database: requests to a process service with one, beside requests to one in memory.
//
// In: `--quick` for few samples. Out: a table in Markdown. There are no bounds.

import { mkdtempSync, rmSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { ProcessService } from 'isolane/environment';

import { HEAD, perSecond, quick, rate, row, time } from './measure.mjs';

const ONE = JSON.stringify({ code: '1 + 1' });
const LARGE = JSON.stringify({ code: `console.log('x'.repeat(1e5))` });

const folder = mkdtempSync(join(tmpdir(), 'isolane-bench-'));
const agent = new Agent({ keepAlive: true });
const memory = await serve();
const file = await serve(join(folder, 'processes.db'));
try {
  const post = (server, body) => () => send(server, 'POST', '/processes?wait=60000', body, 201);
  const created = (server) => () => send(server, 'POST', '/processes', JSON.stringify({ code: '', autorun: false }), 201);
  const read = (path) => (server) => () => send(server, 'GET', path, undefined, 200);
  const rows = [
    await beside('POST of `1 + 1`, executed, one after another', (server) => time(post(server, ONE))),
    await beside('POST of `1 + 1`, executed, 16 at once', (server) => rate(16, post(server, ONE)), perSecond),
    await beside('POST of 100 kB of text, executed, 16 at once', (server) => rate(16, post(server, LARGE)), perSecond),
    await beside('POST that waits for a run, 16 at once', (server) => rate(16, created(server)), perSecond),
    await beside('GET of the oldest record, one after another', (server) => time(read('/processes/1')(server))),
    await beside('GET of a page of 50', (server) => time(read('/processes?before=60')(server))),
  ];
  console.log(`### Processes in a database\n\n${HEAD}\n${rows.join('\n')}\n`);
} finally {
  agent.destroy();
  for (const { server, service } of [memory, file]) {
    await server.close();
    await service.shutdown();
  }
  rmSync(folder, { recursive: true });
}

/** The cost with a database, and its ratio to the cost in memory. */
async function beside(what, measure, unit) {
  return row(what, await measure(file), 'in memory', await measure(memory), unit);
}

async function serve(database = null) {
  const service = new ProcessService({ database, ...(quick && { retainCount: 1_000 }) });
  const server = await service.listen({ port: 0, rateLimit: null });
  return { service, server };
}

/** Sends a request, and reads the answer to its end. */
function send({ server }, method, path, body, expected) {
  return new Promise((resolve, reject) => {
    const headers = body === undefined ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
    const sent = request(`${server.url}${path}`, { agent, method, headers }, (answer) => {
      answer.resume();
      answer.on('error', reject);
      answer.on('end', () => {
        if (answer.statusCode === expected) resolve();
        else reject(new Error(`${method} ${path}: ${answer.statusCode}`));
      });
    });
    sent.on('error', reject);
    sent.end(body);
  });
}
