// Builds the addon for this machine and puts it where `lib/addon/native.ts` looks for it.
//
// In: `--release` or nothing. Out: `isolane.<platform>-<arch>-<abi>.node` beside this file. The build needs Rust and a
// C compiler.

import { execFileSync } from 'node:child_process';
import process from 'node:process';

import { HOME, ROOT, place } from './addon.mjs';

const release = process.argv.includes('--release');

const flags = ['build', '--locked', '--package', 'isolane-node', ...(release ? ['--release'] : [])];
execFileSync('cargo', flags, { cwd: ROOT, stdio: 'inherit' });
place(release ? 'release' : 'debug', HOME);
