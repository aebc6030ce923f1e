// The examples of the pages, run.
//
// In: README.md and docs/. Every block tagged `js run` or `py run` is a program of the host, run in a process of
// its own with `isolane` to import; every block tagged `ts run` is a source for the sandbox and must
// succeed in it. A line that ends in `// → value` (in Python `# → value`), or is followed by a line that
// begins so, is checked: its expression (of a `console.log` or `print`, the argument) must be deeply
// equal to the value. Blocks tagged `rust` are documentation tests of the core, of the executors or of environments, and
// those of docs/packages.md that need packages of npm are run by tests/packages; those of docs/recipes.md that need
// libraries for agents by tests/integrations; those of docs/cli.md by `crates/cli`.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

import { isHost, lackingImports, lackingPythonImports } from './imports.mjs';
import { GUIDES, ROOT, blocks } from './markdown.mjs';
import { CEILING_MS, hostProgram, pythonProgram, run, sandboxProgram } from './programs.mjs';

const PROGRAMS = { 'js run': hostProgram, 'py run': pythonProgram, 'ts run': sandboxProgram };

/** The kinds of blocks that are shown and not run. */
const SHOWN = ['mermaid', 'sh', 'text'];

/** Whether a block needs packages of npm: `tests/packages/page.test.mjs` runs it. */
const isBundled = ({ page, tag }) => page === 'docs/packages.md' && /^(js|py|sh) bundled$|^js (entry|shim)$/.test(tag);

/** Whether a block needs libraries for agents: `tests/integrations/page.test.mjs` runs it. */
const isIntegrated = ({ page, tag }) => page === 'docs/recipes.md' && /^(js|py) integrated$/.test(tag);

/** Whether a block is an example of the command line: `crates/cli/tests/it/page.rs` runs it. */
const isOfCommandLine = ({ page, tag }) => page === 'docs/cli.md' && (tag === 'console' || /^(json|ts) \S+$/.test(tag));

const examples = GUIDES.flatMap(blocks);

for (const block of examples.filter(({ tag }) => Object.hasOwn(PROGRAMS, tag))) {
  const { page, tag, line } = block;
  test(`${page}:${line} (${tag})`, { timeout: CEILING_MS }, async () => {
    // Blank lines in front, so that positions in errors are those of the page.
    const { code, output } = await run(tag, '\n'.repeat(line) + PROGRAMS[tag](block), ROOT);
    assert.equal(code, 0, output);
  });
}

test('a block imports the names of isolane that it uses, or an earlier block of its page does', { timeout: CEILING_MS }, async () => {
  const found = examples.filter(isHost('js'));
  assert.deepEqual(await lackingImports(found), []);
  const [first] = found;
  // Also a name in code that does not run.
  const lacking = (text) => lackingImports([{ ...first, text }]);
  assert.deepEqual(await lacking('const late = () => [unwrap(1), { runCode }]; // Session'), [`${first.page}:${first.line}: unwrap`, `${first.page}:${first.line}: runCode`]);
  assert.deepEqual(await lacking("import { Kit } from 'isolane/kit';\nnew Kit(); ({ current: 'describe' }).Session;"), []);
});

test('a block of Python imports the names of isolane that it uses', { timeout: CEILING_MS }, () => {
  const found = examples.filter(isHost('py'));
  assert.deepEqual(lackingPythonImports(found), []);
  const [first] = found;
  const text = 'async def late(): return isolane.run_code(Kit)\n';
  assert.deepEqual(lackingPythonImports([{ ...first, text }]), ['isolane', 'Kit'].map((name) => `${first.page}:${first.line}: ${name}`));
});

test('the README has an example of each language', () => {
  const tags = blocks('README.md').map(({ tag }) => tag);
  assert.deepEqual(['js run', 'rust', 'py run'].filter((tag) => !tags.includes(tag)), []);
});

test('every block is run, or of a kind that nobody runs', () => {
  const isRun = ({ tag }) => tag === 'rust' || Object.hasOwn(PROGRAMS, tag);
  const others = examples.filter((block) => !isRun(block) && !SHOWN.includes(block.tag) && !isBundled(block) && !isIntegrated(block) && !isOfCommandLine(block));
  assert.deepEqual(others.map(({ page, line, tag }) => `${page}:${line} (${tag})`), []);
});

test('the documentation tests have every page with Rust in it', () => {
  const crates = ['core/src/lib.rs', 'crates/executors/src/lib.rs', 'crates/environment/src/lib.rs', 'crates/notebook/src/lib.rs'];
  const sources = crates.map((file) => readFileSync(new URL(file, ROOT), 'utf8')).join('');
  const included = [...sources.matchAll(/include_str!\("(?:\.\.\/)+([^"]+)"\)/g)].map(([, page]) => page);
  const pages = new Set(examples.filter(({ tag }) => tag === 'rust').map(({ page }) => page));
  assert.deepEqual(included.sort(), [...pages].sort());
});
