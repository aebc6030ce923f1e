// Flags of gcc for profile-guided optimization.
//
// In: the folder of the counts. Out: flags for the build that counts branches, and for the build that uses the counts.

import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import process from 'node:process';

/** The C compiler that cargo uses: a command, then its first arguments. */
export const compiler = () => (process.env.CC ?? 'cc').split(' ');

/** Runs the compiler on a source; returns its output. */
export function compile(flags, input = '') {
  const [command, ...first] = compiler();
  return execFileSync(command, [...first, ...flags], {
    input,
    encoding: 'utf8',
    stdio: ['pipe', 'pipe', 'pipe'],
  });
}

/** Whether the compiler is gcc. clang defines `__GNUC__` too, but counts in another way. */
export function isGcc() {
  const macros = compile(['-dM', '-E', '-x', 'c', '-']);
  return macros.includes('#define __GNUC__ ') && !macros.includes('#define __clang__ ');
}

// No other library replaces a function of the engine, so gcc may inline one into another.
const INLINED = '-fno-semantic-interposition';

/** Flags for the build that counts. Several threads run the engine, so the counters are atomic. */
export const counting = (folder) => [INLINED, `-fprofile-generate=${folder}`, '-fprofile-update=atomic'];

/** The library that writes the counts to files when a process ends. */
export const counter = () => compile(['-print-file-name=libgcov.a']).trim();

/**
 * Flags for the build that uses the counts. gcc compiles code that training never reached as without a profile. A
 * source without counts is an error, so the build fails if a source was not trained or if its object is another one.
 */
export const counted = (folder) => [
  INLINED,
  `-fprofile-use=${folder}`,
  '-fprofile-partial-training',
  '-Werror=missing-profile',
];

/** The files of counts in a folder. */
export function counts(folder) {
  return readdirSync(folder, { recursive: true }).filter((name) => name.endsWith('.gcda'));
}
