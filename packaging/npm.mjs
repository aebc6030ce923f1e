// The packages of npm: the main one, and one with the compiled files of a target.
//
// In: compiled files; the package of this folder. Out: tarballs, and the manifests in them. The main package names the
// native packages that were built with it as optional dependencies, at the same version: a name that nobody has published
// is never asked for. It has the pages, whose links lead to pages that are there. The README is also shown where no other
// file is, so it names them.

import { execFileSync } from 'node:child_process';
import { chmodSync, copyFileSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import process from 'node:process';

import { ROOT } from '../bindings-node/addon.mjs';
import { relinked } from './links.mjs';

/** Fields that only a clone needs. */
const OF_THE_CLONE = ['scripts', 'devDependencies', 'napi', 'private'];

const own = () => JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));

/** Packs the main package: JavaScript, types and the loader. Returns the path of its tarball. */
export function packMain(targets, stage, out) {
  const manifest = own();
  const [{ files }] = JSON.parse(npm(ROOT, 'pack', '--dry-run', '--json', '--ignore-scripts'));
  const folder = fresh(join(stage, manifest.name));
  const paths = new Set(files.map(({ path }) => path));
  for (const path of paths) {
    copy(join(ROOT, path), join(folder, path));
    if (path.endsWith('.md')) writeFileSync(join(folder, path), page(path, paths));
  }
  for (const field of OF_THE_CLONE) delete manifest[field];
  manifest.optionalDependencies = Object.fromEntries(targets.map(({ name }) => [`${manifest.name}-${name}`, manifest.version]));
  return pack(folder, manifest, out);
}

/** A page of the main package, which has these files. */
function page(path, paths) {
  return relinked(readFileSync(join(ROOT, path), 'utf8'), path, (text, to, link) => {
    if (!paths.has(to)) return text;
    if (path !== 'README.md') return link;
    return text === to ? text : `${text} (\`${to}\`)`;
  });
}

/**
 * Packs the package of a target from its addon and its worker, if it has one. Returns the path of its tarball. `bytes` of the
 * manifest is the size of the addon: the loader refuses a file that was cut off, which would end the process.
 */
export function packTarget(target, { addon, worker }, { licences, stage, out }) {
  const main = own();
  const { version, license, engines, description } = main;
  const name = `${main.name}-${target.name}`;
  const folder = fresh(join(stage, name));
  const file = `isolane.${target.name}.node`;
  const files = [file];
  copyFileSync(addon, join(folder, file));
  if (worker !== undefined) {
    files.push(target.worker);
    copyFileSync(worker, join(folder, target.worker));
    chmodSync(join(folder, target.worker), 0o755);
  }
  copyFileSync(join(ROOT, 'LICENSE'), join(folder, 'LICENSE'));
  writeFileSync(join(folder, 'LICENSES.txt'), licences);
  writeFileSync(join(folder, 'README.md'), `The compiled files of isolane for ${target.name}. Install \`isolane\`, which depends on this package.\n`);
  const manifest = { name, version, description: `${description} (${target.name})`, license, engines, main: file, bytes: statSync(addon).size, files: [...files, 'LICENSES.txt'], ...target.fits };
  return pack(folder, manifest, out);
}

/** The paths of the files in a tarball. */
export function listing(tarball) {
  return execFileSync('tar', ['-tzf', tarball], { encoding: 'utf8' }).trim().split('\n').map((path) => path.replace(/^package\//, ''));
}

function pack(folder, manifest, out) {
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
  const [{ filename }] = JSON.parse(npm(folder, 'pack', '--json', '--ignore-scripts', '--pack-destination', out));
  return join(out, filename);
}

function fresh(folder) {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  return folder;
}

function copy(from, to) {
  mkdirSync(dirname(to), { recursive: true });
  copyFileSync(from, to);
}

function npm(cwd, ...args) {
  const options = ['--offline', '--loglevel=error'];
  return execFileSync('npm', [...args, ...options], { cwd, encoding: 'utf8', shell: process.platform === 'win32' });
}
