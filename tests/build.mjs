// The build of the tests: the addon, the worker, Python's module, and every test and example in Rust, by one command of
// cargo, so that each crate is compiled once.
//
// In: nothing; `npm run build:tests` does the set-up. Out: the files where the bindings look for them, and a line in
// `.venv` with the folder of the Python package. The profile is `ci` of Cargo.toml. `npm run build` puts the release
// build in the same places.

import { execFileSync } from 'node:child_process';
import { copyFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { HOME, ROOT, WORKER_FILE, place, targetFolder } from '../bindings-node/addon.mjs';

const PROFILE = 'ci';
const PYTHON_SOURCE = join(ROOT, 'bindings-python', 'python');
const PYTHON = join(ROOT, '.venv', 'bin', 'python');

const targets = ['--workspace', '--lib', '--bins', '--tests', '--examples'];
execFileSync('cargo', ['build', '--locked', '--profile', PROFILE, ...targets], { cwd: ROOT, stdio: 'inherit' });

const built = join(targetFolder(), PROFILE);
place(PROFILE, HOME);
move(WORKER_FILE, join(HOME, WORKER_FILE));
move(WORKER_FILE, join(PYTHON_SOURCE, 'isolane', WORKER_FILE));
move('libisolane_python.so', join(PYTHON_SOURCE, 'isolane', '_isolane.abi3.so'));
const packages = execFileSync(PYTHON, ['-c', 'import sysconfig; print(sysconfig.get_path("purelib"))'], { encoding: 'utf8' });
writeFileSync(join(packages.trim(), 'isolane.pth'), `${PYTHON_SOURCE}\n`);

/** Copies a built file. The rename keeps the old file for processes that have it open. */
function move(name, place) {
  copyFileSync(join(built, name), `${place}.new`);
  renameSync(`${place}.new`, place);
}
