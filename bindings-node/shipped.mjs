// Builds what is published, the addon, the worker and the wheel, with the engine's C compiled by what it does
// most.
//
// Out: the addon and the worker where `npm run build` has them, and the wheel in `target/wheels`. The engine
// is built to count, is trained (`training/run.mjs`), and is built again by its counts, which stay in
// `target/profile`. The wheel's module takes the objects that the addon took.

import { execFileSync } from 'node:child_process';
import { copyFileSync, cpSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';

import { HOME, ROOT, place, targetFolder } from './addon.mjs';
import { compiler, counted, counter, counting, counts, isGcc } from './profile.mjs';

const ROUNDS = 20;
const TRAINING = join('bindings-node', 'training', 'run.mjs');
const PROFILE = join(targetFolder(), 'profile');
// Another setting, of no effect, for what is compiled from C: cargo keeps what `build.mjs` takes beside it.
const APART = ['rquickjs-sys', 'psm'].flatMap((name) => [
  '--config',
  `profile.release.package.${name}.codegen-units=1`,
]);

const gcc = isGcc();
if (gcc) train();
else console.warn(`NO PROFILE: ${compiler().join(' ')} is not gcc. This is what \`npm run build\` makes.`);
build(gcc ? counted(PROFILE) : []);

/** Counts, in a package of its own: the addon that is in use stays as it is. */
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

/** All of it, and the addon must come to the results of the training itself. */
function build(flags) {
  run('cargo', ['build', ...addon()], flags);
  place('release', HOME);
  execFileSync(process.execPath, [TRAINING], { cwd: ROOT, stdio: 'inherit' });
  run(process.execPath, [join('crates', 'worker', 'build.mjs'), '--release', ...APART], flags);
  run(join('.venv', 'bin', 'maturin'), ['build', '--release', '--quiet', ...APART], flags);
}

function addon() {
  return ['--release', '--locked', '--package', 'isolane-node', ...APART];
}

/** Runs what compiles, with flags for what is compiled from C. */
function run(command, args, flags) {
  const quoted = flags.map((flag) => `'${flag}'`);
  const CFLAGS = [process.env.CFLAGS, ...quoted].filter(Boolean).join(' ');
  const env = { ...process.env, CFLAGS, CC_SHELL_ESCAPED_FLAGS: '1' };
  execFileSync(command, args, { cwd: ROOT, env, stdio: 'inherit' });
}
