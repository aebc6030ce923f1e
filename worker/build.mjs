// Builds the executable of worker processes for this machine, and puts it where the faces look for it:
// beside the addon of Node.js, and in Python's package.
//
// In: `--release` or nothing. Out: two files `isolane-worker`; none where there is no isolation by process.

import { execFileSync } from 'node:child_process';
import { copyFileSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';

const WORKER = 'isolane-worker';
const HOMES = ['bindings-node', 'bindings-python/python/isolane'];

const root = fileURLToPath(new URL('..', import.meta.url));
const release = process.argv.includes('--release');

if (process.platform === 'linux') {
  const flags = ['build', '--locked', '--package', WORKER, ...(release ? ['--release'] : [])];
  execFileSync('cargo', flags, { cwd: root, stdio: 'inherit' });
  const metadata = execFileSync('cargo', ['metadata', '--no-deps', '--format-version=1', '--locked'], {
    cwd: root,
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
  });
  const { target_directory: target } = JSON.parse(metadata);
  for (const home of HOMES) {
    const place = join(root, home, WORKER);
    // Moved into place: a runtime that has the old one running keeps it.
    copyFileSync(join(target, release ? 'release' : 'debug', WORKER), `${place}.new`);
    renameSync(`${place}.new`, place);
  }
}
