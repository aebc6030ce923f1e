// A user's machine: an empty folder, and a PATH with Node.js alone.
//
// In: the packages of `target/packages`. Out: commands that run in that folder without a compiler, without cargo, and
// without the settings of npm and pip that this machine has.

import { execFile, execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));
export const CEILING_MS = 180_000;

const PACKAGES = join(ROOT, 'target', 'packages');

/** The packages with that ending. Fails if `npm run package` has made none. */
export function packagesOf(ending) {
  const names = readdirSync(PACKAGES).filter((name) => name.endsWith(ending));
  if (names.length === 0) throw new Error(`there is no ${ending} in target/packages: npm run package -- --built`);
  return names.map((name) => join(PACKAGES, name));
}

/**
 * A machine with a folder, `home`. In: the executable of Node.js; more variables of the environment; the milliseconds that a
 * command may take.
 */
export class Machine {
  #ceilingMs;

  constructor(node = process.execPath, { variables = {}, ceilingMs = CEILING_MS } = {}) {
    this.#ceilingMs = ceilingMs;
    this.home = realpathSync(mkdtempSync(join(tmpdir(), 'isolane-install-')));
    const path = join(this.home, 'bin');
    mkdirSync(path);
    symlinkSync(node, join(path, 'node'));
    this.env = { PATH: path, HOME: this.home, TMPDIR: this.home, ...variables };
  }

  folder(name) {
    const folder = join(this.home, name);
    mkdirSync(folder);
    return folder;
  }

  /** Runs a command and returns its output. */
  run(cwd, command, ...args) {
    return execFileSync(command, args, { cwd, env: this.env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'], timeout: this.#ceilingMs }).trim();
  }

  /** Runs a program of CommonJS, or of ECMAScript modules with `--input-type=module` among the flags. */
  node(cwd, program, ...flags) {
    return this.run(cwd, join(this.env.PATH, 'node'), ...flags, '--eval', program);
  }

  npm(cwd, ...args) {
    return this.run(cwd, join(this.env.PATH, 'node'), ...this.#npm(args));
  }

  /** Runs npm while this process does other things: its registry. Returns the exit code and the output. */
  npmBeside(cwd, ...args) {
    return new Promise((resolve) => {
      execFile(join(this.env.PATH, 'node'), this.#npm(args), { cwd, env: this.env, timeout: this.#ceilingMs }, (error, stdout, stderr) => {
        resolve({ code: error === null ? 0 : (error.code ?? error.signal), text: `${stdout}${stderr}` });
      });
    });
  }

  #npm(args) {
    const options = ['--no-audit', '--no-fund', '--loglevel=error', '--ignore-scripts', `--cache=${join(this.home, 'cache')}`];
    return [npmProgram(), ...args, ...options];
  }

  remove() {
    rmSync(this.home, { recursive: true, force: true });
  }
}

/** The JavaScript of npm: the one that runs this test, or the one on PATH. */
function npmProgram() {
  if (process.env.npm_execpath?.endsWith('.js')) return process.env.npm_execpath;
  for (const folder of process.env.PATH.split(delimiter)) {
    try {
      return realpathSync(join(folder, 'npm'));
    } catch {
      // The next folder of the path may have npm.
    }
  }
  throw new Error('there is no npm');
}
