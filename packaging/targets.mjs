// The targets of the packages: their names in Rust, in npm and on PyPI.
//
// Out: a table of the targets that `npm run package` can compile, and the target of this machine. docs/install.md says which
// of their packages have been built and run. The main package of npm lists the targets that were made with it, and the
// loader reads them there.

import process from 'node:process';

/**
 * @typedef {object} Target
 * @property {string} name the ending of its npm package: `isolane-<name>`
 * @property {string} rust its name in Rust
 * @property {'elf' | 'mach-o' | 'pe'} format the form of its files
 * @property {{ os: string[], cpu: string[], libc?: string[] }} fits the fields of the manifest by which npm chooses
 * @property {(crate: string) => string} library cargo's file name for a library
 * @property {string} module the file name of Python's module
 * @property {string | undefined} worker the file name of the worker, if the packages have one
 * @property {(versions: string[]) => string} wheel the platform of the wheel, from the versions of glibc that the files
 *   ask for
 */

/** The oldest macOS that the files load on: the first one for arm64. */
export const MACOS = '11.0';

/** @type {Target} */
const WINDOWS_X64 = {
  name: 'win32-x64',
  rust: 'x86_64-pc-windows-gnu',
  format: 'pe',
  fits: { os: ['win32'], cpu: ['x64'] },
  library: (crate) => `${crate}.dll`,
  module: '_isolane.pyd',
  worker: undefined,
  wheel: () => 'win_amd64',
};

/** @type {Target[]} */
export const TARGETS = [
  linux('x64', 'gnu', 'x86_64'),
  linux('x64', 'musl', 'x86_64'),
  linux('arm64', 'gnu', 'aarch64'),
  linux('arm64', 'musl', 'aarch64'),
  darwin('arm64', 'aarch64', 'arm64'),
  darwin('x64', 'x86_64', 'x86_64'),
  WINDOWS_X64,
];

function linux(cpu, abi, machine) {
  const libc = abi === 'musl' ? 'musl' : 'glibc';
  return {
    name: `linux-${cpu}-${abi}`,
    rust: `${machine}-unknown-linux-${abi}`,
    format: 'elf',
    fits: { os: ['linux'], cpu: [cpu], libc: [libc] },
    library: (crate) => `lib${crate}.so`,
    module: '_isolane.abi3.so',
    worker: 'isolane-worker',
    // musl has no versions of symbols. The modules are linked with the 1.2 series.
    wheel: abi === 'musl' ? () => `musllinux_1_2_${machine}` : (versions) => `manylinux_${newest(versions).join('_')}_${machine}`,
  };
}

function darwin(cpu, machine, tag) {
  return {
    name: `darwin-${cpu}`,
    rust: `${machine}-apple-darwin`,
    format: 'mach-o',
    fits: { os: ['darwin'], cpu: [cpu] },
    library: (crate) => `lib${crate}.dylib`,
    module: '_isolane.abi3.so',
    worker: 'isolane-worker',
    wheel: () => `macosx_${MACOS.replace('.', '_')}_${tag}`,
  };
}

/** The newest version of glibc that a file asks for; 2.17 at the least, which is the oldest that Rust supports. */
export function newest(versions) {
  const pairs = versions.map((version) => version.split('.').map(Number)).concat([[2, 17]]);
  return pairs.sort(([a, b], [c, d]) => c - a || d - b)[0];
}

/** The target of this machine, without which nothing can be taken from its builds. */
export function host() {
  const abi = process.platform !== 'linux' ? '' : process.report.getReport().header.glibcVersionRuntime ? '-gnu' : '-musl';
  return find(`${process.platform}-${process.arch}${abi}`);
}

/** A target by its name, with or without the system: `linux-x64-gnu` or `x64-gnu`. */
export function find(name) {
  const target = TARGETS.find((one) => one.name === name || one.name === `linux-${name}`);
  if (target === undefined) throw new Error(`no packages are made for ${name}; the targets are ${TARGETS.map((one) => one.name).join(', ')}`);
  return target;
}
