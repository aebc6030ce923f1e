// Builds the addon for this machine and puts it where `lib/native.ts` looks for it.
//
// In: `--release` or nothing. Out: `isolane.<platform>-<arch>-<abi>.node` beside this file, named as
// the platform packages name theirs. Needs Rust and nothing else.

import { execFileSync } from 'node:child_process';
import { copyFileSync, renameSync } from 'node:fs';
import { dirname, join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const release = process.argv.includes('--release');

const library = { darwin: 'libisolane_node.dylib', win32: 'isolane_node.dll' }[process.platform] ?? 'libisolane_node.so';
const abi = { darwin: '', win32: '-msvc' }[process.platform] ?? (process.report.getReport().header.glibcVersionRuntime ? '-gnu' : '-musl');

const flags = ['build', '--locked', '--package', 'isolane-node', ...(release ? ['--release'] : [])];
execFileSync('cargo', flags, { cwd: join(here, '..'), stdio: 'inherit' });

const metadata = execFileSync('cargo', ['metadata', '--no-deps', '--format-version=1', '--locked'], {
  cwd: here,
  encoding: 'utf8',
  maxBuffer: 64 * 1024 * 1024,
});
const { target_directory: target } = JSON.parse(metadata);
const addon = join(here, `isolane.${process.platform}-${process.arch}${abi}.node`);
// Moved into place: a process that has the old one loaded keeps it.
copyFileSync(join(target, release ? 'release' : 'debug', library), `${addon}.new`);
renameSync(`${addon}.new`, addon);
