// What compiled files may ask of a system.
//
// In: a target; a compiled file. Out: the versions of glibc that the file asks for. It fails if the file asks for more
// than every system of the target has, and if it has a path of the machine that compiled it.

import { readFileSync } from 'node:fs';

import { needs as ofElf } from './elf.mjs';
import { FOLDERS } from './folders.mjs';
import { needs as ofMacho } from './macho.mjs';
import { needs as ofPe } from './pe.mjs';
import { MACOS, newest } from './targets.mjs';

/** The oldest glibc that Rust's own library supports. */
export const GLIBC = '2.17';

/** Libraries that every system has, by the format of its files. PEP 600 and PEP 656 list those of Linux. */
const SYSTEM = {
  elf: /^(lib(c|m|dl|rt|pthread|util)\.so\.\d+|libgcc_s\.so\.1|ld-linux-[\w-]+\.so\.\d+|libc\.musl-\w+\.so\.1|libc\.so)$/,
  // Those of Windows 10, its C library among them, and the stable interface of a Python.
  pe: /^((advapi32|bcrypt|bcryptprimitives|crypt32|gdi32|iphlpapi|kernel32|ncrypt|ntdll|ole32|oleaut32|psapi|secur32|shell32|user32|userenv|ws2_32|python3)\.dll|api-ms-win-[\w-]+\.dll)$/i,
  'mach-o': /^\/usr\/lib\/lib(System\.B|iconv\.2|charset\.1|objc\.A)\.dylib$|^\/System\/Library\/Frameworks\//,
};
/** The name by which a program enters a library for Windows or macOS. Rust's list has no other. */
const ENTRY = /^_?(napi_register_module_v1|PyInit__isolane)$/;
/** More names of a library for macOS: those that zig adds, and those of assembler code, which knows no hidden names. */
const UNHIDDEN = /^(__mh_dylib_header|___dso_handle|___is(OS|Platform)VersionAtLeast|_rust_psm_\w+)$/;
/** Symbols that a Node.js or a Python has for the files that it loads. */
const OF_THE_LOADER = /^_(napi_|node_api_|_?Py)/;

export function systemNeeds(target, path) {
  const found = { elf: ofElf, 'mach-o': ofMacho, pe: ofPe }[target.format](path);
  const foreign = found.libraries.filter((name) => !SYSTEM[target.format].test(name));
  if (foreign.length > 0) throw new Error(`${path} needs ${foreign.join(', ')}, which a system may lack`);
  if (target.format === 'mach-o') checkMacos(path, target, found);
  if (target.format !== 'elf' && found.exported !== undefined) checkEntry(path, found.exported.filter((name) => !UNHIDDEN.test(name)));
  return found.glibc ?? [];
}

function checkMacos(path, target, { macos, isSigned, paths, ofLoader }) {
  if (macos !== MACOS) throw new Error(`${path} asks for macOS ${macos}; a package asks for ${MACOS}`);
  if (!isSigned && target.fits.cpu.includes('arm64')) throw new Error(`${path} has no signature, and macOS on arm64 loads no file without one`);
  const unknown = ofLoader.filter((name) => !OF_THE_LOADER.test(name));
  if (unknown.length > 0) throw new Error(`${path} has symbols of no library: ${unknown.join(', ')}`);
  const absolute = paths.filter((name) => name.startsWith('/'));
  if (absolute.length > 0) throw new Error(`${path} is found at ${absolute.join(', ')}, which a user does not have`);
}

/** A library with more names than its entry also has the code behind them, which nobody calls. */
function checkEntry(path, exported) {
  if (exported.length !== 1 || !ENTRY.test(exported[0])) throw new Error(`${path} exports ${exported.join(', ') || 'nothing'} in place of its entry`);
}

/**
 * Fails if a file is not fit to be published: it asks for more than the systems of the target have, it has a folder of this
 * machine, or it has the C library in it. The licence of glibc, the LGPL, asks for more than its text then.
 */
export function checkPublished(target, paths) {
  for (const path of paths) {
    const version = newest(systemNeeds(target, path)).join('.');
    if (version !== GLIBC) throw new Error(`${path} asks for glibc ${version}; a package asks for ${GLIBC} at most`);
    if (target.rust.endsWith('-linux-gnu') && !ofElf(path).libraries.includes('libc.so.6')) throw new Error(`${path} has glibc in it, and a package may only ask for it`);
  }
  checkPaths(paths);
}

/** Fails if a file has a folder of this machine. */
export function checkPaths(paths) {
  for (const path of paths) {
    const bytes = readFileSync(path);
    for (const folder of FOLDERS) {
      const at = bytes.indexOf(folder);
      if (at !== -1) throw new Error(`${path} has a path of this machine: ${bytes.toString('latin1', at, at + 120)}`);
    }
  }
}
