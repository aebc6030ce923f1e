// The parts of a release that no user runs: the licences, the bill of materials, the tags of wheels, and the checks of files.
//
// In: this machine's target. Out: failures for a part without a permitted licence, for a bill that scanners refuse, and for
// checks that let a file pass.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { test } from 'node:test';

import { bill } from '../../packaging/bill.mjs';
import { checkPaths, checkPublished } from '../../packaging/checks.mjs';
import { needs } from '../../packaging/elf.mjs';
import { FOLDERS, cFlags, rustFlags } from '../../packaging/folders.mjs';
import { isPermitted, licences, linked } from '../../packaging/linked.mjs';
import { TARGETS, find, host } from '../../packaging/targets.mjs';
import { ROOT } from './user.mjs';

const parts = linked(host());

test('each part that is linked in has a permitted licence', () => {
  assert.deepEqual(parts.filter(({ license }) => !isPermitted(license)).map(({ name, license }) => `${name}: ${license}`), []);
});

test('a licence with more conditions is not permitted, except as a choice', () => {
  for (const good of ['MIT', 'Apache-2.0 OR GPL-2.0-only', '(MIT OR Apache-2.0) AND Unicode-3.0', 'MIT AND BSD-3-Clause']) assert.ok(isPermitted(good), good);
  for (const bad of ['GPL-2.0-only', 'MIT AND GPL-2.0-only', '(GPL-2.0-only OR AGPL-3.0-only) AND MIT', 'see COPYING', '']) assert.ok(!isPermitted(bad), bad);
});

test('the engine and the database are among the parts, and no tool of the build', () => {
  const names = parts.map(({ name }) => name);
  for (const name of ['quickjs-ng', 'sqlite', 'isolane', 'isolane-kit', 'oxc_parser', 'napi', 'pyo3']) assert.ok(names.includes(name), name);
  for (const name of ['napi-derive', 'serde_derive', 'cc', 'napi-build']) assert.ok(!names.includes(name), name);
});

test('each part has the text of its licence, on every target', () => {
  for (const target of TARGETS) {
    const all = linked(target);
    const sections = licences(all).split(`\n${'-'.repeat(100)}\n\n`).map((section) => section.split('\n\n'));
    const titles = new Set(sections.flatMap(([head, , text]) => (text === '' ? [] : head.split('\n'))));
    const others = all.filter(({ isOwn }) => !isOwn);
    assert.deepEqual(others.filter(({ name, version, license }) => !titles.has(`${name} ${version} (${license})`)), []);
    for (const title of ["Rust's standard library (MIT OR Apache-2.0)", "gimli of Rust's standard library (MIT)"]) assert.ok(titles.has(title), title);
  }
  const text = licences(parts);
  assert.match(text, /^quickjs-ng \d[\d.]* \(MIT\)$[^]*?^Copyright \(c\).* Fabrice Bellard$/m);
  // A crate without a file in its archive.
  assert.match(text, /^oxc_parser \d[\d.]* \(MIT\)$[^]*?^MIT License\n\nCopyright \(c\) Boshen, Oxc contributors\n\nPermission is hereby granted, /m);
});

test('a part without any text stops the packages', () => {
  const part = { ...parts.find(({ name }) => name === 'oxc_parser'), name: 'unheard' };
  assert.match(licences([{ ...part, license: '(Unheard-1.0 OR ISC) AND MIT' }]), /^Copyright \(c\) Boshen, Oxc contributors$[^]*^MIT License$/m);
  assert.throws(() => licences([{ ...part, license: 'MIT AND Unheard-1.0' }]), /^Error: unheard 0\.\S+ \(MIT AND Unheard-1\.0\) has no text of its licence/);
});

test('the bill of materials names each part once', () => {
  const { components, metadata, dependencies } = bill({ name: 'isolane', version: '1.2.3', license: 'MIT' }, parts, '1.95.0');
  const references = [...components, ...metadata.component.components].map((one) => one['bom-ref']);
  assert.equal(new Set(references).size, references.length);
  assert.equal(references.length, parts.length + 1);
  assert.deepEqual(dependencies[0].dependsOn, components.map((one) => one['bom-ref']));
  const [crate] = components.filter(({ name }) => name === 'oxc_parser');
  assert.match(crate.hashes[0].content, /^[\da-f]{64}$/);
});

test('the tag of a wheel is what its files ask for', { skip: process.platform !== 'linux' }, () => {
  const gnu = find('linux-x64-gnu');
  assert.equal(gnu.wheel([]), 'manylinux_2_17_x86_64');
  assert.equal(gnu.wheel(['2.2', '2.34', '2.9']), 'manylinux_2_34_x86_64');
  assert.equal(find('x64-gnu'), gnu);
  const others = TARGETS.filter((target) => target !== gnu).map((target) => target.wheel([]));
  assert.deepEqual(others, ['musllinux_1_2_x86_64', 'manylinux_2_17_aarch64', 'musllinux_1_2_aarch64', 'macosx_11_0_arm64', 'macosx_11_0_x86_64', 'win_amd64']);
  const { libraries } = needs(process.execPath);
  assert.ok(libraries.some((name) => /^libc\./.test(name)), libraries.join(', '));
});

test('a target without packages is refused by name', () => {
  assert.throws(() => find('plan9-x64'), /^Error: no packages are made for plan9-x64; the targets are linux-x64-gnu, /);
});

/** A folder in the clone, which ends with the test. */
function folder(context) {
  mkdirSync(join(ROOT, 'target'), { recursive: true });
  const path = mkdtempSync(join(ROOT, 'target', 'release-test-'));
  context.after(() => rmSync(path, { recursive: true }));
  return path;
}

test('a file with a folder of this machine is not published', (context) => {
  const file = join(folder(context), 'file');
  for (const path of FOLDERS) {
    writeFileSync(file, `\0${path}file.rs\0`);
    assert.throws(() => checkPaths([file]), (error) => error.message.includes(`has a path of this machine: ${path}file.rs`));
  }
  writeFileSync(file, '\0crates/registry/file.rs\0/rustc/0123/library/core/src/lib.rs\0');
  checkPaths([file]);
});

test('the compilers of a published file leave the folders of this machine out', { skip: process.platform !== 'linux' }, (context) => {
  const home = folder(context);
  const [c, rust] = [join(home, 'file.c'), join(home, 'file.rs')];
  writeFileSync(c, 'const char *place(void) { return __FILE__; }\n');
  writeFileSync(rust, '#[unsafe(no_mangle)] pub fn at(list: &[u8], place: usize) -> u8 { list[place] }\n');
  const objects = (cFlagsOf, rustFlagsOf) => {
    const files = [join(home, 'c.o'), join(home, 'rust.o')];
    execFileSync('sh', ['-c', `cc ${cFlagsOf} -c '${c}' -o '${files[0]}'`]);
    execFileSync('rustc', ['--edition=2024', '--crate-type=lib', '--emit=obj', ...rustFlagsOf, rust, '-o', files[1]]);
    return files;
  };
  for (const file of objects('', [])) assert.throws(() => checkPaths([file]), /has a path of this machine/);
  const files = objects(cFlags(), rustFlags('rustc'));
  checkPaths(files);
  for (const [index, file] of files.entries()) assert.ok(readFileSync(file, 'latin1').includes(`./target/${home.split('/').at(-1)}/file.${['c', 'rs'][index]}`), file);
});

test('a file that has glibc in it is not published', { skip: process.platform !== 'linux' }, (context) => {
  const home = folder(context);
  const [without, asking] = [join(home, 'without'), join(home, 'asking')];
  const source = 'int one(void) { return 1; }';
  for (const [file, ...flags] of [[without, '-nostdlib'], [asking]]) execFileSync('cc', ['-shared', '-fPIC', '-Wl,--no-as-needed', '-x', 'c', '-', '-s', '-o', file, ...flags], { input: source });
  assert.throws(() => checkPublished(find('linux-x64-gnu'), [without]), /has glibc in it, and a package may only ask for it$/);
  checkPublished(find('linux-x64-gnu'), [asking]);
});
