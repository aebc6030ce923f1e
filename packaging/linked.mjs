// The software that is linked into the compiled files of a target.
//
// In: a target. Out: each crate with its licence, its source and its checksum, and the C libraries inside of crates with
// their versions; the texts of all licences. Procedural macros, build scripts and tests leave nothing in the files, so they
// are not listed.

import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { ROOT } from '../bindings-node/addon.mjs';

const ROOTS = ['isolane-node', 'isolane-python', 'isolane-worker'];
/**
 * Standard texts by their names in SPDX, for crates whose archives have none, with `<holders>` for the holders of the
 * copyright. The folder `toolchain` has whole sections: what compilers and linkers add to each file.
 */
const TEXTS = join(ROOT, 'packaging', 'licences');
const TOOLCHAIN = join(TEXTS, 'toolchain');
const LICENCE = /^(licen[cs]e|copying|notice|unlicen[cs]e|copyright)/i;

/** Licences that ask for no more than their text. */
const PERMITTED = new Set([
  ...['0BSD', 'Apache-2.0', 'Apache-2.0 WITH LLVM-exception', 'BSD-2-Clause', 'BSD-3-Clause', 'BSL-1.0', 'blessing'],
  ...['CC0-1.0', 'CDLA-Permissive-2.0', 'ISC', 'MIT', 'MIT-0', 'Unicode-3.0', 'Unlicense', 'Zlib'],
]);

/** C libraries, each compiled by a crate: the header that has the version, and its form. */
const IN_C = [
  {
    crate: 'rquickjs-sys',
    name: 'quickjs-ng',
    license: 'MIT',
    header: ['quickjs', 'quickjs.h'],
    version: /QJS_VERSION_MAJOR (\d+)[^]*?QJS_VERSION_MINOR (\d+)[^]*?QJS_VERSION_PATCH (\d+)/,
  },
  {
    crate: 'libsqlite3-sys',
    name: 'sqlite',
    license: 'blessing',
    header: ['sqlite3', 'sqlite3.h'],
    version: /SQLITE_VERSION +"(\d+)\.(\d+)\.(\d+)"/,
  },
];

/**
 * @typedef {object} Part
 * @property {string} name
 * @property {string} version
 * @property {string} license an SPDX expression
 * @property {string} holders those who have the copyright, as far as its manifest tells
 * @property {string} folder its sources
 * @property {boolean} isOwn whether it is a crate of this project
 * @property {string} [checksum] SHA-256 of the crate, from `Cargo.lock`
 * @property {string} [crate] the crate that compiles it, if it is in C
 */

/** @returns {Part[]} by name and version */
export function linked(target) {
  const tree = cargo('tree', ...ROOTS.flatMap((name) => ['--package', name]), '--edges', 'normal,no-proc-macro', '--target', target.rust, '--prefix', 'none', '--format', '{p}');
  const chosen = new Set([...tree.matchAll(/^([\w-]+) v(\S+)/gm)].map(([, name, version]) => `${name} ${version}`));
  const { packages } = JSON.parse(cargo('metadata', '--format-version=1'));
  const sums = checksums();
  const crates = packages
    .filter(({ name, version }) => chosen.delete(`${name} ${version}`))
    .map(({ name, version, license, license_file, manifest_path, source, authors }) => ({
      name,
      version,
      license: license?.replaceAll('/', ' OR ') ?? `see ${license_file}`,
      holders: authors.map((author) => author.replace(/ *<.*>/, '')).join(', ') || `the authors of ${name}`,
      folder: dirname(manifest_path),
      isOwn: source === null,
      checksum: sums.get(`${name} ${version}`),
    }));
  if (crates.length === 0 || chosen.size > 0) throw new Error(`cargo does not describe ${[...chosen].join(', ') || 'any crate'}`);
  return [...crates, ...crates.flatMap(inC)].sort((a, b) => compare(a.name, b.name) || compare(a.version, b.version));
}

function inC(crate) {
  return IN_C.filter((one) => one.crate === crate.name).map(({ name, license, header, version }) => {
    const found = version.exec(readFileSync(join(crate.folder, ...header), 'utf8'));
    if (found === null) throw new Error(`${header.join('/')} of ${crate.name} ${crate.version} has no version`);
    return { name, version: found.slice(1).join('.'), license, holders: `the authors of ${name}`, folder: join(crate.folder, header[0]), isOwn: false, crate: crate.name };
  });
}

/** The texts of all licences, each once with the names of its parts. Fails if a part has none. */
export function licences(parts) {
  const texts = new Map();
  const add = (text, name) => texts.set(text, [...(texts.get(text) ?? []), name]);
  for (const part of parts.filter(({ isOwn }) => !isOwn)) for (const text of textsOf(part)) add(text, title(part));
  const sections = [...texts].map(([text, titles]) => `${[...new Set(titles)].join('\n')}\n\n${text}\n`);
  sections.push(...readdirSync(TOOLCHAIN).sort().map((name) => readFileSync(join(TOOLCHAIN, name), 'utf8')));
  return sections.join(`\n${'-'.repeat(100)}\n\n`);
}

/** The texts of the licences of a part: those beside its sources, or else the standard ones. */
function textsOf(part) {
  const files = readdirSync(part.folder, { withFileTypes: true }).filter((file) => file.isFile() && LICENCE.test(file.name));
  if (files.length > 0) return files.map((file) => readFileSync(join(part.folder, file.name), 'utf8').replaceAll('\r\n', '\n').trim());
  const names = withTexts(part.license);
  if (names === undefined) throw new Error(`${title(part)} has no text of its licence, and packaging/licences has none`);
  return names.map((name) => readFileSync(standard(name), 'utf8').replace('<holders>', part.holders).trim());
}

/** The licences of the first choice of an SPDX expression whose texts are all there. */
function withTexts(expression) {
  const [group, inner] = /\(([^()]*)\)/.exec(expression) ?? [];
  if (group !== undefined) {
    const names = withTexts(inner);
    return names && withTexts(expression.replace(group, names.join(' AND ')));
  }
  const choices = expression.split(' OR ').map((choice) => choice.split(' AND '));
  return choices.find((names) => names.every((name) => existsSync(standard(name))));
}

const standard = (name) => join(TEXTS, `${name}.txt`);

/** Whether an SPDX expression leaves a choice of permitted licences. */
export function isPermitted(expression) {
  const flat = expression.replaceAll(/\(([^()]*)\)/g, (_, inner) => (isPermitted(inner) ? 'MIT' : 'refused'));
  return flat.split(' OR ').some((choice) => choice.split(' AND ').every((one) => PERMITTED.has(one.trim())));
}

const title = ({ name, version, license }) => `${name} ${version} (${license})`;

/** The checksums of `Cargo.lock`. */
function checksums() {
  const lock = readFileSync(join(ROOT, 'Cargo.lock'), 'utf8');
  return new Map([...lock.matchAll(/name = "(.+)"\nversion = "(.+)"\nsource = .+\nchecksum = "(.+)"/g)].map(([, name, version, sum]) => [`${name} ${version}`, sum]));
}

const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

function cargo(...args) {
  return execFileSync('cargo', [...args, '--locked'], { cwd: ROOT, encoding: 'utf8', maxBuffer: 256 * 1024 * 1024, stdio: ['ignore', 'pipe', 'inherit'] });
}
