// The compiled half of the package on this platform.
//
// In: the platform of this process. Out: the addon and its folder, where the executable of worker processes is too. The
// addon comes from the package of the platform, or, in a clone, from a build beside this folder. Nothing is downloaded,
// compiled or spawned here. If there is no addon, the error says which package is missing, why that happens, and what to
// do.

import { createRequire } from 'node:module';
import { dirname } from 'node:path';

const load = createRequire(__filename);

/** Loads the addon. Throws an error that says how to get it. */
export function loadAddon(): { addon: unknown; folder: string } {
  const names = namesHere();
  const failures: Failure[] = [];
  for (const name of names) {
    for (const place of [`isolane-${name}`, `../../isolane.${name}.node`]) {
      try {
        return { addon: load(place), folder: dirname(load.resolve(place)) };
      } catch (error) {
        failures.push({ place, error });
      }
    }
  }
  throw new Error(explain(names, failures), { cause: new AggregateError(failures.map(({ error }) => error), 'each place that was tried') });
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

/** Whether the C library of this process is glibc, if its report tells that. Takes some milliseconds, once. */
function hasGlibc(): boolean | undefined {
  const report = process.report as (NodeJS.ProcessReport & { excludeNetwork?: boolean }) | undefined;
  if (report === undefined) return undefined;
  // With it the report asks for the names of all peers of open sockets.
  const { excludeNetwork } = report;
  try {
    report.excludeNetwork = true;
    const { header } = report.getReport() as { header?: { glibcVersionRuntime?: string } };
    return header === undefined ? undefined : header.glibcVersionRuntime !== undefined;
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
    return `isolane cannot load its compiled part, ${broken.place}: ${text(broken.error)}. The file is there, and it is not for this system, or it is damaged. docs/install.md lists the systems; install again, without a copied node_modules.`;
  }
  const published = packages();
  const wanted = names.map((name) => `isolane-${name}`).filter((name) => published === undefined || published.includes(name));
  if (published !== undefined && wanted.length === 0) {
    return `isolane has no compiled part for ${names.join(' or ')}: unsupported platform. There are the packages ${published.join(', ')}. In a clone of the project, npm run build compiles it.`;
  }
  const others = (published ?? []).filter((name) => !wanted.includes(name) && isInstalled(name));
  const there = others.length === 0 ? '' : ` Installed is ${others.join(' and ')}, for another platform.`;
  return (
    `isolane has no compiled part for ${names.join(' or ')}: the package ${wanted.join(' or ')} is not installed.${there} Usual causes:\n` +
    `- a lock file or a node_modules that was made on another platform: delete both, and run npm install here;\n` +
    `- an install without optional dependencies (--omit=optional, --no-optional): install with them (npm install --include=optional);\n` +
    `- a bundler that put isolane into its bundle: mark isolane as external, and keep node_modules.\n` +
    `In a clone of the project, npm run build compiles it.`
  );
}

/** The native packages that were published with this one. `undefined` in a clone and in a bundle. */
function packages(): string[] | undefined {
  try {
    const { name, optionalDependencies } = load('../../../package.json') as { name: string; optionalDependencies?: object };
    return name === 'isolane' && optionalDependencies !== undefined ? Object.keys(optionalDependencies) : undefined;
  } catch {
    // A bundle may have no such file. The message does without the names.
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
