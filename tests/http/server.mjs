// A process service with a tool, which listens for the clients of the tests beside this file.
//
// In: `ISOLANE_TOKEN`, or none for a server that asks for no token. Out: its address on a line, and its resident bytes for
// each line of stdin. It ends when its stdin does.

import process from 'node:process';
import { createInterface } from 'node:readline';

import { ProcessService } from 'isolane/environment';

const token = process.env.ISOLANE_TOKEN || undefined;
const service = new ProcessService({ defaultTimeoutMs: 10_000, maxTimeoutMs: 10_000, retainCount: 2000 });
const inputSchema = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] };
service.tool('shop', 'find', { description: 'Finds an article.', inputSchema }, ({ name }) => ({ name, euros: 3 }));
const server = await service.listen({ port: 0, token, rateLimit: null });
console.log(server.url);

for await (const _ of createInterface(process.stdin)) console.log(process.memoryUsage().rss);
await server.close();
await service.shutdown();
