// Packages of Debian, unpacked into a folder. Nothing is installed, and the settings of this machine's apt stay.
//
// In: an architecture; names of packages. Out: a folder with their files and those of all that they depend on. The
// suite is one for all machines, because the programs need its versions: musl 1.2.5, and an emulator that is linked
// statically.

import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const SUITE = 'trixie';
const KEYS = '/usr/share/keyrings/debian-archive-keyring.gpg';

/** A machine lacks what the test needs. The message names it. */
export class Missing extends Error {}

/** Unpacks packages for an architecture below a folder, once. Returns the folder of their files. */
export function unpacked(home, architecture, packages) {
  const files = join(home, 'files');
  const list = packages.join('\n');
  const done = join(home, 'complete');
  if (existsSync(done) && readFileSync(done, 'utf8') === list) return files;
  const apt = fresh(home, architecture);
  apt('install', '--download-only', '--no-install-recommends', ...packages);
  const archives = join(home, 'cache', 'archives');
  mkdirSync(files);
  for (const name of readdirSync(archives).filter((one) => one.endsWith('.deb'))) run('dpkg-deb', ['--extract', join(archives, name), files]);
  writeFileSync(done, list);
  return files;
}

/** Unpacks the source of a package below a folder. Returns the folder. */
export function source(home, name) {
  fresh(home, 'amd64')('source', '--download-only', '--tar-only', name);
  const files = join(home, 'files');
  mkdirSync(files);
  const [archive] = readdirSync(home).filter((one) => one.includes('.orig.tar'));
  run('tar', ['--extract', '--file', join(home, archive), '--directory', files, '--strip-components', '1']);
  return files;
}

/** A fresh folder with the state of an apt. Returns its command. */
function fresh(home, architecture) {
  rmSync(home, { recursive: true, force: true });
  for (const path of ['lists/partial', 'cache/archives/partial']) mkdirSync(join(home, path), { recursive: true });
  writeFileSync(join(home, 'status'), '');
  const uri = archive();
  const signed = existsSync(KEYS) ? `[signed-by=${KEYS}]` : '';
  writeFileSync(join(home, 'sources'), ['deb', 'deb-src'].map((type) => `${type} ${signed} ${uri} ${SUITE} main\n`).join(''));
  const settings = {
    'Dir::Etc::SourceList': join(home, 'sources'),
    'Dir::Etc::SourceParts': '-',
    'Dir::State::Lists': join(home, 'lists'),
    'Dir::State::Status': join(home, 'status'),
    'Dir::Cache': join(home, 'cache'),
    'APT::Architecture': architecture,
    'APT::Architectures': architecture,
    'APT::Sandbox::User': 'root',
    'Acquire::Retries': '3',
  };
  const options = Object.entries(settings).flatMap(([name, value]) => ['--option', `${name}=${value}`]);
  const apt = (...args) => run('apt-get', [...options, '--quiet', '--quiet', '--yes', ...args], { cwd: home });
  apt('update');
  return apt;
}

/** The archive of Debian that this machine uses. */
function archive() {
  const targets = () => run('apt-get', ['indextargets', '--format', '$(REPO_URI)', 'Created-By: Packages', 'Label: Debian']).trim();
  let found;
  try {
    found = targets();
    if (found === '') {
      run('apt-get', ['update', '--quiet', '--quiet']);
      found = targets();
    }
  } catch (error) {
    if (error.code === 'ENOENT') throw new Missing('there is no apt-get, which gets the programs');
    throw error;
  }
  if (found === '') throw new Missing('apt-get knows no archive of Debian');
  return found.split('\n')[0];
}

function run(command, args, options) {
  return execFileSync(command, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'], ...options });
}
