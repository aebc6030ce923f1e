// The build of the workers' executable for this machine.
//
// In: options of `cargo build`. Out: two files `isolane-worker`, `.exe` on Windows, where the bindings look for them:
// beside the addon of Node.js, and in Python's package; none where there is no isolation by process. On Windows the
// executable has the C library in it: a worker may load only libraries that the system's maker has signed. On Linux it asks
// for the system's, as the addon does: with glibc in it each package would be under the LGPL, too, and a worker starts and
// ends hardly sooner.

import { execFileSync } from 'node:child_process';
import { copyFileSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';

import { ROOT, WORKER_FILE, targetFolder } from '../../bindings-node/addon.mjs';

const WORKER = 'isolane-worker';
const PLACES = ['bindings-node', join('bindings-python', 'python', 'isolane')];

const options = process.argv.slice(2);

if (['linux', 'darwin', 'win32'].includes(process.platform)) {
  const linking = process.platform === 'win32' ? ['--', '-C', 'target-feature=+crt-static'] : [];
  execFileSync('cargo', ['rustc', '--locked', '--package', WORKER, '--bin', WORKER, ...options, ...linking], { cwd: ROOT, stdio: 'inherit' });
  const built = join(targetFolder(), options.includes('--release') ? 'release' : 'debug', WORKER_FILE);
  for (const folder of PLACES) {
    const place = join(ROOT, folder, WORKER_FILE);
    // Moved into place: a runtime whose workers run the old file keeps it, where the system allows that.
    copyFileSync(built, `${place}.new`);
    renameSync(`${place}.new`, place);
  }
}
