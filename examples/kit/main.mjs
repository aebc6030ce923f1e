// Tools that a model wrote, with a kit: an import, a conversion at a rate from a server, a wait, and a theft. Each shows
// what came of its calls.

import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';

import { Kit } from 'isolane/kit';

const KEY = 'rk-4f0c7a5de1';
const read = (file) => readFileSync(new URL(file, import.meta.url), 'utf8');

let asked = 0;
const server = createServer((request, response) => {
  const { pathname } = new URL(request.url, 'http://server');
  if (pathname === '/parcel') {
    asked += 1;
    response.end(JSON.stringify({ parcel: asked < 3 ? 'under way' : 'arrived' }));
  } else if (pathname === '/rates' && request.headers.authorization === `Bearer ${KEY}`) {
    response.end(JSON.stringify({ rate: 11.5 }));
  } else {
    response.writeHead(401).end();
  }
});
await new Promise((listening) => server.listen(0, '127.0.0.1', listening));
const origin = `http://127.0.0.1:${server.address().port}`;

const kit = new Kit({
  state: true,
  db: true,
  libraries: true,
  // The server is on this machine, which is not allowed otherwise.
  fetch: { allow: [`${origin}/*`], allowAddresses: ['127.0.0.1'] },
  secrets: { RATES_KEY: { value: KEY, hosts: [`${origin}/rates`], in: ['header'] } },
});
await kit.libraries.create('money', read('tools/money.ts'), { description: 'round(amount): cents' });

console.log((await kit.describe()).split('\n').filter((line) => line.includes('RATES_KEY')).join('\n').trim());
await use('import', { csv: read('orders.csv') });
const converted = await use('convert', { to: 'NOK', server: origin });
await use('convert', { to: 'NOK', server: origin });
await use('wait', { server: origin });
const stolen = await use('steal', { server: origin });

await kit.close();
server.close();
if (converted.result.Oslo !== 1615.64) throw new Error('the sums are wrong');
if (JSON.stringify(stolen).includes(KEY)) throw new Error('the key is out');

/** Runs a tool and shows its result and its calls. */
async function use(name, args) {
  const done = await kit.runTool(read(`tools/${name}.ts`), { args, filename: `${name}.ts` });
  console.log(`\n${name}: ${done.json ?? `${done.error.name}: ${done.error.message}`}`);
  for (const { name: call, summary, ok, error } of done.calls) {
    const shown = summary.replace(origin, '').slice(0, 60);
    console.log(`  ${ok ? '✓' : '✗'} ${call} ${shown}${error === undefined ? '' : ` (${error})`}`);
  }
  return done;
}
