// The compiled files of a target, without symbols: the addon, Python's module, and the worker of each.
//
// In: this machine's target. Out: their paths in a folder of the stage. The files are those that stand where the bindings
// look for them; `npm run build`, `npm run build:shipped` and the build of the tests put them there.

import { execFileSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';

import { HOME, ROOT } from '../bindings-node/addon.mjs';

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
