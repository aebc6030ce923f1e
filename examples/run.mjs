// The demo: every example in its three languages, one after another. An example fails if a number in it is wrong.
//
// In: the profile of cargo for the examples in Rust, `release` or `ci`; the packages as they were built last. Out: what
// the examples print, and the exit code of the first that fails.

import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const EXAMPLES = [
  { name: 'agent', path: 'agent/main' },
  { name: 'session', path: 'session' },
  { name: 'kit', path: 'kit/main' },
  { name: 'code-agent', path: 'code-agent/main' },
];

const [profile] = process.argv.slice(2);
if (profile === undefined) throw new Error('usage: node examples/run.mjs PROFILE');

for (const { name, path } of EXAMPLES) {
  run(process.execPath, [`examples/${path}.mjs`]);
  run(join('.venv', 'bin', 'python'), [`examples/${path}.py`]);
  run('cargo', ['run', '--locked', '--quiet', '--profile', profile, '--example', name]);
}

function run(command, args) {
  try {
    execFileSync(command, args, { cwd: ROOT, stdio: 'inherit' });
  } catch (error) {
    console.error(`demo: ${command} ${args.join(' ')} failed: ${error.message}`);
    process.exit(error.status || 1);
  }
}
