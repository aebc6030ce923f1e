// All benchmarks, one after another, as one report.
//
// In: `--quick` for few samples, of Rust in its development build. Out: `target/bench/report.md`, which is printed too,
// each table below its machine; and a non-zero exit code if a part failed. No figure is judged.

import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

import { edition, machine, output } from './machine.mjs';

const { values: { quick } } = parseArgs({ options: { quick: { type: 'boolean', default: false } } });
const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const FOLDER = `${ROOT}target/bench/`;
const PYTHON = `${ROOT}.venv/bin/python`;
const STEPS = `${FOLDER}steps.md`;
const PEERS = `${FOLDER}peers`;

mkdirSync(FOLDER, { recursive: true });
const where = machine();
const flags = quick ? ['--quick'] : [];
const rust = `${output('rustc', ['--version'])}${quick ? ', built for development' : ''}`;
const report = ['# Costs of a run', '', 'Read the ratios: absolute times are this machine\'s.', ''];

section(rust, steps());
section(`Node.js ${process.version}`, print('node', ['--expose-gc', 'tests/bench/node.mjs', ...flags]));
section(`Node.js ${process.version}`, print('node', ['--expose-gc', 'tests/bench/sessions.mjs', ...flags]));
if (process.platform === 'linux') {
  section(`Node.js ${process.version}`, print('node', ['tests/bench/processes.mjs', ...flags]));
}
section(`Node.js ${process.version}`, print('node', ['tests/bench/environment.mjs', ...flags]));
section(output(PYTHON, ['--version']), print(PYTHON, ['tests/bench/python.py', ...flags]));
peers();
section(rust, print('cargo', ['run', ...cargo(), '--example', 'cost', '--', ...flags]));
section(rust, print('cargo', ['run', ...cargo('isolane-http'), '--example', 'http_cost', '--', ...flags]));
if (process.platform === 'linux') {
  section(rust, print('cargo', ['run', ...cargo('isolane-executors'), '--example', 'executors_cost', '--', ...flags]));
}

const text = report.join('\n');
writeFileSync(`${FOLDER}report.md`, text);
console.log(text);

/** The steps of a run. Only a test inside the crate can measure them. */
function steps() {
  rmSync(STEPS, { force: true });
  const env = { ISOLANE_BENCH_REPORT: STEPS, ...(quick && { ISOLANE_BENCH_QUICK: '1' }) };
  print('cargo', ['test', ...cargo(), '--lib', 'testing::costs::costs', '--', '--exact', '--ignored'], env);
  return readFileSync(STEPS, 'utf8');
}

/** Sessions beside other sandboxes, and kits beside other libraries, which are installed for it. */
function peers() {
  const npm = ['--prefix', 'tests/bench/peers', '--loglevel=error'];
  const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--upgrade'];
  if (installs('npm', ['ci', '--ignore-scripts', ...npm])) {
    // Two of them are compiled, which takes minutes and a compiler: the tables say if one is missing.
    if (!quick) installs('npm', ['rebuild', 'isolated-vm', 'better-sqlite3', ...npm]);
    section(`Node.js ${process.version}`, print('node', ['tests/bench/peers.mjs', ...flags]));
    section(`Node.js ${process.version}`, print('node', ['--expose-gc', 'tests/bench/kit.mjs', ...flags]));
  }
  if (installs(PYTHON, [...pip, '--target', PEERS, '--requirement', 'tests/bench/peers/requirements.txt'])) {
    const env = { PYTHONPATH: PEERS, MONTY_BIN: `${PEERS}/bin/monty` };
    section(output(PYTHON, ['--version']), print(PYTHON, ['tests/bench/peers.py', ...flags], env));
    section(output(PYTHON, ['--version']), print(PYTHON, ['tests/bench/kit.py', ...flags], env));
  }
  notebook(pip);
}

/** Notebooks beside ipykernel, in an environment of its own: its kernels are started by name. */
function notebook(pip) {
  const python = `${FOLDER}notebook/bin/python`;
  if (!installs(PYTHON, ['-m', 'venv', `${FOLDER}notebook`])) return;
  if (!installs(python, [...pip, '--requirement', 'tests/bench/peers/notebook.txt'])) return;
  const env = { PYTHONPATH: `${ROOT}bindings-python/python` };
  section(output(python, ['--version']), print(python, ['tests/bench/notebook.py', ...flags], env));
}

/** Whether packages could be installed. The report says if not. */
function installs(command, args) {
  const { status } = spawnSync(command, args, { cwd: ROOT, stdio: ['ignore', 'ignore', 'inherit'] });
  if (status !== 0) report.push(`Left out, because it failed: \`${command} ${args.join(' ')}\`.`, '');
  return status === 0;
}

function cargo(crate = 'isolane') {
  return ['--quiet', '--locked', '--package', crate, ...(quick ? [] : ['--release'])];
}

/** The output of a part; exits if it fails. */
function print(command, args, env = {}) {
  const { status, error, stdout } = spawnSync(command, args, {
    cwd: ROOT,
    env: { ...process.env, ...env },
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  if (status !== 0) {
    console.error(stdout);
    throw error ?? new Error(`${command} ${args.join(' ')}: exit code ${status}`);
  }
  return stdout;
}

/** Tables, each below its machine. */
function section(version, tables) {
  if (!/^### /m.test(tables)) throw new Error(`no table of ${version}:\n${tables}`);
  const caption = `${where}; ${version}; ${edition()}`;
  report.push(tables.trim().replace(/^### .*$/gm, (title) => `${title}\n\n${caption}`), '');
}
