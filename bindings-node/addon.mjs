// The addon of this machine: what cargo calls it, and the name under which `lib/native.ts` looks for it,
// which is that of the platform packages.

import { execFileSync } from 'node:child_process';
import { copyFileSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('..', import.meta.url));
export const HOME = join(ROOT, 'bindings-node');

/** The executable of worker processes, which stands beside the addon. */
export const WORKER_FILE = process.platform === 'win32' ? 'isolane-worker.exe' : 'isolane-worker';

const library =
  { darwin: 'libisolane_node.dylib', win32: 'isolane_node.dll' }[process.platform] ?? 'libisolane_node.so';
const abi =
  { darwin: '', win32: '-msvc' }[process.platform] ??
  (process.report.getReport().header.glibcVersionRuntime ? '-gnu' : '-musl');

/** Where cargo puts what it builds. */
export function targetFolder() {
  const metadata = execFileSync('cargo', ['metadata', '--no-deps', '--format-version=1', '--locked'], {
    cwd: ROOT,
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
  });
  return JSON.parse(metadata).target_directory;
}

/** Puts the addon that was built last in a profile (`release`, `debug`) into a folder. */
export function place(profile, folder) {
  const addon = join(folder, `isolane.${process.platform}-${process.arch}${abi}.node`);
  // Moved into place: a process that has the old one loaded keeps it.
  copyFileSync(join(targetFolder(), profile, library), `${addon}.new`);
  renameSync(`${addon}.new`, addon);
}
