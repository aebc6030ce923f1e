// How far the engine that is built lags behind the newest one to be had. Prints, and judges nothing: a
// release that came out today is no reason for a commit to fail.

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

const CRATE = 'rquickjs-sys';

const { packages } = JSON.parse(run('cargo', ['metadata', '--locked', '--format-version', '1']));
const { version, manifest_path: manifest } = packages.find(({ name }) => name === CRATE);
const header = readFileSync(join(dirname(manifest), 'quickjs', 'quickjs.h'), 'utf8');
const part = (name) => header.match(new RegExp(`#define QJS_VERSION_${name}\\s+"?([^"\\s]*)`))[1];

console.log(`QuickJS-ng ${part('MAJOR')}.${part('MINOR')}.${part('PATCH')}${part('SUFFIX')}, by ${CRATE} ${version}; ${lag()}`);

function lag() {
  let about;
  try {
    // Away from the workspace, whose lock file would answer.
    about = run('cargo', ['info', '--quiet', CRATE], { cwd: tmpdir() });
  } catch (error) {
    return `the registry did not tell the newest: ${error.message.split('\n')[0]}`;
  }
  const newest = about.match(/^version: (\S+)/m)[1];
  return newest === version ? 'the newest there is' : `BEHIND: the newest is ${newest}`;
}

function run(command, args, options) {
  return execFileSync(command, args, { encoding: 'utf8', maxBuffer: 1 << 30, stdio: ['ignore', 'pipe', 'ignore'], ...options });
}
