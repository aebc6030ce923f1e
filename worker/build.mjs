// Builds the executable of worker processes for this machine, and puts it where the faces look for it:
// beside the addon of Node.js, and in Python's package.
//
// In: options of `cargo build`. Out: two files `isolane-worker`; none where there is no isolation by process.

import { execFileSync } from 'node:child_process';
import { copyFileSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';

import { ROOT, targetFolder } from '../bindings-node/addon.mjs';

const WORKER = 'isolane-worker';
const HOMES = ['bindings-node', join('bindings-python', 'python', 'isolane')];

const options = process.argv.slice(2);

if (process.platform === 'linux') {
  execFileSync('cargo', ['build', '--locked', '--package', WORKER, ...options], { cwd: ROOT, stdio: 'inherit' });
  const built = join(targetFolder(), options.includes('--release') ? 'release' : 'debug', WORKER);
  for (const home of HOMES) {
    const place = join(ROOT, home, WORKER);
    // Moved into place: a runtime that has the old one running keeps it.
    copyFileSync(built, `${place}.new`);
    renameSync(`${place}.new`, place);
  }
}
