// A server of the official library for TypeScript, whose tools code under `isolane mcp --config` imports.
//
// In: nothing, or `http`. Out: the protocol on the standard streams, or over HTTP at the port that stdout names.

import { createServer } from 'node:http';
import process from 'node:process';

import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { z } from 'zod';

const TOKEN = 'Bearer a-secret-token';

function shop() {
  const server = new McpServer({ name: 'a-shop', version: '1.0.0' });
  const orders = [{ id: 1, total: 20 }, { id: 2, total: 5 }];
  server.registerTool(
    'list-orders',
    {
      description: 'Lists the orders of a customer.',
      inputSchema: { customer: z.string(), least: z.number().optional() },
      outputSchema: { orders: z.array(z.object({ id: z.number(), total: z.number() })) },
    },
    ({ customer, least = 0 }) => {
      if (customer !== 'ada') throw new Error(`there is no customer ${customer}`);
      const structuredContent = { orders: orders.filter(({ total }) => total >= least) };
      return { content: [{ type: 'text', text: JSON.stringify(structuredContent) }], structuredContent };
    },
  );
  server.registerTool(
    'cancel_order',
    { description: 'Cancels an order.', inputSchema: { id: z.number() }, annotations: { destructiveHint: true } },
    ({ id }) => ({ content: [{ type: 'text', text: `canceled ${id}` }] }),
  );
  return server;
}

if (process.argv[2] === 'http') {
  const web = createServer(async (request, response) => {
    if (request.headers.authorization !== TOKEN) {
      response.writeHead(401).end();
      return;
    }
    // Without sessions each request has a server of its own.
    const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
    await shop().connect(transport);
    await transport.handleRequest(request, response);
  });
  web.listen(0, '127.0.0.1', () => console.log(web.address().port));
} else {
  await shop().connect(new StdioServerTransport());
}
