// The native package that the loader takes on each platform, and the reasons why it loads none.
//
// In: `bindings-node/dist`, which `npm run build:lib` makes; a folder with a package for every target, none of which has
// compiled files. Out: for each platform, the package that was loaded, or the error. Nothing needs that platform: a program
// of Node.js is told that it runs there. Files that cannot be loaded are compiled here, on Linux.

import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, copyFileSync, cpSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import process from 'node:process';
import { after, before, describe, test } from 'node:test';

import { packMain } from '../../packaging/npm.mjs';
import { TARGETS, host } from '../../packaging/targets.mjs';
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
for (const name of ['platform.js', 'node-version.js']) copyFileSync(join(ROOT, 'bindings-node', 'dist', 'addon', name), join(loader, '..', name));
const optionalDependencies = Object.fromEntries(TARGETS.map(({ name }) => [`isolane-${name}`, VERSION]));
writeFileSync(join(folder('isolane'), 'package.json'), JSON.stringify({ name: 'isolane', version: VERSION, optionalDependencies }));
for (const { name } of TARGETS) writeFileSync(join(folder(`isolane-${name}`), 'index.js'), `module.exports = '${name}';`);

/** What the loader prints on a platform: the name of the package and its folder, or the error. */
function loaded(platform, arch, report, path = loader) {
  const program = `
    for (const [name, value] of Object.entries(${JSON.stringify({ platform, arch })})) Object.defineProperty(process, name, { value });
    const report = ${JSON.stringify(report) ?? 'undefined'};
    Object.defineProperty(process, 'report', { value: report && { getReport: () => report } });
    try { const { addon, folder } = require(${JSON.stringify(path)}).loadAddon(); console.log(addon, folder); }
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
    assert.equal(loaded(platform, arch, report), `isolane has no compiled part for ${name}: unsupported platform. There are the packages ${all}.`);
  });
}

test('the package is found beside this one, where no folder is named node_modules', { timeout: CEILING_MS }, () => {
  const [name, elsewhere] = ['linux-x64-gnu', realpathSync(mkdtempSync(join(tmpdir(), 'isolane-beside-')))];
  after(() => rmSync(elsewhere, { recursive: true }));
  cpSync(join(home, 'node_modules', 'isolane'), join(elsewhere, 'isolane'), { recursive: true });
  const beside = join(elsewhere, `isolane-${name}`);
  cpSync(join(home, 'node_modules', `isolane-${name}`), beside, { recursive: true });
  const path = join(elsewhere, 'isolane', relative(join(home, 'node_modules', 'isolane'), loader));
  assert.equal(loaded('linux', 'x64', GLIBC, path), `${name} ${beside}`);
  writeFileSync(join(beside, 'package.json'), JSON.stringify({ name: `isolane-${name}`, version: '0.0.9' }));
  assert.match(loaded('linux', 'x64', GLIBC, path), /cannot use its compiled part, isolane-linux-x64-gnu 0\.0\.9/);
});

test('programs that copy the files of an application find those of each target', { timeout: CEILING_MS }, () => {
  const text = readFileSync(loader, 'utf8');
  for (const { name } of TARGETS) assert.ok(text.includes(`join)(__dirname, '../../../../isolane-${name}')`), name);
});

test('a native package of another version is refused', { timeout: CEILING_MS }, () => {
  const path = join(folder('isolane-linux-x64-gnu'), 'package.json');
  writeFileSync(path, JSON.stringify({ name: 'isolane-linux-x64-gnu', version: '0.0.9' }));
  assert.equal(
    loaded('linux', 'x64', GLIBC),
    `isolane ${VERSION} cannot use its compiled part, isolane-linux-x64-gnu 0.0.9: both must have one version. Delete node_modules, and install again; if a lock file or an override names isolane-linux-x64-gnu, let it name ${VERSION}.`,
  );
  writeFileSync(path, JSON.stringify({ name: 'isolane-linux-x64-gnu', version: VERSION }));
  assert.equal(loaded('linux', 'x64', GLIBC), `linux-x64-gnu ${join(home, 'node_modules', 'isolane-linux-x64-gnu')}`);
});

test('a file that was cut off is refused before it ends the process', { timeout: CEILING_MS }, () => {
  const place = folder('isolane-linux-x64-gnu');
  const [{ size }, path] = [statSync(join(place, 'index.js')), join(place, 'package.json')];
  writeFileSync(path, JSON.stringify({ name: 'isolane-linux-x64-gnu', version: VERSION, bytes: size + 1 }));
  assert.equal(
    loaded('linux', 'x64', GLIBC),
    `isolane cannot load its compiled part, isolane-linux-x64-gnu: the file has ${size} bytes of ${size + 1}. A copy was cut off, or a disk was full. Delete node_modules, and install again.`,
  );
  writeFileSync(path, JSON.stringify({ name: 'isolane-linux-x64-gnu', version: VERSION, bytes: size }));
  assert.equal(loaded('linux', 'x64', GLIBC), `linux-x64-gnu ${place}`);
});

test('a Node.js that is older than the package needs is refused by each entry', { timeout: CEILING_MS }, () => {
  const { engines, exports } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  const oldest = Number(/^>=(\d+)$/.exec(engines.node)[1]);
  const entries = Object.values(exports).map((entry) => entry.require?.default).filter(Boolean);
  assert.equal(entries.length, 5);
  for (const entry of entries) {
    for (const [version, expected] of [[`${oldest - 1}.9.0`, `isolane needs Node.js ${oldest} or newer, and this is Node.js ${oldest - 1}.9.0`], [`${oldest}.0.0`, 'loaded']]) {
      const program = `
        Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '${version}' } });
        try { require(${JSON.stringify(join(ROOT, entry))}); console.log('loaded'); } catch (error) { console.log(error.message); }`;
      assert.equal(execFileSync(process.execPath, ['--eval', program], { encoding: 'utf8', timeout: CEILING_MS }).trim(), expected, entry);
    }
  }
});

describe('a file that is there and cannot be loaded', { skip: process.platform !== 'linux' }, () => {
  const name = `isolane-${host().name}`;
  const place = folder(name);
  const addon = join(place, 'isolane.node');
  const compile = (source, ...flags) => execFileSync('cc', ['-shared', '-fPIC', '-nostdlib', '-x', 'c', '-', '-x', 'none', ...flags], { input: source });
  before(() => {
    rmSync(join(place, 'index.js'));
    writeFileSync(join(place, 'package.json'), JSON.stringify({ name, version: VERSION, main: 'isolane.node' }));
  });

  /** The message of the loader, after the words of Node.js or of the system. */
  function refusal(command, args, flags = []) {
    const program = `try { require(${JSON.stringify(loader)}).loadAddon(); } catch (error) { console.log(error.message); }`;
    const text = execFileSync(command, [...args, process.execPath, ...flags, '--eval', program], { cwd: home, encoding: 'utf8', timeout: CEILING_MS }).trim();
    const head = `isolane cannot load its compiled part, ${name}: `;
    assert.ok(text.startsWith(head), text);
    return text.slice(text.indexOf('. ', head.length) + 2);
  }

  test('a Node.js that loads no addons', { timeout: CEILING_MS }, () => {
    writeFileSync(addon, '');
    const expected = 'This process may load no addon: it was started with --no-addons, or with --permission and without --allow-addons. Start it with addons.';
    assert.equal(refusal('env', [], ['--no-addons']), expected);
    const permission = ['--permission', '--experimental-permission'].find((flag) => process.allowedNodeEnvironmentFlags.has(flag));
    assert.equal(refusal('env', [], ['--no-warnings', permission, '--allow-fs-read=*']), expected);
  });

  test('a file that is not in its package', { timeout: CEILING_MS }, () => {
    rmSync(addon, { force: true });
    assert.match(refusal('env', []), /The package is there, and this file of it is not\. Delete node_modules, and install again\.$/);
  });

  test('a file that the user may not read', { timeout: CEILING_MS, skip: process.getuid() !== 0 && 'only root runs programs as another user' }, () => {
    writeFileSync(addon, '');
    chmodSync(addon, 0o600);
    chmodSync(home, 0o755);
    const expected = 'The user of this process may not read the file. Install isolane as that user, or permit it to read node_modules.';
    assert.equal(refusal('setpriv', ['--reuid=65534', '--clear-groups']), expected);
    chmodSync(addon, 0o644);
  });

  test('a system whose glibc is too old', { timeout: CEILING_MS, skip: !host().name.endsWith('-gnu') }, () => {
    const newer = join(home, 'libc.so.6');
    writeFileSync(join(home, 'versions'), 'GLIBC_9.87 { global: newer; };');
    compile('int newer(void) { return 1; }', '-Wl,-soname,libc.so.6', `-Wl,--version-script=${join(home, 'versions')}`, '-o', newer);
    compile('int newer(void); int asks(void) { return newer(); }', newer, '-o', addon);
    const { glibcVersionRuntime } = process.report.getReport().header;
    assert.equal(
      refusal('env', []),
      `The file needs glibc 9.87, and this system has ${glibcVersionRuntime}. The files of a published package need 2.17; one that was built on a newer system, for its own tests, needs more. docs/install.md lists the systems.`,
    );
  });

  test('a file system that is mounted with noexec', { timeout: CEILING_MS }, (context) => {
    compile('int one(void) { return 1; }', '-o', addon);
    const shell = `mount -t tmpfs -o noexec none '${place}' && cp '${join(home, 'kept')}'/* '${place}' && exec "$@"`;
    mkdirSync(join(home, 'kept'));
    for (const file of ['package.json', 'isolane.node']) copyFileSync(join(place, file), join(home, 'kept', file));
    const unshared = ['--user', '--map-root-user', '--mount', 'sh', '-c', shell, 'sh'];
    if (spawnSync('unshare', [...unshared, 'true']).status !== 0) return context.skip('this system refuses the namespaces or the mount');
    assert.equal(refusal('unshare', unshared), `The file system at ${place} is mounted with noexec, so nothing there can be loaded. Install isolane in another folder, or mount this one without noexec.`);
    // The same file elsewhere is loaded, and is no addon.
    assert.equal(refusal('env', []), 'The file is there, and it is not for this system, or it is damaged. docs/install.md lists the systems; install again, without a copied node_modules.');
  });
});

test('a Linux whose report tells nothing gets the package for musl, if that is the one installed', { timeout: CEILING_MS }, () => {
  rmSync(folder('isolane-linux-arm64-gnu'), { recursive: true });
  assert.equal(loaded('linux', 'arm64', {}), `linux-arm64-musl ${join(home, 'node_modules', 'isolane-linux-arm64-musl')}`);
});

test('the main package names every target that was made with it', { timeout: CEILING_MS }, () => {
  const out = join(home, 'out');
  mkdirSync(out);
  const tarball = packMain(TARGETS, join(home, 'stage'), out);
  const manifest = JSON.parse(execFileSync('tar', ['-xzOf', tarball, 'package/package.json'], { encoding: 'utf8' }));
  // Package managers that keep packages in archives start no program that is an ECMAScript module.
  assert.match(manifest.bin.isolane, /\.cjs$/);
  assert.equal(manifest.type, 'commonjs');
  assert.deepEqual(manifest.optionalDependencies, Object.fromEntries(TARGETS.map(({ name }) => [`isolane-${name}`, manifest.version])));
});
