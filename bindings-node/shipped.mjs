// Builds the published addon, worker and Python module, with profile-guided optimization of the engine's C code.
//
// Out: the files in the folders of `npm run build`; `packaging/package.mjs` makes the packages of them. The program builds
// the engine with counters, runs the training (`training/run.mjs`) and builds the engine again with the counts, which stay
// in `target/profile`. Python's module uses the same objects as the addon.

import { execFileSync } from 'node:child_process';
import { copyFileSync, cpSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';

import { HOME, ROOT, place, targetFolder } from './addon.mjs';
import { compiler, counted, counter, counting, counts, isGcc } from './profile.mjs';

const ROUNDS = 20;
const TRAINING = join('bindings-node', 'training', 'run.mjs');
const PROFILE = join(targetFolder(), 'profile');
// A different setting without effect for the packages with C code. So cargo keeps the objects of `build.mjs`, too.
const APART = ['rquickjs-sys', 'psm'].flatMap((name) => [
  '--config',
  `profile.release.package.${name}.codegen-units=1`,
]);

const gcc = isGcc();
if (gcc) train();
else console.warn(`NO PROFILE: ${compiler().join(' ')} is not gcc. This build is the one of \`npm run build\`.`);
build(gcc ? counted(PROFILE) : []);

/** Collects the counts, in a package of its own, so that the installed addon stays as it is. */
function train() {
  const home = join(PROFILE, 'package');
  rmSync(PROFILE, { recursive: true, force: true });
  mkdirSync(home, { recursive: true });
  run('cargo', ['rustc', ...addon(), '--lib', '--', '-C', `link-arg=${counter()}`], counting(PROFILE));
  copyFileSync(join(ROOT, 'package.json'), join(home, 'package.json'));
  cpSync(HOME, join(home, 'bindings-node'), { recursive: true, filter: (path) => !path.endsWith('.node') });
  place('release', join(home, 'bindings-node'));
  execFileSync(process.execPath, [TRAINING, String(ROUNDS)], { cwd: home, stdio: 'inherit' });
  const written = counts(PROFILE);
  if (!written.some((name) => name.endsWith('-quickjs.gcda')))
    throw new Error(`no counts of the engine: ${written}`);
}

/** Builds the addon, the worker and Python's module. The addon must pass the training. */
function build(flags) {
  run('cargo', ['build', ...addon()], flags);
  place('release', HOME);
  execFileSync(process.execPath, [TRAINING], { cwd: ROOT, stdio: 'inherit' });
  run(process.execPath, [join('crates', 'worker', 'build.mjs'), '--release', ...APART], flags);
  run(join('.venv', 'bin', 'maturin'), ['develop', '--release', '--quiet', ...APART], flags);
}

function addon() {
  return ['--release', '--locked', '--package', 'isolane-node', ...APART];
}

/** Runs a build command with flags for C code. */
function run(command, args, flags) {
  const quoted = flags.map((flag) => `'${flag}'`);
  const CFLAGS = [process.env.CFLAGS, ...quoted].filter(Boolean).join(' ');
  const env = { ...process.env, CFLAGS, CC_SHELL_ESCAPED_FLAGS: '1' };
  execFileSync(command, args, { cwd: ROOT, env, stdio: 'inherit' });
}
