// Packages of npm in an isolate: nothing that Node.js runs is refused.
//
// In: much-used packages of pure JavaScript, each bundled and minified into one module. Out: a test for each. Node.js
// imports the module, and an isolate runs it as JavaScript and as TypeScript. All three must have the same exports. The
// compiler of TypeScript must compile a program inside as it does outside.

import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';

import { build } from 'esbuild';
import typescript from 'typescript';

import { runCode } from '../isolation.mjs';

const here = fileURLToPath(new URL('.', import.meta.url));
const folder = await mkdtemp(join(tmpdir(), 'isolane-packages-'));
after(() => rm(folder, { recursive: true }));

// Syntax trees of several megabytes of source take some hundred.
const memoryLimitBytes = 2 ** 30;
const timeout = 120_000;

/** Packages of several entries, of which the main one needs Node.js. TypeScript has a test of its own. */
const PARTS = {
  typescript: [],
  prettier: ['prettier/standalone', 'prettier/plugins/babel', 'prettier/plugins/typescript', 'prettier/plugins/yaml'],
};

/** The exports of a bundled package, by name: their types, and the names within the default export. */
const DESCRIBE = `(all) => {
  const types = (object) => Object.keys(object ?? {}).sort().map((key) => [key, typeof object[key]]);
  return { own: types(all), inner: typeof all.default === 'object' ? types(all.default) : [] };
}`;

const describe = (0, eval)(DESCRIBE);

/** Bundles a package into one minified module, whose default export is the namespace of the package. */
async function bundled(specifier) {
  const outfile = join(folder, `${specifier.replace(/\W/g, '_')}.mjs`);
  await build({
    stdin: { contents: `import * as all from ${JSON.stringify(specifier)}; export default all;`, resolveDir: here },
    bundle: true,
    minify: true,
    format: 'esm',
    outfile,
    logLevel: 'silent',
    platform: 'browser',
    define: { 'process.env.NODE_ENV': '"production"' },
    charset: 'utf8',
    banner: { js: 'globalThis.self ??= globalThis;' },
  });
  return outfile;
}

const { dependencies } = JSON.parse(await readFile(join(here, 'package.json'), 'utf8'));
const specifiers = Object.keys(dependencies).flatMap((name) => PARTS[name] ?? [name]);

for (const specifier of specifiers) {
  test(`${specifier} runs inside as outside`, { timeout }, async () => {
    const file = await bundled(specifier);
    const source = await readFile(file, 'utf8');
    const expected = describe((await import(pathToFileURL(file).href)).default);
    assert.ok(expected.own.length > 0, 'the package has exports');
    for (const language of ['javascript', 'typescript']) {
      const run = await runCode(`import all from './package.js'; export default (${DESCRIBE})(all);`, {
        modules: { './package.js': source },
        language,
        memoryLimitBytes,
      });
      assert.deepEqual(run.error, undefined, language);
      assert.deepEqual(run.result, expected, language);
    }
  });
}

test('the compiler of TypeScript compiles a program inside as outside', { timeout }, async () => {
  const file = await bundled('typescript');
  const program = 'enum Kind { A, B = 4 }\nexport const of = <T,>(kind: Kind, value: T): [Kind, T] => [kind, value];\n';
  const compile = (ts, text) => ts.transpileModule(text, { compilerOptions: { target: 'ESNext' } }).outputText;
  const expected = compile(typescript, program);
  assert.match(expected, /Kind\[Kind\["B"\] = 4\]/);
  const { error, result } = await runCode(
    `import all from './package.js'; export default (text) => (${compile})(all.default ?? all, text);`,
    {
      modules: { './package.js': await readFile(file, 'utf8') },
      execute: { args: [program] },
      language: 'javascript',
      memoryLimitBytes,
    },
  );
  assert.equal(error, undefined);
  assert.equal(result, expected);
});
