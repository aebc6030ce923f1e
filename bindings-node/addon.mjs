// The addon of this machine: cargo's file name for it, and the name that `lib/addon/native.ts` loads. The platform packages
// use the latter, too.

import { execFileSync } from 'node:child_process';
import { copyFileSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('..', import.meta.url));
export const HOME = join(ROOT, 'bindings-node');

/** The executable of worker processes; it is in the addon's folder. */
export const WORKER_FILE = process.platform === 'win32' ? 'isolane-worker.exe' : 'isolane-worker';

const library =
  { darwin: 'libisolane_node.dylib', win32: 'isolane_node.dll' }[process.platform] ?? 'libisolane_node.so';
const abi =
  process.platform !== 'linux' ? '' : process.report.getReport().header.glibcVersionRuntime ? '-gnu' : '-musl';

/** Cargo's target folder. */
export function targetFolder() {
  const metadata = execFileSync('cargo', ['metadata', '--no-deps', '--format-version=1', '--locked'], {
    cwd: ROOT,
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
  });
  return JSON.parse(metadata).target_directory;
}

/** Copies the latest addon of a profile (`release`, `debug`) into a folder. */
export function place(profile, folder) {
  const addon = join(folder, `isolane.${process.platform}-${process.arch}${abi}.node`);
  // The rename keeps the old file for processes that have loaded it.
  copyFileSync(join(targetFolder(), profile, library), `${addon}.new`);
  renameSync(`${addon}.new`, addon);
}
