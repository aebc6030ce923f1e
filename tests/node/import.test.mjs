// The import of the package: programs that only run code load no system.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { basename } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const SYSTEMS = ['kit', 'notebook', 'executors', 'environment', 'door', 'page'];

test('the import loads no system', () => {
  const addressOf = createRequire(import.meta.url).resolve;
  const program = `require(${JSON.stringify(addressOf('isolane'))}); console.log(JSON.stringify(Object.keys(require.cache)))`;
  const cwd = fileURLToPath(new URL('.', import.meta.url));
  const loaded = JSON.parse(execFileSync(process.execPath, ['-e', program], { cwd, encoding: 'utf8' }));
  const names = loaded.map((file) => basename(file, '.js'));
  assert(names.includes('run-code'), names.join(' '));
  assert.deepEqual(names.filter((name) => SYSTEMS.includes(name)), []);
});
