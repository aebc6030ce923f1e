// The build of a target that is not this machine's.
//
// In: a target; a profile of cargo. Out: the paths of the addon, Python's module and the worker, if the target has one. zig
// compiles the C code and links, and has the C libraries of every target. Rust's standard library is compiled from its source where it is not
// installed for the target. A machine without either source gets an error that says what to install.

import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import process from 'node:process';

import { ROOT } from '../bindings-node/addon.mjs';
import { GLIBC, checkPublished } from './checks.mjs';
import { cFlags, librarySource, rustFlags } from './folders.mjs';
import { PROGRAMS, install, linkingOfWindows } from './linker.mjs';
import { MACOS } from './targets.mjs';

const FOLDER = join(ROOT, 'target', 'cross');
/** The names of Apple's frameworks. zig has those of the C library alone. */
const FRAMEWORKS = join(ROOT, 'packaging', 'macos');
/**
 * Archives without a file, for Windows. Rust asks its linker for a library of GCC, which clang does without; the crate napi
 * asks for Node.js as a library, though it looks each function up in the program that loads the addon.
 */
const EMPTY = { folder: join(FOLDER, 'empty'), files: ['libssp_nonshared.a', 'libnode.a', 'libnode.dll'], text: '!<arch>\n' };
/** Debian's compiler, which has the source of its standard library and that of all that it needs. */
const DEBIAN = '/usr/bin/rustc';

/** Compiles a target. Fails if a file asks for more than the systems of the target have. */
export function crossed(target, profile) {
  const { rustc, hasLibrary } = toolchain(target);
  install();
  const { options, flags, variables } = settings(target);
  // Rust's own way of stripping needs a program for each format. The linker needs none.
  const rustflags = ['-Clink-arg=-s', ...rustFlags(rustc), ...flags];
  const env = {
    ...process.env,
    CFLAGS: cFlags(),
    CC_SHELL_ESCAPED_FLAGS: '1',
    ...variables,
    RUSTC: rustc,
    RUSTC_BOOTSTRAP: '1',
    CARGO_TARGET_DIR: FOLDER,
    CARGO_ENCODED_RUSTFLAGS: rustflags.join('\x1f'),
    [`CARGO_PROFILE_${profile.toUpperCase()}_STRIP`]: 'none',
    [`CARGO_PROFILE_${profile.toUpperCase()}_DEBUG`]: 'false',
    PATH: [PROGRAMS, ...(rustc.includes('/') ? [dirname(rustc)] : []), process.env.PATH].join(delimiter),
  };
  const library = hasLibrary ? [] : ['-Zbuild-std=std,panic_unwind'];
  const crates = ['isolane-node', 'isolane-python', ...(target.worker === undefined ? [] : ['isolane-worker'])];
  const packages = crates.flatMap((name) => ['--package', name]);
  const args = ['zigbuild', '--locked', '--profile', profile, ...library, ...options, ...packages];
  execFileSync('cargo-zigbuild', args, { cwd: ROOT, env, stdio: 'inherit' });
  const out = join(FOLDER, target.rust, profile === 'dev' ? 'debug' : profile);
  const files = { addon: join(out, target.library('isolane_node')), module: join(out, target.library('isolane_python')) };
  if (target.worker !== undefined) files.worker = files.wheelWorker = join(out, target.worker);
  checkPublished(target, Object.values(files));
  return files;
}

/** What a target needs of cargo, of the compiler and of the environment. */
function settings(target) {
  const { rust, format } = target;
  const options = ['--target', rust.endsWith('-linux-gnu') ? `${rust}.${GLIBC}` : rust];
  // An addon has to share the C library with Node.js.
  if (rust.endsWith('-musl')) return { options, flags: ['-Ctarget-feature=-crt-static'], variables: {} };
  if (format === 'mach-o') {
    // zig exports every name that is not hidden, whatever Rust's list of exported names says, and keeps the code behind each.
    const flags = ['-Clink-arg=-Wl,-x', `-Lframework=${FRAMEWORKS}`, '-Zdefault-visibility=hidden'];
    return { options, flags, variables: { MACOSX_DEPLOYMENT_TARGET: MACOS, [`CFLAGS_${rust.replaceAll('-', '_')}`]: '-fvisibility=hidden' } };
  }
  if (format === 'pe') {
    mkdirSync(EMPTY.folder, { recursive: true });
    for (const file of EMPTY.files) writeFileSync(join(EMPTY.folder, file), EMPTY.text);
    return { options, flags: [`-Lnative=${EMPTY.folder}`], variables: { LIBNODE_PATH: EMPTY.folder, ...linkingOfWindows(target) } };
  }
  return { options, flags: [], variables: {} };
}

/** A compiler that has the standard library for a target, or its source. */
function toolchain(target) {
  const compilers = [process.env.RUSTC ?? 'rustc', DEBIAN].filter(runs);
  const ready = compilers.find((rustc) => existsSync(print(rustc, 'target-libdir', '--target', target.rust)));
  if (ready !== undefined) return { rustc: ready, hasLibrary: true };
  const able = compilers.find((rustc) => existsSync(librarySource(rustc)));
  if (able !== undefined) return { rustc: able, hasLibrary: false };
  throw new Error(`${target.name} is not this machine's target, and there is no standard library of Rust for it, nor the source of one.
Debian:       apt-get install --no-install-recommends rustc-web cargo-web rust-web-src python3-venv
with rustup:  rustup target add ${target.rust}`);
}

function print(rustc, ...what) {
  return execFileSync(rustc, ['--print', ...what], { cwd: ROOT, encoding: 'utf8' }).trim();
}

function runs(rustc) {
  try {
    execFileSync(rustc, ['--version'], { cwd: ROOT, stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
