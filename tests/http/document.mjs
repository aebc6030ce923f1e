// The server against its OpenAPI document: schemathesis draws requests from the document, valid ones and others, one by one
// and in chains, and each answer must be one that the document allows.
//
//   node tests/http/document.mjs [--seed 1] [--cases 100]      # in: the addon of any build
//
// Out: the report of schemathesis, without a token and with one; exit code 1 if an answer is not as it must be. Streams of
// all processes are left out: they do not end.

import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { parseArgs } from 'node:util';

import { started } from './started.mjs';

const HERE = import.meta.dirname;
const ROOT = join(HERE, '..', '..');
const VENV = join(ROOT, 'target', 'http-venv');

const { values } = parseArgs({ options: { seed: { type: 'string', default: '1' }, cases: { type: 'string', default: '100' } } });

// A place of its own: the packages of the project's own environment stay as they are.
if (!existsSync(join(VENV, 'bin', 'python'))) run('python3', ['-m', 'venv', VENV]);
const requirements = join(HERE, 'requirements.txt');
run(join(VENV, 'bin', 'pip'), ['install', '--quiet', '--disable-pip-version-check', '--requirement', requirements]);

for (const token of ['', 'a-token-of-the-test']) await check(token);

/** Draws requests for a server with that token, or without one. */
async function check(token) {
  const server = await started(token);
  const flags = ['--checks', 'all', '--seed', values.seed, '--max-examples', values.cases, '--exclude-path-regex', 'events$', '--no-color'];
  const auth = token ? ['--header', `Authorization: Bearer ${token}`] : [];
  run(join(VENV, 'bin', 'schemathesis'), ['run', `${server.url}/openapi.json`, ...flags, ...auth]);
  await server.end();
}

function run(command, args) {
  const { status, error } = spawnSync(command, args, { cwd: join(ROOT, 'target'), stdio: 'inherit' });
  if (error) throw error;
  if (status !== 0) process.exit(1);
}
