// The build of the workers' executable for this machine.
//
// In: options of `cargo build`. Out: two files `isolane-worker`, `.exe` on Windows, where the bindings look for them:
// beside the addon of Node.js, and in Python's package; none where there is no isolation by process. On Linux the
// executable has the C library in it if that is installed as an archive: a process that maps nothing else is forked
// and ends in four fifths of the time. On Windows it always has: a worker may load only libraries that the system's
// maker has signed.

import { execFileSync } from 'node:child_process';
import { copyFileSync, renameSync } from 'node:fs';
import { isAbsolute, join } from 'node:path';
import process from 'node:process';

import { ROOT, WORKER_FILE, targetFolder } from '../../bindings-node/addon.mjs';
import { compiler } from '../../bindings-node/profile.mjs';

const WORKER = 'isolane-worker';
const PLACES = ['bindings-node', join('bindings-python', 'python', 'isolane')];

const options = process.argv.slice(2);

if (['linux', 'darwin', 'win32'].includes(process.platform)) {
  const isStatic = process.platform === 'win32' || (process.platform === 'linux' && hasArchives());
  const linking = isStatic ? ['--', '-C', 'target-feature=+crt-static'] : [];
  const flags = ['rustc', '--locked', '--package', WORKER, '--bin', WORKER, ...options, ...linking];
  execFileSync('cargo', flags, { cwd: ROOT, env: isStatic ? ownLinker() : process.env, stdio: 'inherit' });
  const built = join(targetFolder(), options.includes('--release') ? 'release' : 'debug', WORKER_FILE);
  for (const folder of PLACES) {
    const place = join(ROOT, folder, WORKER_FILE);
    // Moved into place: a runtime whose workers run the old file keeps it, where the system allows that.
    copyFileSync(built, `${place}.new`);
    renameSync(`${place}.new`, place);
  }
}

/** The environment without the linker of the packages: it has no archive of the C library, and a worker needs no version. */
function ownLinker() {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^CARGO_TARGET_.*_LINKER$/.test(name)));
}

/** Whether the C compiler finds every file that a program without shared libraries needs. */
function hasArchives() {
  const [command, ...flags] = compiler();
  return ['libc.a', 'libgcc_eh.a', 'rcrt1.o'].every((file) => {
    const found = execFileSync(command, [...flags, `-print-file-name=${file}`], { encoding: 'utf8' });
    return isAbsolute(found.trim());
  });
}
