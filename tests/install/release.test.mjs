// The parts of a release that no user runs: the licences, the bill of materials, and the tags of wheels.
//
// In: this machine's target. Out: failures for a part without a permitted licence, and for a bill that scanners refuse.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { bill } from '../../packaging/bill.mjs';
import { needs } from '../../packaging/elf.mjs';
import { isPermitted, licences, linked } from '../../packaging/linked.mjs';
import { TARGETS, find, host } from '../../packaging/targets.mjs';

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
