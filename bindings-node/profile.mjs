// What makes gcc count how often each branch is taken, and then compile by those counts.
//
// In: the folder of the counts. Out: flags, for the build that counts and for the one by its counts.

import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import process from 'node:process';

/** The C compiler that cargo takes: a command, and what stands before its arguments. */
export const compiler = () => (process.env.CC ?? 'cc').split(' ');

/** Runs it, with a source; gives what it prints. */
export function compile(flags, input = '') {
  const [command, ...first] = compiler();
  return execFileSync(command, [...first, ...flags], {
    input,
    encoding: 'utf8',
    stdio: ['pipe', 'pipe', 'pipe'],
  });
}

/** Whether it is gcc: clang, which says that it is, too, counts in another way. */
export function isGcc() {
  const macros = compile(['-dM', '-E', '-x', 'c', '-']);
  return macros.includes('#define __GNUC__ ') && !macros.includes('#define __clang__ ');
}

// Nobody replaces a function of the engine when it is loaded, so they may be inlined into each other.
const INLINED = '-fno-semantic-interposition';

/** Threads run the engine side by side, so a count is one step that no other thread can undo. */
export const counting = (folder) => [INLINED, `-fprofile-generate=${folder}`, '-fprofile-update=atomic'];

/** The library that writes the counts down when a process ends. */
export const counter = () => compile(['-print-file-name=libgcov.a']).trim();

/**
 * What training never came to is compiled as ever. A source without counts is an error: so nothing passes for
 * trained that was not, and a module that takes other objects than those that were counted cannot be built.
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
