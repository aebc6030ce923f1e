// The server of `server.mjs`, in a process of its own.
//
// In: a token, or an empty text. Out: its address, its resident bytes on demand, its end.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import process from 'node:process';
import { createInterface } from 'node:readline';

/** Starts a server. */
export async function started(token) {
  const env = { ...process.env, ISOLANE_TOKEN: token };
  const child = spawn(process.execPath, [join(import.meta.dirname, 'server.mjs')], { env, stdio: ['pipe', 'pipe', 'inherit'] });
  const ended = once(child, 'exit');
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  const line = async () => {
    const { value, done } = await lines.next();
    assert.ok(!done, 'the server has ended');
    return value;
  };
  return {
    url: await line(),
    async residentBytes() {
      child.stdin.write('\n');
      return Number(await line());
    },
    async end() {
      child.stdin.end();
      const [code] = await ended;
      assert.equal(code, 0);
    },
  };
}
