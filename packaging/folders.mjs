// The folders of this machine, which no published file may name.
//
// In: nothing, or a compiler of Rust. Out: flags with which compilers write other names in place of these folders; the
// folders, by which a file is checked. A name of a source is in a file for the messages of a panic or of an assertion.

import { execFileSync } from 'node:child_process';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import process from 'node:process';

import { ROOT } from '../bindings-node/addon.mjs';

const CLONE = resolve(ROOT);
const CARGO = process.env.CARGO_HOME ?? join(homedir(), '.cargo');
const SOURCES = join(CARGO, 'registry', 'src');

/**
 * The folders. In the home of a user that are the hidden ones, where tools keep their files: `/root/` alone may also be
 * text of a program.
 */
export const FOLDERS = [`${CLONE}/`, `${CARGO}/`, `${homedir()}/.`];

/** Flags for a compiler of Rust. Of several folders that fit the last one counts. */
export function rustFlags(rustc) {
  const pairs = [[CLONE, '.'], [SOURCES, 'crates'], [librarySource(rustc), 'rust']];
  return pairs.map(([from, to]) => `--remap-path-prefix=${from}=${to}`);
}

/** The value of `CFLAGS`, with `CC_SHELL_ESCAPED_FLAGS`, after the one that is there. gcc and clang have the flag. */
export function cFlags() {
  const pairs = [[CLONE, '.'], [SOURCES, 'crates']];
  const flags = pairs.map(([from, to]) => `'-ffile-prefix-map=${from}=${to}'`);
  return [process.env.CFLAGS, ...flags].filter(Boolean).join(' ');
}

/** The source of a compiler's standard library, whether it is there or not. */
export function librarySource(rustc) {
  const sysroot = execFileSync(rustc, ['--print', 'sysroot'], { cwd: ROOT, encoding: 'utf8' }).trim();
  return join(sysroot, 'lib', 'rustlib', 'src', 'rust', 'library');
}
