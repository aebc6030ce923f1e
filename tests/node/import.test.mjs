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

test('runs that start in a domain leave the errors of other callers alone', () => {
  const program = `
    const domain = require('node:domain').create();
    const { runCode } = require('isolane');
    const caught = [];
    const fail = (message) => () => void setTimeout(() => { throw new Error(message); });
    const run = (message) => runCode('await fail()', { globals: { fail: fail(message) } });
    domain.on('error', ({ message }) => caught.push('the domain ' + message));
    process.on('uncaughtException', ({ message }) => caught.push('the process ' + message));
    process.on('exit', () => console.log(caught.sort().join()));
    // The first one opens the connection. Later ones poll for each other's events.
    const inside = () => domain.run(() => run('inside'));
    const outside = () => run('outside');
    inside().then(outside).then(() => Promise.all([inside(), outside(), inside(), outside()]));`;
  const options = { cwd: fileURLToPath(new URL('.', import.meta.url)), encoding: 'utf8' };
  const expected = ['the domain inside', 'the process outside'].flatMap((caught) => [caught, caught, caught]);
  assert.equal(execFileSync(process.execPath, ['-e', program], options).trim(), expected.join());
});
