// The README's examples, run.
//
// In: README.md. Every block tagged `js run` or `py run` is a program of the host, run in a process of
// its own with `isolane` to import; every block tagged `ts run` is a source for the sandbox and must
// succeed in it. A line that ends in `// → value` (in Python `# → value`), or is followed by a line that
// begins so, is checked: its expression (of a `console.log` or `print`, the argument) must be deeply
// equal to the value.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

const CEILING_MS = 30_000;
const ROOT = new URL('../..', import.meta.url);

const PROGRAMS = { 'js run': hostProgram, 'py run': pythonProgram, 'ts run': sandboxProgram };

for (const { tag, line, text } of blocks(readFileSync(new URL('README.md', ROOT), 'utf8'))) {
  test(`README.md:${line} (${tag})`, { timeout: CEILING_MS }, async () => {
    // Blank lines in front, so that positions in errors are those of the README.
    const { code, output } = await run(tag, '\n'.repeat(line) + PROGRAMS[tag](text));
    assert.equal(code, 0, output);
  });
}

/** The tagged blocks: the line of the fence, and what is between the fences. */
function blocks(markdown) {
  const found = [];
  let open = null;
  markdown.split('\n').forEach((text, index) => {
    if (open === null && text.startsWith('```')) open = { tag: text.slice(3).trim(), line: index + 1, lines: [] };
    else if (open !== null && text === '```') {
      if (Object.hasOwn(PROGRAMS, open.tag)) found.push({ ...open, text: open.lines.join('\n') });
      open = null;
    } else open?.lines.push(text);
  });
  assert.ok(found.length > 0, 'README.md has blocks to run');
  return found;
}

/** A block of the host: blocks after the first leave the import of the package to the reader. */
function hostProgram(text) {
  const imports = ["import __assert from 'node:assert/strict';"];
  if (!text.includes("from 'isolane'")) imports.push("import { runCode, Runtime, SerializationError } from 'isolane';");
  return imports.join(' ') + withChecks(text);
}

/** A block of a Python host. */
function pythonProgram(text) {
  const lines = text.split('\n').map((line) => {
    const [, indent, expression, value] = line.match(/^( *)print\((.*)\)\s*# → (.+)$/) ?? [];
    return value === undefined ? line : `${indent}__got = ${expression}; assert __got == ${value}, __got`;
  });
  return lines.join('\n');
}

/** A block of the sandbox: run with a `__assert` of the host. */
function sandboxProgram(text) {
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

function run(tag, program) {
  const [command, args] =
    tag === 'py run' ? ['.venv/bin/python', ['-W', 'error', '-c', program]] : [process.execPath, ['--input-type=module', '--eval', program]];
  return new Promise((resolve) => {
    execFile(command, args, { cwd: ROOT, timeout: CEILING_MS }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : (error.code ?? error.signal), output: `${stdout}${stderr}` });
    });
  });
}
