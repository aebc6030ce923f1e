// The examples of the pages, run.
//
// In: README.md and docs/. Every block tagged `js run` or `py run` is a program of the host, run in a process of
// its own with `isolane` to import; every block tagged `ts run` is a source for the sandbox and must
// succeed in it. A line that ends in `// → value` (in Python `# → value`), or is followed by a line that
// begins so, is checked: its expression (of a `console.log` or `print`, the argument) must be deeply
// equal to the value. Blocks tagged `rust` are documentation tests of the core.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

import { GUIDES, ROOT, blocks } from './markdown.mjs';

const CEILING_MS = 30_000;

const PROGRAMS = { 'js run': hostProgram, 'py run': pythonProgram, 'ts run': sandboxProgram };

/** The kinds of blocks that are shown and not run. */
const SHOWN = ['mermaid', 'sh', 'text'];

const examples = GUIDES.flatMap(blocks);

for (const { page, tag, line, text } of examples.filter(({ tag }) => Object.hasOwn(PROGRAMS, tag))) {
  test(`${page}:${line} (${tag})`, { timeout: CEILING_MS }, async () => {
    // Blank lines in front, so that positions in errors are those of the page.
    const { code, output } = await run(tag, '\n'.repeat(line) + PROGRAMS[tag](text));
    assert.equal(code, 0, output);
  });
}

test('the README has an example of each language', () => {
  const tags = blocks('README.md').map(({ tag }) => tag);
  assert.deepEqual(['js run', 'rust', 'py run'].filter((tag) => !tags.includes(tag)), []);
});

test('every block is run, or of a kind that nobody runs', () => {
  const others = examples.filter(({ tag }) => tag !== 'rust' && !Object.hasOwn(PROGRAMS, tag) && !SHOWN.includes(tag));
  assert.deepEqual(others.map(({ page, line, tag }) => `${page}:${line} (${tag})`), []);
});

test('the documentation tests of the core have every page with Rust in it', () => {
  const core = readFileSync(new URL('core/src/lib.rs', ROOT), 'utf8');
  const included = [...core.matchAll(/include_str!\("\.\.\/\.\.\/([^"]+)"\)/g)].map(([, page]) => page);
  const pages = new Set(examples.filter(({ tag }) => tag === 'rust').map(({ page }) => page));
  assert.deepEqual(included.sort(), [...pages].sort());
});

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
    assert.ok(value !== undefined || !line.includes('# →'), `this is no check: ${line}`);
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
