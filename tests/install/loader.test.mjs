// The native package that the loader takes on each platform.
//
// In: `bindings-node/dist`, which `npm run build:lib` makes; a folder with a package for every target, none of which has
// compiled files. Out: for each platform, the package that was loaded, or the error. Nothing needs that platform: a program
// of Node.js is told that it runs there.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { after, test } from 'node:test';

import { packMain } from '../../packaging/npm.mjs';
import { TARGETS } from '../../packaging/targets.mjs';
import { CEILING_MS, ROOT } from './user.mjs';

const VERSION = '0.1.0';
const GLIBC = { header: { glibcVersionRuntime: '2.36' } };
const MUSL = { header: {} };
/** A platform of Node.js, its report, and what is loaded there. */
const CHOICES = [
  ['linux', 'x64', GLIBC, 'linux-x64-gnu'],
  ['linux', 'x64', MUSL, 'linux-x64-musl'],
  ['linux', 'arm64', GLIBC, 'linux-arm64-gnu'],
  ['linux', 'arm64', MUSL, 'linux-arm64-musl'],
  ['darwin', 'arm64', MUSL, 'darwin-arm64'],
  ['darwin', 'x64', MUSL, 'darwin-x64'],
  ['win32', 'x64', MUSL, 'win32-x64'],
  // A runtime that reports nothing: the first of both that is there.
  ['linux', 'arm64', {}, 'linux-arm64-gnu'],
  ['linux', 'arm64', undefined, 'linux-arm64-gnu'],
];
const REFUSED = [
  ['linux', 'riscv64', GLIBC, 'linux-riscv64-gnu'],
  ['linux', 'ia32', MUSL, 'linux-ia32-musl'],
  ['win32', 'arm64', MUSL, 'win32-arm64'],
  ['freebsd', 'x64', MUSL, 'freebsd-x64'],
];

const home = realpathSync(mkdtempSync(join(tmpdir(), 'isolane-loader-')));
after(() => rmSync(home, { recursive: true }));
const folder = (...names) => {
  const path = join(home, 'node_modules', ...names);
  mkdirSync(path, { recursive: true });
  return path;
};
const loader = join(folder('isolane', 'bindings-node', 'dist', 'addon'), 'platform.js');
copyFileSync(join(ROOT, 'bindings-node', 'dist', 'addon', 'platform.js'), loader);
const optionalDependencies = Object.fromEntries(TARGETS.map(({ name }) => [`isolane-${name}`, VERSION]));
writeFileSync(join(folder('isolane'), 'package.json'), JSON.stringify({ name: 'isolane', version: VERSION, optionalDependencies }));
for (const { name } of TARGETS) writeFileSync(join(folder(`isolane-${name}`), 'index.js'), `module.exports = '${name}';`);

/** What the loader prints on a platform: the name of the package and its folder, or the error. */
function loaded(platform, arch, report) {
  const program = `
    for (const [name, value] of Object.entries(${JSON.stringify({ platform, arch })})) Object.defineProperty(process, name, { value });
    const report = ${JSON.stringify(report) ?? 'undefined'};
    Object.defineProperty(process, 'report', { value: report && { getReport: () => report } });
    try { const { addon, folder } = require(${JSON.stringify(loader)}).loadAddon(); console.log(addon, folder); }
    catch (error) { console.log(error.message); }`;
  return execFileSync(process.execPath, ['--eval', program], { cwd: home, encoding: 'utf8', timeout: CEILING_MS }).trim();
}

for (const [platform, arch, report, name] of CHOICES) {
  test(`${platform} on ${arch}, ${JSON.stringify(report)}: ${name}`, { timeout: CEILING_MS }, () => {
    assert.equal(loaded(platform, arch, report), `${name} ${join(home, 'node_modules', `isolane-${name}`)}`);
  });
}

test('the table has every target', () => {
  const chosen = new Set(CHOICES.map(([, , , name]) => name));
  assert.deepEqual([...chosen].sort(), TARGETS.map(({ name }) => name).sort());
});

for (const [platform, arch, report, name] of REFUSED) {
  test(`${name} has no package`, { timeout: CEILING_MS }, () => {
    const all = TARGETS.map((target) => `isolane-${target.name}`).join(', ');
    assert.equal(loaded(platform, arch, report), `isolane has no compiled part for ${name}: unsupported platform. There are the packages ${all}. In a clone of the project, npm run build compiles it.`);
  });
}

test('a Linux whose report tells nothing gets the package for musl, if that is the one installed', { timeout: CEILING_MS }, () => {
  rmSync(folder('isolane-linux-arm64-gnu'), { recursive: true });
  assert.equal(loaded('linux', 'arm64', {}), `linux-arm64-musl ${join(home, 'node_modules', 'isolane-linux-arm64-musl')}`);
});

test('the main package names every target that was made with it', { timeout: CEILING_MS }, () => {
  const out = join(home, 'out');
  mkdirSync(out);
  const tarball = packMain(TARGETS, join(home, 'stage'), out);
  const manifest = JSON.parse(execFileSync('tar', ['-xzOf', tarball, 'package/package.json'], { encoding: 'utf8' }));
  assert.deepEqual(manifest.optionalDependencies, Object.fromEntries(TARGETS.map(({ name }) => [`isolane-${name}`, manifest.version])));
});
