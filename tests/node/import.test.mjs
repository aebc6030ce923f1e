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

test('a program that only loads the parts of the package has no open handle', () => {
  // As Jest looks for them: resources that were made, and do not say that they keep no event loop alive. Loading itself makes
  // those that are left out, the last one by the library under the addon.
  const program = `
    const { createHook } = require('node:async_hooks');
    const loads = (process.env.PARTS ?? '').split(' ').map((part) => () => require(part));
    const made = [];
    const isOfLoading = (type) => ['PROMISE', 'TickObject', 'FSREQCALLBACK', 'RANDOMBYTESREQUEST', 'CustomGC'].includes(type);
    const hook = createHook({ init: (id, type, trigger, resource) => isOfLoading(type) || made.push([type, resource]) }).enable();
    for (const load of loads) load();
    hook.disable();
    console.log(JSON.stringify(made.filter(([, resource]) => resource.hasRef?.() ?? true).map(([type]) => type)));`;
  const parts = ['isolane', ...['kit', 'executors', 'environment', 'notebook'].map((name) => `isolane/${name}`)];
  const options = { cwd: fileURLToPath(new URL('.', import.meta.url)), encoding: 'utf8', env: { ...process.env, PARTS: parts.join(' ') } };
  assert.equal(execFileSync(process.execPath, ['-e', program], options).trim(), '[]');
});
