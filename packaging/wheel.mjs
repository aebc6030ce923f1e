// The wheel of a target.
//
// In: Python's module and the worker, compiled. Out: the path of the wheel, whose tag is what the files ask of a system.
// maturin writes the metadata from `pyproject.toml`, with the README, whose links to files become plain text: a wheel has no
// pages. `wheel.py` puts the files together, because maturin would compile the module again.

import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join, relative } from 'node:path';

import { ROOT } from '../bindings-node/addon.mjs';
import { systemNeeds } from './checks.mjs';
import { relinked } from './links.mjs';

const PYTHON = join(ROOT, '.venv', 'bin', 'python');
const MATURIN = join(ROOT, '.venv', 'bin', 'maturin');
const SOURCE = join(ROOT, 'bindings-python', 'python');
/** The oldest Python whose stable interface the module uses: `abi3-py310` of `bindings-python/Cargo.toml`. */
const ABI = 'cp310-abi3';

export function packWheel(target, { module, worker }, { licences, stage, out }) {
  const info = metadata(stage);
  const pairs = sources().map((path) => [path, relative(SOURCE, path)]);
  const compiled = [[module, target.module], ...(worker === undefined ? [] : [[worker, target.worker]])];
  pairs.push(...compiled.map(([path, name]) => [path, `isolane/${name}`]), [licences, `${basename(info)}/licenses/LICENSES.txt`]);
  const tag = `${ABI}-${target.wheel(compiled.flatMap(([file]) => systemNeeds(target, file)))}`;
  return execFileSync(PYTHON, [join(ROOT, 'packaging', 'wheel.py'), info, tag, out, ...pairs.flat()], { encoding: 'utf8' }).trim();
}

/** The folder `isolane-<version>.dist-info`. */
function metadata(stage) {
  const folder = join(stage, 'wheel');
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  execFileSync(MATURIN, ['pep517', 'write-dist-info', '--metadata-directory', folder, '--interpreter', PYTHON], { cwd: ROOT, stdio: ['ignore', 'ignore', 'pipe'] });
  const [name] = readdirSync(folder);
  const path = join(folder, name, 'METADATA');
  const text = relinked(readFileSync(path, 'utf8'), 'README.md', (words) => words);
  // The compiled files have other licences in them, each with its text in this file.
  writeFileSync(path, text.replace(/^License-File: LICENSE$/m, '$&\nLicense-File: LICENSES.txt'));
  return join(folder, name);
}

/** The package's own files, without those that a build puts beside them. */
function sources() {
  const paths = readdirSync(join(SOURCE, 'isolane'), { recursive: true }).filter((path) => /\.(pyi?|typed)$/.test(path));
  return paths.sort().map((path) => join(SOURCE, 'isolane', path));
}
