// The linker of packages for glibc.
//
// A linker takes the newest version of each symbol that its machine's C library has, and an older system refuses the file.
// zig has the symbols of every version of glibc, so the files ask for none that is newer than 2.17, whichever machine makes
// them. Only linking is zig's work: the compilers stay.
//
// In: a target. Out: variables of the environment for cargo. The linker is installed below `target` by pip.

import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { ROOT } from '../bindings-node/addon.mjs';
import { GLIBC } from './checks.mjs';

const HOME = join(ROOT, 'target', 'linker');
/** The folder of zig and `cargo-zigbuild`, once they are installed. */
export const PROGRAMS = join(HOME, 'bin');
const REQUIREMENTS = join(ROOT, 'packaging', 'requirements.txt');

/** The variables with which cargo links the libraries of a target. None for a target without glibc. */
export function linking({ rust }) {
  const [machine, , , abi] = rust.split('-');
  if (abi !== 'gnu') return {};
  install();
  const linker = join(HOME, 'zigcc');
  writeFileSync(linker, `#!/bin/sh
home=$(dirname "$0")
PATH=$home/bin:$PATH exec cargo-zigbuild zig cc -- -target ${machine}-linux-gnu.${GLIBC} "$@"
`);
  chmodSync(linker, 0o755);
  return { [`CARGO_TARGET_${rust.toUpperCase().replaceAll('-', '_')}_LINKER`]: linker };
}

/** Installs zig and `cargo-zigbuild` below `target`. */
export function install() {
  const python = join(PROGRAMS, 'python');
  if (!existsSync(python)) run('python3', ['-m', 'venv', HOME]);
  run(python, ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--requirement', REQUIREMENTS]);
}

function run(command, args) {
  execFileSync(command, args, { stdio: 'inherit' });
}
