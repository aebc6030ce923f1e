// Blocks of the pages as programs.
//
// In: a block, with its checks (`examples.test.mjs` has their form). Out: a program that fails unless each
// check holds, and a process that runs it.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import process from 'node:process';
import { fileURLToPath } from 'node:url';

import { takenImports } from './imports.mjs';
import { ROOT } from './markdown.mjs';

export const CEILING_MS = 120_000;

const PYTHON = fileURLToPath(new URL('.venv/bin/python', ROOT));

/** A block of the host, with what it takes over from earlier blocks of its page. */
export function hostProgram(block) {
  return `import __assert from 'node:assert/strict'; ${takenImports(block)}${withChecks(block.text)}`;
}

/** A block of a Python host. */
export function pythonProgram({ text }) {
  const lines = text.split('\n').map((line) => {
    const [, indent, expression, value] = line.match(/^( *)print\((.*)\)\s*# → (.+)$/) ?? [];
    assert.ok(value !== undefined || !line.includes('# →'), `this is no check: ${line}`);
    return value === undefined ? line : `${indent}__got = ${expression}; assert __got == ${value}, __got`;
  });
  return lines.join('\n');
}

/** A block of the sandbox: run with a `__assert` of the host. */
export function sandboxProgram({ text }) {
  const source = `${withChecks(text)}\nexport default 'ran';`;
  return `import __assert from 'node:assert/strict'; import { runCode } from 'isolane';
    const { status, error } = await runCode(${JSON.stringify(source)}, {
      globals: { __assert: { deepStrictEqual: (a, b) => void __assert.deepStrictEqual(a, b) } },
    });
    __assert.equal(status, 'success', JSON.stringify(error));`;
}

/** The text with each `// → value` as an assertion, on the same lines. */
function withChecks(text) {
  const lines = text.split('\n');
  lines.forEach((line, index) => {
    const [, before, value] = line.match(/^(.*?)\s*\/\/ → (.+)$/) ?? [];
    if (value === undefined) return;
    const at = before.trim() === '' ? index - 1 : index;
    const statement = (at === index ? before : lines[at]).trim().replace(/;$/, '');
    const expression = statement.match(/^console\.log\((.*)\)$/)?.[1] ?? statement;
    lines[at] = `__assert.deepStrictEqual(${expression}, ${value});`;
    if (at !== index) lines[index] = '';
  });
  return lines.join('\n');
}

/** Runs a program in a folder: its exit code, or the signal that ended it, and its output. */
export function run(tag, program, cwd) {
  const [command, args] =
    tag.startsWith('py ') ? [PYTHON, ['-W', 'error', '-c', program]] : [process.execPath, ['--input-type=module', '--eval', program]];
  return new Promise((resolve) => {
    execFile(command, args, { cwd, timeout: CEILING_MS }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : (error.code ?? error.signal), output: `${stdout}${stderr}` });
    });
  });
}
