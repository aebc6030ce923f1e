// The compiled files of a target, without symbols: the addon, Python's module, and the worker of each.
//
// In: a target, and where its files come from. Out: their paths in a folder of the stage. This machine's own files are
// those that stand where the bindings look for them; `npm run build`, `npm run build:shipped` and the build of the tests
// put them there. Those of any other target are compiled here, with zig as the C compiler and linker.

import { execFileSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';

import { HOME, ROOT } from '../bindings-node/addon.mjs';

const PYTHON = join(ROOT, 'bindings-python', 'python', 'isolane');
const CRATES = { addon: 'isolane-node', module: 'isolane-python', worker: 'isolane-worker' };

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

/**
 * Compiles a target. It needs `cargo-zigbuild` and `ziglang` of PyPI, and the standard library for the target or its
 * source. The files for musl load the system's: an addon has to share it with Node.js.
 */
export function compiled(target, stage, profile) {
  const folder = join(ROOT, 'target', 'cross');
  const options = ['--locked', '--profile', profile, '--target', target.rust];
  const env = { ...process.env, CARGO_TARGET_DIR: folder, CARGO_PROFILE_RELEASE_STRIP: 'none' };
  if (!hasStandardLibrary(target)) {
    options.push('-Zbuild-std=std,panic_unwind');
    env.RUSTC_BOOTSTRAP = '1';
  }
  if (target.rust.endsWith('-musl')) env.RUSTFLAGS = '-Ctarget-feature=-crt-static';
  const packages = Object.values(CRATES).flatMap((name) => ['--package', name]);
  execFileSync('cargo-zigbuild', ['zigbuild', ...options, ...packages], { cwd: ROOT, env, stdio: 'inherit' });
  const out = join(folder, target.rust, profile === 'dev' ? 'debug' : profile);
  const library = (crate) => join(out, target.library.replace('NAME', crate.replaceAll('-', '_')));
  const worker = join(out, target.worker);
  return stripped({ addon: library(CRATES.addon), module: library(CRATES.module), worker, wheelWorker: worker }, stage, target);
}

function hasStandardLibrary(target) {
  const folder = execFileSync(process.env.RUSTC ?? 'rustc', ['--print', 'target-libdir', '--target', target.rust], { cwd: ROOT, encoding: 'utf8' });
  return existsSync(folder.trim());
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
