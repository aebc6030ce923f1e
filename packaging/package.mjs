// The packages: `npm run package [-- TARGET… | --all] [--built] [--trained] [--profile NAME]`.
//
// In: targets, or none for this machine's own; `--built` to take the files of this machine's target that were built last,
// which have paths of this machine and ask for its own C library; `--trained` to compile them by profile, as for
// publishing; the profile of cargo. Out: `target/packages` with the tarballs of npm and the wheels, and a table of their
// sizes, times and runs. Nothing is published.

import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import process from 'node:process';
import { parseArgs } from 'node:util';

import { ROOT } from '../bindings-node/addon.mjs';
import { checkPublished } from './checks.mjs';
import { crossed } from './cross.mjs';
import { built, compiled, publishing } from './files.mjs';
import { licences, linked } from './linked.mjs';
import { packMain, packTarget } from './npm.mjs';
import { TARGETS, find, host } from './targets.mjs';
import { packWheel } from './wheel.mjs';

export const OUT = join(ROOT, 'target', 'packages');

const STAGE = join(ROOT, 'target', 'stage');
/**
 * The most that a published package may have, in bytes: three quarters are the addon or module, which has all systems,
 * and the rest is the worker.
 */
const MOST = { tgz: 16_500_000, whl: 16_500_000 };

/** The options of the command, as `parseArgs` takes them. */
export const OPTIONS = { all: { type: 'boolean' }, built: { type: 'boolean' }, trained: { type: 'boolean' }, profile: { type: 'string', default: 'release' } };

/** Makes the packages of some targets. Returns the paths of the files. */
export function packages(targets, options) {
  for (const folder of [OUT, STAGE]) {
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
  }
  if (!options.built || targets.some((target) => target !== host())) for (const script of ['setup', 'setup:python', 'build:lib']) npmRun(script);
  const rows = targets.flatMap((target) => ofTarget(target, options));
  rows.unshift(row(packMain(targets, STAGE, OUT), { compiled: 'JavaScript', run: 'by npm run test:install' }));
  console.table(rows);
  // A build of the tests is not optimized.
  for (const { file, bytes } of options.built ? [] : rows) {
    const most = MOST[file.split('.').at(-1)];
    if (bytes > most) console.warn(`${file} has ${bytes} bytes; a published one has at most ${most}`);
  }
  return rows.map(({ file }) => join(OUT, file));
}

/** The targets that a command names. */
export function chosen({ all }, names) {
  return all ? TARGETS : names.length > 0 ? names.map(find) : [host()];
}

/** The packages of one target. */
function ofTarget(target, options) {
  const began = performance.now();
  const files = target === host() ? own(target, options) : crossed(target, options.profile);
  const seconds = ((performance.now() - began) / 1000).toFixed(0);
  const text = licences(linked(target));
  const notices = join(STAGE, 'LICENSES.txt');
  writeFileSync(notices, text);
  const native = packTarget(target, files, { licences: text, stage: STAGE, out: OUT });
  const wheel = packWheel(target, { module: files.module, worker: files.wheelWorker }, { licences: notices, stage: STAGE, out: OUT });
  const how = { compiled: target === host() && options.built ? 'before' : `in ${seconds} s`, run: runs(target) };
  return [row(native, how), row(wheel, how)];
}

/** The files of this machine's target. Those that were built before are for this machine, so they pass unless published. */
function own(target, { built: isBuilt, isPublished, profile, trained }) {
  if (!isBuilt && trained) npmRun('build:shipped', publishing(target));
  const files = isBuilt || trained ? built(target, STAGE) : compiled(target, profile, STAGE);
  if (!isBuilt || isPublished) checkPublished(target, Object.values(files));
  return files;
}

function runs(target) {
  if (target === host()) return 'by npm run test:install';
  return process.platform === 'linux' && target.format !== 'mach-o' ? 'by npm run test:platforms' : 'not here';
}

function row(path, how) {
  return { file: basename(path), bytes: statSync(path).size, ...how };
}

function npmRun(script, variables) {
  const env = { ...process.env, ...variables };
  execFileSync('npm', ['run', '--silent', script], { cwd: ROOT, env, stdio: 'inherit', shell: process.platform === 'win32' });
}

if (process.argv[1] === import.meta.filename) {
  const { values, positionals } = parseArgs({ options: OPTIONS, allowPositionals: true });
  packages(chosen(values, positionals), values);
  console.log('They are in target/packages. npm run test:install installs them and runs the first steps of a user;');
  console.log('npm run test:platforms does that for other processors, C libraries and systems.');
}
