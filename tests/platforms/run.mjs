// The packages for other processors, C libraries and systems, installed and run as a user does.
//
//   npm run test:platforms [-- TARGET…]
//
// In: `target/packages`; targets, or none for all of Linux and Windows that have packages there and are not this
// machine's. Out: for each target the tests of `tests/install` with its Node.js and its Python, if there is one, and the
// contract table in its Node.js; a line: passed with the number of tests, failed, or skipped with what this machine
// lacks; then `N passed, N failed, N skipped`. A target passes only if its tests ran, all of them, in a Node.js that says
// that it is for the target. The exit code is 1 if a target failed or none passed.

import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, delimiter, join } from 'node:path';
import process from 'node:process';

import { ROOT } from '../../bindings-node/addon.mjs';
import { TARGETS, find, host } from '../../packaging/targets.mjs';
import { packagesOf } from '../install/user.mjs';
import { Missing } from './debian.mjs';
import { programs } from './programs.mjs';

const ENTER = join(import.meta.dirname, 'enter.sh');
const NAMESPACES = ['--user', '--map-root-user', '--mount'];
/** The folder for the registration of the emulator, which is mounted there for a test alone. */
const REGISTRY = join(ROOT, 'target', 'platforms', 'registry');
const PLATFORM = 'JSON.stringify([process.platform, process.arch, process.report.getReport().header.glibcVersionRuntime === undefined])';

const counts = { passed: 0, failed: 0, skipped: 0 };
for (const target of chosen(process.argv.slice(2))) {
  console.log(`\n== ${target.name}`);
  const [word, reason] = await outcome(target);
  counts[word] += 1;
  console.log(`${target.name} ${word}: ${reason}`);
}
console.log(Object.entries(counts).map(([word, count]) => `${count} ${word}`).join(', '));
process.exitCode = counts.failed === 0 && counts.passed > 0 ? 0 : 1;

function chosen(names) {
  if (names.length > 0) return names.map(find);
  const packed = packagesOf('.tgz').map((path) => basename(path));
  const isThere = ({ name }) => packed.some((file) => file.startsWith(`isolane-${name}-`));
  return TARGETS.filter((target) => target.format !== 'mach-o' && target !== host() && isThere(target));
}

/** A word for what came of a target, and the reason. */
async function outcome(target) {
  try {
    const found = programs(target);
    checkMeans(found);
    for (const node of found.nodes) checkTarget(target, found, node);
    const { code, ran, others } = await tests(found);
    if (code !== 0 || ran === 0 || others > 0) return ['failed', `${ran} tests passed, ${others} did not, exit code ${code}`];
    return ['passed', `${ran} tests in ${[...found.nodes, ...found.pythons].join(' and ')}`];
  } catch (error) {
    if (error instanceof Missing) return ['skipped', error.message];
    return ['failed', error.stack];
  }
}

/**
 * Fails if this machine cannot make the namespaces and the mounts of a test. Each one is tried without the files of a
 * target, so a fault of `enter.sh` or of those files stays a failure.
 */
function checkMeans({ emulator }) {
  mkdirSync(REGISTRY, { recursive: true });
  const mounts = [['overlay', '-o', `lowerdir=${REGISTRY}:/usr/lib`]];
  // A kernel before Linux 6.7 has one registration of emulators for the whole machine, and refuses this mount.
  if (emulator !== '') mounts.push(['binfmt_misc']);
  tryNamespaces('the namespaces', 'true');
  for (const [type, ...options] of mounts) tryNamespaces(`a mount of ${type}`, 'mount', '-t', type, ...options, type, REGISTRY);
}

function tryNamespaces(thing, ...command) {
  try {
    execFileSync('unshare', [...NAMESPACES, ...command], { stdio: ['ignore', 'ignore', 'pipe'], encoding: 'utf8' });
  } catch (error) {
    throw new Missing(`this system refuses ${thing}: ${(error.stderr || error.message).trim()}`);
  }
}

function checkTarget(target, found, node) {
  const [command, ...args] = inside(found, node, '-p', PLATFORM);
  const [platform, cpu, isMusl] = JSON.parse(execFileSync(command, args, { encoding: 'utf8' }));
  const { os, cpu: [wanted], libc } = target.fits;
  if (platform !== os[0] || cpu !== wanted || (libc !== undefined && isMusl !== (libc[0] === 'musl'))) throw new Error(`${node} is for ${platform} ${cpu}, and the target is ${target.name}`);
}

/** Runs the tests of a user's install, and the contract table. Returns the exit code, and how many tests passed and did not. */
function tests({ nodes, pythons, ...found }) {
  const names = ['install/npm', ...(pythons.length > 0 ? ['install/wheel'] : []), 'platforms/contract'];
  const files = names.map((name) => join(ROOT, 'tests', `${name}.test.mjs`));
  const [command, ...args] = inside(found, process.execPath, '--test', '--test-reporter=tap', '--test-concurrency=1', ...files);
  const temporary = mkdtempSync(join(tmpdir(), 'isolane-platforms-'));
  const env = { ...process.env, TMPDIR: temporary, ISOLANE_NODES: nodes.join(delimiter), ISOLANE_PYTHONS: pythons.join(delimiter) };
  const child = spawn(command, args, { cwd: ROOT, env, stdio: ['ignore', 'pipe', 'inherit'] });
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (part) => {
    text += part;
    process.stdout.write(part);
  });
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code) => {
      rmSync(temporary, { recursive: true, force: true });
      const count = (word) => Number(new RegExp(`^# ${word} (\\d+)$`, 'm').exec(text)?.[1] ?? 0);
      resolve({ code, ran: count('pass'), others: ['fail', 'cancelled', 'skipped', 'todo'].map(count).reduce((a, b) => a + b) });
    });
  });
}

/** A command in a system that has the libraries and the emulator of a target. */
function inside({ usr, ldd, emulator }, ...command) {
  return ['unshare', ...NAMESPACES, 'sh', ENTER, usr, ldd, REGISTRY, emulator, ...command];
}
