// Results shown to people, through Node.js: the table of cases, and what only Node.js sees of them.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

import * as module from 'isolane/notebook';

const { Notebook, renderCall, renderHtml, renderTerminal, toIpynb } = module;
const cases = JSON.parse(readFileSync(new URL('../../crates/notebook/tests/cases/render.json', import.meta.url), 'utf8'));

for (const { name, function: function_, given, options, ...expected } of cases) {
  test(name, () => {
    const render = () => module[function_](given, ...(options === undefined ? [] : [options]));
    if (expected.misuse !== undefined) {
      const [path] = expected.misuse.match(/^[^\s:]+/);
      assert.throws(render, { message: expected.misuse, path });
      return;
    }
    const text = render();
    if (expected.text !== undefined) assert.equal(text, expected.text.join('\n'));
    if (expected.main !== undefined) assert.equal(text.match(/<main>\n(.*)\n<\/main>/s)[1], expected.main.join('\n'));
    for (const part of expected.has ?? []) assert.ok(text.includes(part), text);
    for (const part of expected.lacks ?? []) assert.ok(!text.includes(part), text);
  });
}

const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

test('a result is shown as it came, and by way of JSON, and so is an update', async () => {
  const updates = [];
  const code = `console.error('warned'); display({ type: 'markdown', text: '*m*' }, { type: 'image', data: '${PNG}', mimeType: 'image/png' }, { big: [1, 2.5, null] });`;
  const notebook = new Notebook();
  const cells = [{ language: 'js', title: 'one', code }, { language: 'js', code: 'null.x' }, { language: 'js', code: '3' }];
  const result = await notebook.execute({ cells }, { onUpdate: (update) => updates.push(update) });
  await notebook.close();
  const page = renderHtml(result);
  for (const part of ['<em>m</em>', '<img alt="Image of cell 1"', 'warned', 'TypeError', '1 not run']) assert.ok(page.includes(part), page);
  const copy = JSON.parse(JSON.stringify(result));
  assert.deepEqual([renderHtml(copy), renderTerminal(copy), toIpynb([copy])], [page, renderTerminal(result), toIpynb([result])]);
  assert.ok(renderTerminal(updates.at(-1), { color: 'never' }).includes('✗ [2/3] · JavaScript · error'));
  // Without colours, as no test has a terminal, or with them: the text is the same.
  const colors = renderTerminal(result, { color: 'always' });
  assert.equal(colors.replaceAll(/\x1b\[\d+m/g, ''), renderTerminal(result, { color: 'never' }));
});

test('texts of any kind are shown', () => {
  const shown = (outputs, code = '') => ({ details: { cells: [{ language: 'js', code, status: 'complete', outputs }] } });
  const torn = shown([{ type: 'text', text: 'a\ud800b' }, { type: 'json', value: { '\udc00': '\ud800', n: 2n ** 60n, nan: NaN } }], '\udfff');
  assert.equal(renderTerminal(torn, { color: 'never' }), '✓ JavaScript · complete · 0 ms\n│ \ufffd\na\ufffdb\n{"\ufffd":"\ufffd","n":1152921504606846976,"nan":null}');
  for (const text of [renderHtml(torn), toIpynb([torn])]) assert.ok(text.isWellFormed());
  const long = 'x'.repeat(1 << 20);
  assert.ok(renderHtml(shown([{ type: 'text', text: long }])).includes(long));
  assert.ok(renderTerminal(shown([{ type: 'text', text: long }])).length < 2000);
});

test('a value that nests too deeply to be a result is misuse', () => {
  let value = 1;
  for (let depth = 0; depth < 10_000; depth += 1) value = [value];
  const result = { details: { cells: [{ language: 'js', code: '', status: 'complete', outputs: [{ type: 'json', value }] }] } };
  for (const render of [() => renderHtml(result), () => renderTerminal(result), () => toIpynb([result])]) {
    assert.throws(render, { name: 'RangeError' });
  }
});

test('misuse has a path', () => {
  for (const [render, path] of [
    [() => renderHtml(undefined), 'result'],
    [() => renderHtml({ details: { cells: [() => {}] } }), 'details.cells[0]'],
    [() => renderTerminal({ details: { cells: [] } }, { widht: 3 }), 'widht'],
    [() => renderTerminal({ details: { cells: [] } }, 7), 'options'],
    [() => renderCall('x'), 'args'],
    [() => toIpynb('x'), 'results'],
    [() => toIpynb([7]), 'results[0]'],
  ]) {
    assert.throws(render, (error) => (error instanceof TypeError || error instanceof RangeError) && error.path === path && error.message.startsWith(path));
  }
});
