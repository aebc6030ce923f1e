// The settings that docs/install.md gives for bundlers and types.
//
// In: the page; the types of the package. Out: failures if its setting for webpack leaves a part of the package in the
// bundle, and if the types need more, or less, than the page says.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { ROOT, read } from './markdown.mjs';

const CEILING_MS = 180_000;
const CLONE = fileURLToPath(ROOT);
const MANIFEST = JSON.parse(readFileSync(join(CLONE, 'package.json'), 'utf8'));
/** The names that a program imports: `isolane`, `isolane/kit` and so on. */
const NAMES = Object.keys(MANIFEST.exports).filter((path) => !path.endsWith('.json')).map((path) => `isolane${path.slice(1)}`);

test('the setting for webpack leaves each part of the package outside, and nothing else', () => {
  const [, setting] = /^ *externals: (\[.*\]),$/m.exec(read('docs/install.md'));
  // The setting is an expression of a configuration in JavaScript.
  const [decide] = new Function(`return ${setting}`)();
  const decided = (request) => {
    let answer = 'unanswered';
    decide({ request }, (error, external) => (answer = error ?? external));
    return answer;
  };
  assert.equal(NAMES.length, 5);
  for (const name of NAMES) assert.equal(decided(name), `commonjs ${name}`);
  for (const other of ['isolaned', './isolane', '@scope/isolane', 'node:fs']) assert.equal(decided(other), undefined);
});

test('the types need those of Node.js or of the DOM, and no other', { timeout: CEILING_MS }, (context) => {
  const home = mkdtempSync(join(tmpdir(), 'isolane-types-'));
  context.after(() => rmSync(home, { recursive: true }));
  mkdirSync(join(home, 'node_modules'));
  const link = (name, ...place) => symlinkSync(join(CLONE, ...place), join(home, 'node_modules', name));
  link('isolane');
  link('@types', 'node_modules', '@types');
  link('undici-types', 'node_modules', 'undici-types');
  const imports = NAMES.map((name, index) => `import * as part${index} from '${name}';\n`);
  writeFileSync(join(home, 'app.ts'), `${imports.join('')}export const parts = [${NAMES.map((_, index) => `part${index}`)}];\n`);
  const compiled = (compiler, lib, types) => {
    const options = { noEmit: true, strict: true, preserveSymlinks: true, target: 'es2022', module: 'nodenext', lib, types };
    writeFileSync(join(home, 'tsconfig.json'), JSON.stringify({ compilerOptions: options, files: ['app.ts'] }));
    const { stdout } = spawnSync(process.execPath, [join(CLONE, 'node_modules', compiler, 'bin', 'tsc'), '-p', home], { encoding: 'utf8', timeout: CEILING_MS });
    return stdout.trim();
  };
  for (const compiler of ['typescript', 'typescript-5']) {
    assert.equal(compiled(compiler, ['es2022', 'dom'], []), '', compiler);
    assert.equal(compiled(compiler, ['es2022'], ['node']), '', compiler);
    const missing = [...compiled(compiler, ['es2022'], []).matchAll(/Cannot find name '(\w+)'|error/g)].map(([, name]) => name).filter(Boolean);
    assert.deepEqual([...new Set(missing)].sort(), ['AbortSignal', 'URL'], compiler);
  }
});
