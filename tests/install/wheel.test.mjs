// The wheel, as a user gets it: installed by pip from a folder into an empty environment, without a compiler, it runs.
//
// In: `target/packages`, which `npm run package` makes; in `ISOLANE_PYTHONS` the interpreters, with `:` between them, or
// nothing for `python3`. Out: a test for each interpreter.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { delimiter, dirname, join } from 'node:path';
import process from 'node:process';
import { test } from 'node:test';

import { blocks } from '../docs/markdown.mjs';
import { pythonProgram } from '../docs/programs.mjs';
import { CEILING_MS, Machine, ROOT, packagesOf } from './user.mjs';

const PYTHONS = process.env.ISOLANE_PYTHONS?.split(delimiter) ?? ['python3'];

for (const interpreter of PYTHONS) {
  test(`the first steps in ${interpreter}`, { timeout: CEILING_MS }, (context) => {
    const machine = new Machine();
    context.after(() => machine.remove());
    const home = machine.folder('venv');
    execFileSync(interpreter, ['-m', 'venv', home], { stdio: ['ignore', 'ignore', 'inherit'] });
    // As `activate` does.
    machine.env.PATH = [join(home, 'bin'), machine.env.PATH].join(delimiter);
    const python = (...args) => machine.run(home, join(home, 'bin', 'python'), ...args);
    // pip takes the wheel that is for this interpreter.
    const folder = dirname(packagesOf('.whl')[0]);
    python('-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--no-index', '--only-binary=:all:', '--find-links', folder, 'isolane');
    const [block] = blocks('README.md').filter(({ tag }) => tag === 'py run');
    python('-W', 'error', '-c', pythonProgram(block));
    python('-W', 'error', join(ROOT, 'tests', 'install', 'first_steps.py'));
    assert.match(python('-m', 'pip', 'list', '--disable-pip-version-check'), /^isolane +\d+\.\d+\.\d+$/m);
    assert.equal(python('-m', 'pip', 'check', '--disable-pip-version-check'), 'No broken requirements found.');
  });
}
