// The compiled half of the package on this platform.
//
// In: the platform of this process. Out: the addon and its folder, where the executable of worker processes is too. The
// addon comes from the package of the platform, which must have the version of this one; or from the folder of that package
// beside this one, where no node_modules is in the path; or, in a clone, from a build beside this folder. Nothing is
// downloaded, compiled or spawned here. If there is no addon, or none that this process can load, the error says which package
// is missing or why it is not loaded, and what to do.

import './node-version.js';

import { accessSync, constants, existsSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, sep } from 'node:path';

const load = createRequire(__filename);

/**
 * The folders of the native packages beside this one. Each path is written out: programs that copy the files which an
 * application needs, such as Next.js, read these calls to find them, the executable of workers, too.
 */
const BESIDE: Readonly<Record<string, string>> = {
  'darwin-arm64': join(__dirname, '../../../../isolane-darwin-arm64'),
  'darwin-x64': join(__dirname, '../../../../isolane-darwin-x64'),
  'linux-arm64-gnu': join(__dirname, '../../../../isolane-linux-arm64-gnu'),
  'linux-arm64-musl': join(__dirname, '../../../../isolane-linux-arm64-musl'),
  'linux-x64-gnu': join(__dirname, '../../../../isolane-linux-x64-gnu'),
  'linux-x64-musl': join(__dirname, '../../../../isolane-linux-x64-musl'),
  'win32-x64': join(__dirname, '../../../../isolane-win32-x64'),
};

/** Loads the addon. Throws an error that says how to get it. */
export function loadAddon(): { addon: unknown; folder: string } {
  const names = namesHere();
  const failures: Failure[] = [];
  for (const name of names) {
    const installed = [`isolane-${name}`, BESIDE[name]].filter((place) => place !== undefined);
    for (const place of [...installed, `../../isolane.${name}.node`]) {
      checkPackage(`isolane-${name}`, place);
      try {
        return { addon: load(place), folder: dirname(load.resolve(place)) };
      } catch (error) {
        failures.push({ place, error });
      }
    }
  }
  throw new Error(explain(names, failures), { cause: new AggregateError(failures.map(({ error }) => error), 'each place that was tried') });
}

/**
 * Throws if the native package is of another version than this one, or its file was cut off: to load that would end the
 * process. Without a manifest of both there is no telling.
 */
function checkPackage(native: string, place: string): void {
  const [own, theirs] = [ownManifest(), manifest(`${place}/package.json`)];
  if (own === undefined || theirs === undefined) return;
  if (own.version === theirs.version) return checkSize(native, place, theirs.bytes ?? 0);
  throw new Error(
    `isolane ${own.version} cannot use its compiled part, ${native} ${theirs.version}: both must have one version. Delete node_modules, and install again; if a lock file or an override names ${native}, let it name ${own.version}.`,
  );
}

function checkSize(native: string, place: string, expected: number): void {
  const bytes = sizeOf(place);
  if (bytes === undefined || bytes >= expected) return;
  throw new Error(
    `isolane cannot load its compiled part, ${native}: the file has ${bytes} bytes of ${expected}. A copy was cut off, or a disk was full. Delete node_modules, and install again.`,
  );
}

/** The size of the file that a place names, if it is there. */
function sizeOf(place: string): number | undefined {
  try {
    return statSync(load.resolve(place)).size;
  } catch {
    return undefined;
  }
}

interface Failure {
  readonly place: string;
  readonly error: unknown;
}

/** The name of this platform. Both names of Linux, if nothing tells its C library. */
function namesHere(): string[] {
  const base = `${process.platform}-${process.arch}`;
  if (process.platform !== 'linux') return [base];
  const isGlibc = hasGlibc();
  return ['gnu', 'musl'].filter((abi) => isGlibc === undefined || (abi === 'gnu') === isGlibc).map((abi) => `${base}-${abi}`);
}

/** Whether the C library of this process is glibc, if its report tells that. */
function hasGlibc(): boolean | undefined {
  const header = reportHeader();
  return header && header.glibcVersionRuntime !== undefined;
}

function glibcVersion(): string | undefined {
  return reportHeader()?.glibcVersionRuntime;
}

/** The head of this process's report, if it has one. Takes some milliseconds. */
function reportHeader(): { glibcVersionRuntime?: string } | undefined {
  const report = process.report as (NodeJS.ProcessReport & { excludeNetwork?: boolean }) | undefined;
  if (report === undefined) return undefined;
  // With it the report asks for the names of all peers of open sockets.
  const { excludeNetwork } = report;
  try {
    report.excludeNetwork = true;
    return (report.getReport() as { header?: { glibcVersionRuntime?: string } }).header;
  } catch {
    // A runtime with a report that it cannot write. Both packages are tried.
    return undefined;
  } finally {
    if (excludeNetwork !== undefined) report.excludeNetwork = excludeNetwork;
  }
}

function explain(names: readonly string[], failures: readonly Failure[]): string {
  const broken = failures.find(({ place, error }) => !isAbsent(place, error));
  if (broken !== undefined) {
    return `isolane cannot load its compiled part, ${broken.place}: ${text(broken.error)}. ${reason(broken)}`;
  }
  const published = packages();
  const wanted = names.map((name) => `isolane-${name}`).filter((name) => published === undefined || published.includes(name));
  if (published !== undefined && wanted.length === 0) {
    return `isolane has no compiled part for ${names.join(' or ')}: unsupported platform. There are the packages ${published.join(', ')}.`;
  }
  const others = (published ?? []).filter((name) => !wanted.includes(name) && isInstalled(name));
  const there = others.length === 0 ? '' : ` Installed is ${others.join(' and ')}, for another platform.`;
  return (
    `isolane has no compiled part for ${names.join(' or ')}: the package ${wanted.join(' or ')} is not installed.${there} Usual causes:\n` +
    `- a lock file or a node_modules that was made on another platform: delete both, and run npm install here;\n` +
    `- an install without optional dependencies (--omit=optional, --no-optional): install with them (npm install --include=optional);\n` +
    `- a bundler that put isolane into its bundle, or a copy of single files: mark isolane as external, and deploy node_modules.` +
    (existsSync(join(__dirname, '../../Cargo.toml')) ? `\nIn a clone of the project, npm run build compiles it.` : '')
  );
}

/** Why a file that is there is not loaded, and a remedy. */
function reason({ place, error }: Failure): string {
  const { code } = error as { code?: unknown };
  if (code === 'ERR_DLOPEN_DISABLED') {
    return 'This process may load no addon: it was started with --no-addons, or with --permission and without --allow-addons. Start it with addons.';
  }
  const wanted = /\bGLIBC_([\d.]+)/.exec(text(error))?.[1];
  if (wanted !== undefined) {
    return `The file needs glibc ${wanted}, and this system has ${glibcVersion() ?? 'an older one'}. The files of a published package need 2.17; one that was built on a newer system, for its own tests, needs more. docs/install.md lists the systems.`;
  }
  if (code === 'MODULE_NOT_FOUND') {
    return 'The package is there, and this file of it is not. Delete node_modules, and install again.';
  }
  if ('Deno' in globalThis) {
    return 'Deno loads an addon with --allow-ffi, --allow-read, --allow-env and --allow-sys, or with -A.';
  }
  if (!isReadable(place)) {
    return 'The user of this process may not read the file. Install isolane as that user, or permit it to read node_modules.';
  }
  const folder = noexecMount(place);
  if (folder !== undefined) {
    return `The file system at ${folder} is mounted with noexec, so nothing there can be loaded. Install isolane in another folder, or mount this one without noexec.`;
  }
  return 'The file is there, and it is not for this system, or it is damaged. docs/install.md lists the systems; install again, without a copied node_modules.';
}

/** Whether this process may read the file. */
function isReadable(place: string): boolean {
  try {
    accessSync(load.resolve(place), constants.R_OK);
    return true;
  } catch {
    return false;
  }
}

/** Where the file system of a place is mounted, if that is with `noexec`. Linux tells it. */
function noexecMount(place: string): string | undefined {
  try {
    const path = realpathSync(load.resolve(place));
    // The last one of the longest is the one that lies on top.
    const mounts = readFileSync('/proc/self/mountinfo', 'utf8').trim().split('\n').map((line) => line.split(' '));
    let on: { at: string; options: string[] } | undefined;
    for (const [, , , , escaped = '', options = ''] of mounts) {
      const at = escaped.replace(/\\(\d{3})/g, (_, digits: string) => String.fromCharCode(parseInt(digits, 8)));
      const isAbove = path.startsWith(at.endsWith(sep) ? at : `${at}${sep}`);
      if (isAbove && at.length >= (on?.at.length ?? 0)) on = { at, options: options.split(',') };
    }
    return on?.options.includes('noexec') ? on.at : undefined;
  } catch {
    // A system without this file, or one that does not let this process read it.
    return undefined;
  }
}

interface Manifest {
  readonly name: string;
  readonly version: string;
  /** The size of the addon of a native package. */
  readonly bytes?: number;
  readonly optionalDependencies?: object;
}

/** The native packages that were published with this one. `undefined` in a clone and in a bundle. */
function packages(): string[] | undefined {
  const published = ownManifest()?.optionalDependencies;
  return published && Object.keys(published);
}

/** The manifest of this package. A bundle has none, or another one at its place. */
function ownManifest(): Manifest | undefined {
  const found = manifest('../../../package.json');
  return found?.name === 'isolane' ? found : undefined;
}

function manifest(place: string): Manifest | undefined {
  try {
    return load(place) as Manifest;
  } catch {
    // It is not there. The callers do without.
    return undefined;
  }
}

/** Whether an error says that a place itself does not exist. */
function isAbsent(place: string, error: unknown): boolean {
  const { code, message } = error as { code?: unknown; message?: unknown };
  return code === 'MODULE_NOT_FOUND' && String(message).includes(`'${place}'`);
}

function isInstalled(name: string): boolean {
  try {
    load.resolve(name);
    return true;
  } catch {
    return false;
  }
}

/** The first line of an error's message, without a full stop. */
function text(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return message.split(/\r?\n/)[0]!.replace(/\.$/, '');
}
