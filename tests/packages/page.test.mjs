// The page about packages of npm, carried out.
//
// In: `docs/packages.md`. Out: a test for each of its programs, of the libraries in its table and of the names that it
// says are missing. Files and commands of the page come first, in a folder of their own.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { after, before, test } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';

import { build } from 'esbuild';

import { ROOT, blocks, read } from '../docs/markdown.mjs';
import { CEILING_MS, hostProgram, pythonProgram, run } from '../docs/programs.mjs';
import { runCode } from '../isolation.mjs';

const PAGE = 'docs/packages.md';
const PROGRAMS = { 'js bundled': hostProgram, 'py bundled': pythonProgram };

const here = fileURLToPath(new URL('.', import.meta.url));
// Below the root, so that programs there find `isolane`.
const folder = fileURLToPath(new URL('target/packages-page/', ROOT));
const parts = blocks(PAGE);

before(() => {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  symlinkSync(`${here}node_modules`, `${folder}node_modules`, 'junction');
  for (const { tag, text } of parts) {
    const [, file] = tag.match(/^js (entry|shim)$/) ?? [];
    if (file !== undefined) writeFileSync(`${folder}${file}.js`, text);
  }
  for (const { tag, text } of parts) {
    if (tag === 'sh bundled') execFileSync('bash', ['-euc', text], { cwd: folder, stdio: 'pipe' });
  }
});

after(() => rmSync(folder, { recursive: true, force: true }));

for (const block of parts.filter(({ tag }) => Object.hasOwn(PROGRAMS, tag))) {
  const { tag, line } = block;
  test(`${PAGE}:${line} (${tag})`, { timeout: CEILING_MS }, async () => {
    const { code, output } = await run(tag, '\n'.repeat(line) + PROGRAMS[tag](block), folder);
    assert.equal(code, 0, output);
  });
}

/** Programs that use the libraries of the page's table. */
const USES = {
  lodash: `import _ from 'lib';
    export default [_.groupBy([6.1, 4.2, 6.3], Math.floor), _.chunk(['a', 'b', 'c'], 2), _.merge({ a: { b: 1 } }, { a: { c: [2] } }), _.startCase('fooBar')];`,
  'date-fns': `import { addMonths, differenceInCalendarDays, format, formatDistanceStrict, parse } from 'lib';
    const day = new Date(2024, 0, 31);
    export default [format(day, 'EEEE, do MMMM yyyy'), addMonths(day, 1), differenceInCalendarDays(day, new Date(2023, 0, 31)),
      formatDistanceStrict(0, 86_400_000), parse('02/11/2014', 'MM/dd/yyyy', day)];`,
  zod: `import { z } from 'lib';
    const Order = z.object({ id: z.uuid(), lines: z.array(z.object({ price: z.number().positive() })), mail: z.email().optional() });
    const bad = Order.safeParse({ id: 'x', lines: [{ price: -1 }], mail: 'nobody' });
    export default [Order.parse({ id: '9491d710-3185-4e06-bea0-6a2f275345e0', lines: [{ price: 1, extra: 2 }] }),
      bad.error.issues.map(({ path, message }) => [path, message]), z.toJSONSchema(Order).required];`,
  mathjs: `import { derivative, evaluate, inv, parser, simplify } from 'lib';
    const calculator = parser();
    calculator.evaluate('f(x) = x^2');
    export default [evaluate('sqrt(3^2 + 4^2)'), evaluate('12.7 cm to inch').toString(), derivative('x^2 + x', 'x').toString(),
      inv([[1, 2], [3, 4]]), simplify('2x + 3x').toString(), calculator.evaluate('f(3)')];`,
  'd3-array': `import { bin, extent, group, mean, quantile, rollup, ticks } from 'lib';
    const rows = [{ k: 'a', v: 1 }, { k: 'a', v: 3 }, { k: 'b', v: 5 }];
    export default [rollup(rows, (part) => mean(part, ({ v }) => v), ({ k }) => k), group(rows, ({ k }) => k), extent(rows, ({ v }) => v),
      quantile([1, 2, 3, 4], 0.5), ticks(0, 1, 5), bin()([1, 2, 2, 9]).map(({ length }) => length)];`,
  papaparse: `import Papa from 'lib';
    const { data, errors, meta } = Papa.parse('a;b\\n1;"x;y"\\n2', { header: true, dynamicTyping: true });
    const steps = [];
    Papa.parse('a,b\\n1,2', { step: ({ data }) => steps.push(data) });
    export default [data, errors.map(({ code }) => code), meta.delimiter, Papa.unparse([{ a: 1, b: 'x,y' }]), steps];`,
  marked: `import { marked } from 'lib';
    export default [marked.parse('# a *b*\\n\\n| c |\\n|---|\\n| 1 |'), await marked.parse('- x', { async: true }), marked.lexer('# a').length];`,
};

for (const [library, { options }] of Object.entries(table('library', ['options', 'limits']))) {
  test(`${library} does inside as outside`, { timeout: 120_000 }, async () => {
    const source = USES[library];
    assert.ok(source !== undefined, 'there is a program that uses it');
    const flags = options === '' ? [] : options.slice(1, -1).split(' ');
    execFileSync('npx', ['esbuild', library, '--bundle', '--minify', '--format=esm', ...flags, `--outfile=${library}.mjs`], { cwd: folder, stdio: 'pipe' });
    const bundle = `${folder}${library}.mjs`;
    const outside = `${folder}use-${library}.mjs`;
    writeFileSync(outside, source.replace("'lib'", JSON.stringify(pathToFileURL(bundle).href)));
    const { default: expected } = await import(pathToFileURL(outside).href);
    const inside = await runCode(source.replace("'lib'", "'./lib.js'"), { modules: { './lib.js': await readFile(bundle, 'utf8') } });
    assert.equal(inside.error, undefined);
    // Values that cross have plain prototypes, and so has a clone.
    assert.deepEqual(inside.result, structuredClone(expected));
  });
}

test('every library that a test uses is in the table', () => {
  assert.deepEqual(Object.keys(table('library', ['options', 'limits'])), Object.keys(USES));
});

/** Entries and uses that need a name that is missing: the start of the error, with or without the shim. */
const NEEDS = {
  'self or global, for the global object': [
    ["export { default } from 'lodash';", 'lib.chunk([1, 2], 1)', 'TypeError', [[1], [2]]],
    ["export { default } from 'underscore';", 'lib.first([1, 2])', 'TypeError', 1],
    ["export { default } from 'json5';", "lib.parse('{ a: 1, }')", 'TypeError', { a: 1 }],
  ],
  'Function, to compile text': [
    ["export { template as default } from 'lodash';", "lib('<%= a %>')({ a: 1 })", 'TypeError', 'TypeError'],
    ["export { default } from 'handlebars';", "lib.compile('{{a}}')({ a: 1 })", 'TypeError', 'TypeError'],
    ["export { Ajv as default } from 'ajv';", "new lib().compile({ type: 'string' })('x')", 'TypeError', 'TypeError'],
    // The remedy.
    ["export { default } from 'mustache';", "lib.render('{{a}}', { a: 1 })", '1', '1'],
  ],
  setTimeout: [["export { debounce as default } from 'lodash';", "await new Promise((resolve) => lib(resolve, 1)('called'))", 'TypeError', 'called', '--define:self=globalThis']],
  TextEncoder: [["export * as default from 'valibot';", "lib.is(lib.pipe(lib.string(), lib.maxBytes(3)), 'äö')", 'ReferenceError', false]],
  'Intl in a locale other than en-US': [
    ["export { DateTime as default } from 'luxon';", "lib.fromISO('2024-05-06').setLocale('de').toFormat('d LLLL')", '6 May', '6 May'],
    ["export { intlFormat as default } from 'date-fns';", "lib(new Date(2024, 4, 6), { locale: 'de-DE' })", '5/6/2024', '5/6/2024'],
  ],
  crypto: [
    ["export { nanoid as default } from 'nanoid';", 'lib()', 'ReferenceError', 'ReferenceError'],
    ["export { v4 as default } from 'uuid';", 'lib()', 'ReferenceError', 'ReferenceError'],
  ],
  'URL, atob': [
    [
      "export { z as default } from 'zod';",
      "[lib.url().safeParse('https://example.com'), lib.base64().safeParse('aGk='), lib.jwt().safeParse('eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.e30.eA')].map(({ success }) => success)",
      [false, false, false],
      [false, false, false],
    ],
  ],
};

for (const [need, cases] of Object.entries(NEEDS)) {
  test(`libraries that need ${need}`, { timeout: 120_000 }, async () => {
    for (const [entry, use, bare, shimmed, ...flags] of cases) {
      assert.deepEqual(await outcome(entry, use, flags), bare, `${entry} without the shim`);
      assert.deepEqual(await outcome(entry, use, ['--inject:./shim.js']), shimmed, `${entry} with the shim`);
    }
  });
}

test('every need that a test has is in the table', () => {
  const needs = Object.keys(table('the library needs', ['example', 'without', 'remedy']));
  assert.deepEqual(needs.map((need) => need.replaceAll('`', '')), Object.keys(NEEDS));
});

/** The value of an expression of `lib`, the default export of a bundled entry, or the name of the error. */
async function outcome(entry, use, flags) {
  const inject = flags.filter((flag) => flag.startsWith('--inject:')).map((flag) => folder + flag.slice('--inject:./'.length));
  const define = Object.fromEntries(flags.filter((flag) => flag.startsWith('--define:')).map((flag) => flag.slice('--define:'.length).split('=')));
  const { outputFiles } = await build({
    stdin: { contents: entry, resolveDir: folder },
    bundle: true,
    minify: true,
    format: 'esm',
    inject,
    define,
    write: false,
    logLevel: 'silent',
  });
  const sleep = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });
  const { status, error, result } = await runCode(`import lib from './lib.js'; export default ${use};`, {
    modules: { './lib.js': outputFiles[0].text },
    globals: { sleep },
  });
  return status === 'success' ? result : error.name;
}

/** The rows of the page's table with that first heading: by their first cell, the others by name. */
function table(heading, names) {
  const lines = read(PAGE).split('\n');
  const at = lines.findIndex((line) => line.startsWith(`| ${heading} |`));
  assert.ok(at >= 0, `the page has a table of '${heading}'`);
  const rows = lines.slice(at + 2, lines.indexOf('', at));
  const cells = rows.map((row) => row.split('|').slice(1, -1).map((cell) => cell.trim()));
  return Object.fromEntries(cells.map(([first, ...others]) => [first, Object.fromEntries(names.map((name, index) => [name, others[index]]))]));
}
