// The order of the Node package's folders: no module needs one that needs it, types included, and a folder names only
// those below it. A file at the top is an entry of the package: it exports from folders and no module imports it.
//
// In: the modules of `bindings-node/lib`. Out: a failure that names each import against the order, and each circle. The
// rules themselves are shown to bite.

import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const LIB = join(dirname(fileURLToPath(import.meta.url)), '../../bindings-node/lib');

/** Each folder, and the others that it may name. The types of the package's interface stand outside of the folders. */
const FOLDERS = {
  addon: [],
  crossing: ['addon'],
  run: ['addon', 'crossing'],
  session: ['addon', 'crossing', 'run'],
  door: ['addon', 'crossing', 'run', 'session'],
  kit: ['addon', 'crossing', 'run', 'session', 'door'],
  executors: ['addon', 'crossing', 'run', 'session', 'door'],
  environment: ['addon', 'crossing', 'run', 'session', 'door'],
  notebook: ['addon', 'crossing', 'run', 'session', 'door', 'kit'],
};

const ENTRIES = ['index.ts', 'kit.ts', 'executors.ts', 'environment.ts', 'notebook.ts'];

/** Every form of import: of values and types, of a whole module for its effects, in a type, and exports of another module. */
const IMPORT = /(?:\bfrom|\bimport|\bimport\(|\brequire\()\s*['"](\.[^'"]*)['"]/g;

/** The modules that each module names, from the text of each. */
function graph(texts) {
  return new Map(
    Object.entries(texts).map(([path, text]) => {
      const named = [...text.matchAll(IMPORT)].map(([, specifier]) => posix.join(posix.dirname(path), specifier).replace(/\.js$/, '.ts'));
      return [path, [...new Set(named)].filter((to) => !to.startsWith('../'))];
    }),
  );
}

const folderOf = (path) => (path.includes('/') ? path.split('/')[0] : '');

/** Imports against the order, and files in no folder. */
function breaches(modules) {
  const found = [];
  for (const [path, named] of modules) {
    const folder = folderOf(path);
    if (folder === '' ? !ENTRIES.includes(path) : FOLDERS[folder] === undefined) found.push(`${path} is in no folder of the order`);
    for (const to of named) {
      const other = folderOf(to);
      if (!modules.has(to)) found.push(`${path} names ${to}, which does not exist`);
      else if (other === '' || (folder !== '' && other !== folder && !FOLDERS[folder]?.includes(other))) found.push(`${path} names ${to}`);
    }
  }
  return found;
}

/** The modules of each circle, in the order of their names: modules that reach each other. */
function circles(modules) {
  const reached = new Map([...modules.keys()].map((path) => [path, reachable(modules, path)]));
  const found = new Set();
  for (const [path, others] of reached) {
    if (others.has(path)) found.add([...others].filter((other) => reached.get(other)?.has(path)).sort().join(' '));
  }
  return [...found];
}

function reachable(modules, from) {
  const seen = new Set();
  const left = [...modules.get(from)];
  while (left.length > 0) {
    const path = left.pop();
    if (seen.has(path)) continue;
    seen.add(path);
    left.push(...(modules.get(path) ?? []));
  }
  return seen;
}

const texts = Object.fromEntries(
  readdirSync(LIB, { recursive: true })
    .map((path) => path.replaceAll('\\', '/'))
    .filter((path) => path.endsWith('.ts'))
    .map((path) => [path, readFileSync(join(LIB, path), 'utf8')]),
);

test('folders of the Node package name only those below them', () => {
  assert.ok(Object.keys(texts).length > 40);
  assert.deepEqual(breaches(graph(texts)), []);
});

test('no module of the Node package needs one that needs it', () => {
  assert.deepEqual(circles(graph(texts)), []);
});

test('the order has no circle of its own', () => {
  const order = new Map(Object.entries(FOLDERS));
  assert.deepEqual(circles(order), []);
});

test('each rule bites', () => {
  const with_ = (path, line) => graph({ ...texts, [path]: `${texts[path] ?? ''}\n${line}\n` });
  for (const line of [
    "import type { Run } from '../run/run.js';",
    "import { Run } from '../run/run.js';",
    "import {\n  type Run,\n} from '../run/run.js';",
    "export { Run } from '../run/run.js';",
    "export * from '../run/run.js';",
    "import '../run/run.js';",
    "type Run = import('../run/run.js').Run;",
  ]) {
    assert.deepEqual(breaches(with_('crossing/encode.ts', line)), ['crossing/encode.ts names run/run.ts'], line);
    const [circle, ...others] = circles(with_('crossing/encode.ts', line));
    assert.match(circle, /crossing\/encode\.ts .*run\/run\.ts/, line);
    assert.deepEqual(others, []);
  }
  assert.deepEqual(circles(with_('run/throws.ts', "import type { Run } from './run.js';")).length, 1);
  assert.deepEqual(circles(with_('run/keyed.ts', "import type { Key } from './keyed.js';")), ['run/keyed.ts']);
  assert.deepEqual(breaches(with_('kit/kit.ts', "import { Notebook } from '../notebook/notebook.js';")), ['kit/kit.ts names notebook/notebook.ts']);
  assert.deepEqual(breaches(with_('door/door.ts', "import { Kit } from '../kit.js';")), ['door/door.ts names kit.ts']);
  assert.deepEqual(breaches(with_('bridge.ts', '')), ['bridge.ts is in no folder of the order']);
  assert.deepEqual(breaches(with_('adapters/page.ts', '')), ['adapters/page.ts is in no folder of the order']);
});
