// The pages themselves: links, names, sizes, and the drawing of the rooms.
//
// In: every page of the project, and its tree. Out: a failure for each link that leads nowhere, each file and command
// that a page names and that is not there, each page that has grown too long, and each wall that is drawn otherwise
// than `core/tests/it/walls.rs` keeps it.

import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { posix } from 'node:path';
import { test } from 'node:test';

import { GUIDES, INSIDE, PAGES, ROOT, anchors, blocks, codeSpans, links, read } from './markdown.mjs';

/** The most that a page may have, in bytes. */
const MOST_BYTES = { 'README.md': 10_000, 'ARCHITECTURE.md': 14_000 };

/** Rooms that hardly anybody may name: each of their arrows is drawn. */
const ALL_DRAWN = ['error', 'testing'];

for (const page of PAGES) {
  test(`the links of ${page} lead somewhere`, () => {
    assert.deepEqual(links(page).flatMap((link) => broken(page, link)), []);
  });
}

for (const page of INSIDE) {
  test(`the files that ${page} names are there`, () => {
    const missing = codeSpans(page).filter(({ code }) => isPath(code) && !exists(code));
    assert.deepEqual(missing.map(({ code, line }) => `${page}:${line}: ${code}`), []);
  });
}

for (const page of new Set([...INSIDE, ...GUIDES])) {
  test(`the commands that ${page} names are there`, () => {
    const { scripts } = JSON.parse(read('package.json'));
    const named = [...read(page).matchAll(/\bnpm (?:run ([\w:-]+)|(test)\b)/g)].map(([, run, other]) => run ?? other);
    assert.deepEqual(named.filter((name) => !Object.hasOwn(scripts, name)), []);
  });
}

for (const [page, most] of Object.entries(MOST_BYTES)) {
  test(`${page} has at most ${most} bytes`, () => {
    const bytes = Buffer.byteLength(read(page));
    assert.ok(bytes <= most, `${bytes} bytes`);
  });
}

test('the README or ARCHITECTURE.md links every page of docs', () => {
  const linked = ['README.md', 'ARCHITECTURE.md'].flatMap(links).map(({ target }) => target.split('#')[0]);
  assert.deepEqual(GUIDES.filter((page) => page.startsWith('docs/') && !linked.includes(page)), []);
});

test('the rooms are drawn as their walls stand', () => {
  const allowed = walls();
  const drawn = drawing();
  assert.deepEqual([...drawn.keys()].filter((room) => !allowed.has(room)), []);
  for (const [room, names] of allowed) {
    const reached = new Set([...below(drawn, room)].filter((name) => !ALL_DRAWN.includes(name)));
    for (const name of drawn.get(room) ?? []) if (ALL_DRAWN.includes(name)) reached.add(name);
    assert.deepEqual([...reached].sort(), [...names].sort(), room);
  }
});

/** Why a link leads nowhere: nothing, or one line. */
function broken(page, { target, line }) {
  if (/^[a-z]+:/.test(target)) return [];
  const [path, anchor] = target.split('#');
  const file = path === '' ? page : posix.join(posix.dirname(page), path);
  if (file.startsWith('../') || !exists(file)) return [`${page}:${line}: there is no ${file}`];
  if (anchor === undefined || (file.endsWith('.md') && anchors(file).has(anchor))) return [];
  return [`${page}:${line}: ${file} has no #${anchor}`];
}

/** Whether code in a text names a file or a folder of the project. */
function isPath(code) {
  if (!/^[\w.-]+(\/[\w.-]+)*\/?$/.test(code)) return false;
  // Endings, and what a build makes.
  if (/^\.\w+$/.test(code) || code.startsWith('target/')) return false;
  return code.includes('/') || /\.(json|md|mjs|py|rs|svg|toml|ts)$/.test(code);
}

function exists(path) {
  return existsSync(new URL(path, ROOT));
}

/** Each room of the core with those that it may name, as the test of the walls has them. */
function walls() {
  const code = readFileSync(new URL('core/tests/it/walls.rs', ROOT), 'utf8');
  const [, table] = code.match(/const ROOMS: .*? = &\[\n(.*?)\n\];/s) ?? [];
  assert.ok(table !== undefined, 'walls.rs has a table of rooms');
  const rows = [...table.matchAll(/\(\s*"([\w/]+)",\s*&\[([^\]]*)\]/g)];
  assert.ok(rows.length > 0, 'the table of rooms has rows');
  return new Map(rows.map(([, room, names]) => [room, [...names.matchAll(/"([\w/]+)"/g)].map(([, name]) => name)]));
}

/** Each room of the drawing in ARCHITECTURE.md with those that its arrows point to. */
function drawing() {
  const drawings = blocks('ARCHITECTURE.md').filter(({ tag, text }) => tag === 'mermaid' && text.startsWith('graph'));
  assert.equal(drawings.length, 1, 'one drawing of the rooms');
  const arrows = new Map();
  const add = (from, to) => arrows.set(from, [...(arrows.get(from) ?? []), to]);
  for (const line of drawings[0].text.split('\n')) {
    const [, from, to] = line.match(/^\s*([\w/]+) --> (.+)$/) ?? [];
    // `rust` stands beside the rooms: it names what every binding names.
    if (from !== undefined && from !== 'rust') for (const name of to.split(' & ')) add(from, name);
  }
  return arrows;
}

/** All rooms that can be reached by the arrows. */
function below(arrows, room) {
  const reached = new Set();
  const next = [room];
  while (next.length > 0) {
    for (const name of arrows.get(next.pop()) ?? []) {
      if (reached.has(name)) continue;
      reached.add(name);
      // Nobody names a room through these: each of their arrows stands for itself.
      if (!ALL_DRAWN.includes(name)) next.push(name);
    }
  }
  return reached;
}
