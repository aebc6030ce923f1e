// A release, as far as one can go without publishing: `npm run release [-- TARGET… | --all] [--built] [--draft]`.
//
// In: a clone; targets, or none for this machine's own; `--built` as of `npm run package`; `--draft` to go on after a check
// that fails. Out: `target/packages` with the packages, the bill of materials, the licences, the notes of the version and
// the checksums; a list of the steps that are left. It fails if the versions differ, if the changelog has no section for
// the version or still has changes for the next one, if the work tree has changes, if a licence is not permitted, or if a
// crate cannot be packed.

import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import process from 'node:process';
import { parseArgs } from 'node:util';

import { ROOT } from '../bindings-node/addon.mjs';
import { bill } from './bill.mjs';
import { isPermitted, licences, linked } from './linked.mjs';
import { OPTIONS, OUT, chosen, packages } from './package.mjs';

const { values, positionals } = parseArgs({ options: { ...OPTIONS, draft: { type: 'boolean' } }, allowPositionals: true });
const product = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
const targets = chosen(values, positionals);

const parts = unique(targets.flatMap(linked));
const notes = changes(product.version);
const failures = [...versions(), ...notes.failures, ...tree(), ...terms(), ...crates()];
for (const failure of failures) console.error(`release: ${failure}`);
if (failures.length > 0 && !values.draft) process.exit(1);

const files = packages(targets, { ...values, trained: true, isPublished: !values.draft });
files.push(
  written('LICENSES.txt', licences(parts)),
  written(`${product.name}-${product.version}.cdx.json`, `${JSON.stringify(bill(product, parts, rustVersion()), null, 2)}\n`),
  written('NOTES.md', notes.text),
);
const sums = files.map((path) => `${createHash('sha256').update(readFileSync(path)).digest('hex')}  ${basename(path)}\n`);
written('SHA256SUMS', sums.join(''));
console.log(sums.join(''));

console.log(`${parts.length} parts are linked in.`);
console.log(`Nothing was published. Left to do: npm run test:install; a tag v${product.version}; npm publish of the tarballs, the native ones first; the wheels; cargo publish of the crates, in the order of \`cargo package --workspace\`.`);

/** Whether every manifest has the version of `package.json`. */
function versions() {
  const { packages: members } = metadata();
  return members.filter(({ version }) => version !== product.version).map(({ name, version }) => `${name} has the version ${version}, and package.json has ${product.version}`);
}

/** The section of `CHANGELOG.md` for a version. */
function changes(version) {
  const sections = readFileSync(join(ROOT, 'CHANGELOG.md'), 'utf8').split(/^## /m);
  const found = sections.find((section) => section.startsWith(version));
  const next = sections.find((section) => section.startsWith('Unreleased')) ?? '';
  const failures = [];
  if (found === undefined) failures.push(`CHANGELOG.md has no section ${version}`);
  if (next.includes('\n- ')) failures.push(`CHANGELOG.md has changes under "Unreleased", and the version is ${version}`);
  return { failures, text: `## ${found ?? next}` };
}

/** Whether each part that is linked in has a licence that asks for no more than its text. */
function terms() {
  return parts.filter(({ license }) => !isPermitted(license)).map(({ name, version, license }) => `${name} ${version} has the licence ${license}`);
}

function tree() {
  const changed = execFileSync('git', ['status', '--porcelain'], { cwd: ROOT, encoding: 'utf8' }).trim();
  return changed === '' ? [] : ['the work tree has changes'];
}

/** Whether each public crate has a licence, a description, a readme and files to publish, and versions for its dependencies. */
function crates() {
  const { packages: members } = metadata();
  const isPublic = ({ publish }) => publish === null;
  const names = new Map(members.map((member) => [member.name, member]));
  const failures = members.filter(isPublic).flatMap(({ name, description, license, readme, dependencies }) => [
    ...(description && license && readme ? [] : [`the crate ${name} has no description, no licence or no readme`]),
    ...dependencies.filter((one) => one.kind !== 'dev' && names.has(one.name)).flatMap((one) => [
      ...(one.req === '*' ? [`the crate ${name} names no version of ${one.name}`] : []),
      ...(isPublic(names.get(one.name)) ? [] : [`the crate ${name} needs ${one.name}, which is not published`]),
    ]),
  ]);
  try {
    const packed = ['package', '--workspace', '--no-verify', '--allow-dirty', '--locked', '--quiet', '--target-dir', join(ROOT, 'target', 'crates')];
    const hidden = members.filter((member) => !isPublic(member)).flatMap(({ name }) => ['--exclude', name]);
    execFileSync('cargo', [...packed, ...hidden], { cwd: ROOT, stdio: ['ignore', 'inherit', 'pipe'] });
  } catch (error) {
    failures.push(`cargo cannot pack the crates: ${error.stderr}`);
  }
  return failures;
}

function metadata() {
  return JSON.parse(execFileSync('cargo', ['metadata', '--no-deps', '--format-version=1', '--locked'], { cwd: ROOT, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 }));
}

function rustVersion() {
  return execFileSync('rustc', ['--version'], { cwd: ROOT, encoding: 'utf8' }).split(' ')[1];
}

function unique(all) {
  return [...new Map(all.map((part) => [`${part.name} ${part.version}`, part])).values()];
}

function written(name, text) {
  const path = join(OUT, name);
  writeFileSync(path, text);
  return path;
}
