// The pages in the packages: no link leads to a file that is not there.
//
// In: the pages of the clone; the wheels of `target/packages`. Out: failures for each link to a file that a package lacks.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, posix } from 'node:path';
import { test } from 'node:test';

import { relinked } from '../../packaging/links.mjs';
import { packMain } from '../../packaging/npm.mjs';
import { host } from '../../packaging/targets.mjs';
import { CEILING_MS, packagesOf } from './user.mjs';

const timeout = CEILING_MS;
/** Links in Markdown, those in code among them. */
const LINK = /\]\(([^()\s]+)\)/g;
const relative = (text) => [...text.matchAll(LINK)].map(([, target]) => target).filter((target) => !/^(#|[a-z]+:)/.test(target));

test('links to files become words; addresses, places in the page and code stay', () => {
  const page = [
    'See [the same\nfiles](docs/a.md#part), ![a picture](b.svg), [x](#here), [y](https://example.org/a.md).',
    '`[code](a.md)` and ``[code](`a.md`)``',
    '```js\n[code](a.md)\n```',
    '[`code`](../a.md) [d](e.md)',
  ].join('\n\n');
  assert.equal(
    relinked(page, 'docs/p.md', (text, path, link) => (path === 'docs/e.md' ? link : `<${text}: ${path}>`)),
    [
      'See <the same\nfiles: docs/docs/a.md>, <a picture: docs/b.svg>, [x](#here), [y](https://example.org/a.md).',
      '`[code](a.md)` and ``[code](`a.md`)``',
      '```js\n[code](a.md)\n```',
      '<`code`: a.md> [d](e.md)',
    ].join('\n\n'),
  );
});

test('the package of npm has the pages, and their links lead to files in it', { timeout }, (context) => {
  const home = mkdtempSync(join(tmpdir(), 'isolane-pages-'));
  context.after(() => rmSync(home, { recursive: true }));
  for (const name of ['out', 'files']) mkdirSync(join(home, name));
  const tarball = packMain([host()], join(home, 'stage'), join(home, 'out'));
  execFileSync('tar', ['--extract', '--file', tarball, '--directory', join(home, 'files')]);
  const files = readdirSync(join(home, 'files', 'package'), { recursive: true });
  const pages = files.filter((path) => path.endsWith('.md'));
  for (const path of ['README.md', 'SECURITY.md', 'CHANGELOG.md', 'docs/install.md', 'docs/kit.md']) assert.ok(pages.includes(path), path);
  const text = (path) => readFileSync(join(home, 'files', 'package', path), 'utf8');
  const dead = pages.flatMap((path) => {
    const targets = relative(text(path)).map((target) => posix.join(posix.dirname(path), target.replace(/#.*/, '')));
    return targets.filter((target) => !files.includes(target)).map((target) => `${path}: ${target}`);
  });
  assert.deepEqual(dead, []);
  // The registry shows it without the other files.
  assert.deepEqual(relative(text('README.md')), []);
  assert.match(text('README.md'), /\| Installing \(`docs\/install\.md`\) \|/);
});

test('the README of each package has no link to a file', { timeout }, () => {
  for (const tarball of packagesOf('.tgz')) assert.deepEqual(relative(execFileSync('tar', ['-xzOf', tarball, 'package/README.md'], { encoding: 'utf8' })), []);
});

test('the description of each wheel has no link to a file', { timeout }, () => {
  for (const wheel of packagesOf('.whl')) {
    const text = ofWheel(wheel, '/METADATA');
    assert.deepEqual(relative(text), []);
    assert.match(text, /^\| Installing \| platforms, images, bundlers, lock files \|$/m);
  }
});

test('each wheel declares the licences of what is linked in', { timeout }, () => {
  for (const wheel of packagesOf('.whl')) {
    const declared = [...ofWheel(wheel, '/METADATA').matchAll(/^License-File: (.*)$/gm)].map(([, name]) => name);
    assert.deepEqual(declared, ['LICENSE', 'LICENSES.txt']);
    assert.match(ofWheel(wheel, '.dist-info/licenses/LICENSES.txt'), /Rust's standard library/);
  }
});

/** The text of the file in a wheel whose path ends so. */
function ofWheel(wheel, end) {
  const program = 'import sys, zipfile; a = zipfile.ZipFile(sys.argv[1]); print(a.read(next(n for n in a.namelist() if n.endswith(sys.argv[2]))).decode())';
  return execFileSync('python3', ['-c', program, wheel, end], { encoding: 'utf8', maxBuffer: 1 << 24, env: { ...process.env, PYTHONIOENCODING: 'utf-8' } });
}
