// The linkers of packages for glibc and for Windows.
//
// A linker takes the newest version of each symbol that its machine's C library has, and an older system refuses the file.
// zig has the symbols of every version of glibc, so the files ask for none that is newer than 2.17, whichever machine makes
// them. Only linking is zig's work: the compilers stay.
//
// In: a target. Out: variables of the environment for cargo. The linkers are installed below `target` by pip.

import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { ROOT } from '../bindings-node/addon.mjs';
import { GLIBC } from './checks.mjs';

const HOME = join(ROOT, 'target', 'linker');
/** The folder of zig and `cargo-zigbuild`, once they are installed. */
export const PROGRAMS = join(HOME, 'bin');
const REQUIREMENTS = join(ROOT, 'packaging', 'requirements.txt');

/** The first lines of a linker: zig is beside it. */
const HERE = `home=$(dirname "$0")
PATH=$home/bin:$PATH
`;

/** The variables with which cargo links the libraries of a target. None for a target without glibc. */
export function linking({ rust }) {
  const [machine, , , abi] = rust.split('-');
  if (abi !== 'gnu') return {};
  install();
  const linker = program('zigcc', `${HERE}exec cargo-zigbuild zig cc -- -target ${machine}-linux-gnu.${GLIBC} "$@"`);
  return variable(rust, linker);
}

/**
 * The variables with which cargo links the libraries of Windows. Rust hands the list of exported names (`.def`) to the C
 * compiler as an argument for the linker, directly or in a file of arguments. zig knows such a list only as an input, and
 * exports every symbol if it has none, which are more than a library can have.
 */
export function linkingOfWindows({ rust }) {
  install();
  const [machine] = rust.split('-');
  const linker = program('zigcc-windows', `${HERE}for argument do
  shift
  case $argument in
    -Wl,*.def) argument=\${argument#-Wl,} ;;
    @*) sed -i -E 's/^("?)-Wl,(.*[.]def"?)$/\\1\\2/' "\${argument#@}" ;;
  esac
  set -- "$@" "$argument"
done
exec cargo-zigbuild zig cc -- -target ${machine}-windows-gnu "$@"`);
  return variable(rust, linker);
}

/** Writes a program for the shell. Returns its path. */
function program(name, text) {
  const path = join(HOME, name);
  writeFileSync(path, `#!/bin/sh\n${text}\n`);
  chmodSync(path, 0o755);
  return path;
}

function variable(rust, linker) {
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
