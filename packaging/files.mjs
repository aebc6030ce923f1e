// The compiled files of this machine's target, without symbols: the addon, Python's module, and the worker of each.
//
// In: the target; for a compilation a profile of cargo. Out: their paths in a folder of the stage. Files that were built
// before are those that stand where the bindings look for them; `npm run build`, `npm run build:shipped` and the build of
// the tests put them there.

import { execFileSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';

import { HOME, ROOT } from '../bindings-node/addon.mjs';
import { cFlags, rustFlags } from './folders.mjs';
import { linking } from './linker.mjs';

/** A folder of its own: cargo compiles everything again if a flag changes. */
const FOLDER = join(ROOT, 'target', 'published');
const PYTHON = join(ROOT, 'bindings-python', 'python', 'isolane');

/** The files of this machine's last build. */
export function built(target, stage) {
  const files = {
    addon: join(HOME, `isolane.${target.name}.node`),
    module: join(PYTHON, target.module),
    worker: join(HOME, target.worker),
    wheelWorker: join(PYTHON, target.worker),
  };
  const missing = Object.values(files).filter((path) => !existsSync(path));
  if (missing.length > 0) throw new Error(`nothing was built: ${missing.join(', ')}; run npm run build, or leave out --built`);
  return stripped(files, stage, target);
}

/** Compiles the files as they are published. */
export function compiled(target, profile, stage) {
  const crates = ['isolane-node', 'isolane-python', ...(target.worker === undefined ? [] : ['isolane-worker'])];
  const options = ['build', '--locked', '--profile', profile, ...crates.flatMap((name) => ['--package', name])];
  execFileSync('cargo', options, { cwd: ROOT, env: { ...process.env, ...publishing(target) }, stdio: 'inherit' });
  const out = join(FOLDER, profile === 'dev' ? 'debug' : profile);
  const files = { addon: join(out, target.library('isolane_node')), module: join(out, target.library('isolane_python')) };
  if (target.worker !== undefined) files.worker = files.wheelWorker = join(out, target.worker);
  return stripped(files, stage, target);
}

/** The variables with which cargo compiles files for others: without the folders of this machine, for old systems. */
export function publishing(target) {
  return {
    ...linking(target),
    CARGO_TARGET_DIR: FOLDER,
    CARGO_ENCODED_RUSTFLAGS: rustFlags(process.env.RUSTC ?? 'rustc').join('\x1f'),
    CFLAGS: cFlags(),
    CC_SHELL_ESCAPED_FLAGS: '1',
  };
}

/** Copies of the files without symbols. A loader needs only the dynamic ones, which stay. */
function stripped(files, stage, target) {
  const folder = join(stage, 'files', target.name);
  mkdirSync(folder, { recursive: true });
  return Object.fromEntries(Object.entries(files).map(([name, path]) => {
    const copy = join(folder, name);
    copyFileSync(path, copy);
    execFileSync(process.env.STRIP ?? 'strip', ['--strip-all', copy], { stdio: 'inherit' });
    return [name, copy];
  }));
}
