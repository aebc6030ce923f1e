// Output of the demo: headings, reports as they come, tables, and failed runs.
//
// A failed run is shown as the author of its code would want to see it. Control characters of the sandbox's texts are
// replaced, because a terminal obeys them.

import { inspect } from 'node:util';

const TAB = 4;
const FRAMES = 5;

const colored = process.stdout.isTTY === true && !process.env.NO_COLOR;
const paint = (code) => (text) => (colored ? `\u001b[${code}m${text}\u001b[0m` : text);
const bold = paint(1);
const faint = paint(2);
const red = paint(31);
const green = paint(32);
const yellow = paint(33);

export function heading(text) {
  console.log(`\n${bold(text)}`);
}

export function note(text) {
  console.log(`  ${text}`);
}

/** One report, with the milliseconds since the run began. */
export function report(elapsed, { step, ...value }) {
  const fields = Object.entries(value).map(([key, field]) => `${key} ${typeof field === 'number' ? number(field) : field}`);
  console.log(`  ${faint(`+${elapsed.toFixed(0).padStart(4)} ms`)}  ${harmless(padded(step, 10) + fields.join('  '))}`);
}

export function logs(entries) {
  for (const { level, args } of entries) {
    const color = { error: red, warn: yellow }[level] ?? faint;
    const text = args.map((arg) => (typeof arg === 'string' ? harmless(arg) : inspect(arg, { colors: colored, breakLength: Infinity, compact: true })));
    console.log(`  ${color(padded(level, 6))}${text.join(' ').replaceAll('\n', '\n        ')}`);
  }
}

/** Rows as a table. A column has a heading and a function for the cell of a row; numbers are aligned to the right. */
export function table(rows, columns) {
  const names = Object.keys(columns);
  const cells = rows.map((row) => names.map((name) => columns[name](row)));
  const right = names.map((_, index) => cells.every((row) => typeof row[index] === 'number'));
  const texts = cells.map((row) => row.map((cell) => (typeof cell === 'number' ? number(cell) : harmless(cell))));
  const widths = names.map((name, index) => Math.max(...[name, ...texts.map((row) => row[index])].map(width)));
  const line = (row) => row.map((text, index) => padded(text, widths[index], right[index])).join('  ').trimEnd();
  console.log(`  ${faint(line(names))}`);
  for (const row of texts) console.log(`  ${line(row)}`);
}

/** The time and memory of a run. */
export function cost({ durationMs, memoryUsedBytes }) {
  const memory = memoryUsedBytes === undefined ? '' : `, ${(memoryUsedBytes / 2 ** 20).toFixed(1)} MiB at its peak`;
  console.log(`  ${faint(`${durationMs.toFixed(1)} ms${memory}`)}`);
}

/** A run that did not succeed: the error, its place, the line with a caret below the place, and the stack. */
export function failure(result, sources) {
  const { name, message, filename, line, column, stack } = result.error;
  const place = line === undefined ? '' : `  ${faint(`${filename}:${line}:${column}`)}`;
  console.log(`  ${red(result.status)}  ${bold(harmless(name))}: ${harmless(message)}${place}`);
  const text = sources[filename]?.split('\n')[line - 1];
  if (text !== undefined) {
    const [shown, caret] = underlined(harmless(text), column);
    const margin = String(line);
    console.log(`  ${faint(`${margin} |`)} ${shown}`);
    console.log(`  ${faint(`${' '.repeat(margin.length)} |`)} ${red(caret)}`);
  }
  const frames = (stack ?? '').split('\n').filter((line) => line.startsWith('    at '));
  for (const frame of frames.slice(0, FRAMES)) console.log(`  ${faint(harmless(frame))}`);
  if (frames.length > FRAMES) console.log(faint(`      … ${frames.length - FRAMES} more`));
  logs(result.logs);
}

export function verdict(wrong) {
  if (wrong.length === 0) console.log(`  ${green('as intended')}`);
  for (const text of wrong) console.log(`  ${red('NOT AS INTENDED')}  ${text}`);
}

/** A number with separators between thousands, whole or with two decimals. */
export function number(value) {
  const [whole, decimals] = (Number.isInteger(value) ? String(value) : value.toFixed(2)).split('.');
  const apart = whole.replace(/\B(?=(\d{3})+$)/g, ',');
  return decimals === undefined ? apart : `${apart}.${decimals}`;
}

/**
 * A source line as a terminal shows it, and a line with a caret below its `column` (from 1, in UTF-16
 * units, as in errors). Tabs become blanks; a wide character takes two cells, a combining one none.
 */
export function underlined(text, column) {
  let shown = '';
  let cells = 0;
  let caret;
  let unit = 0;
  for (const char of text) {
    if (unit >= column - 1) caret ??= cells;
    unit += char.length;
    const blanks = char === '\t' ? TAB - (cells % TAB) : 0;
    shown += blanks > 0 ? ' '.repeat(blanks) : char;
    cells += blanks > 0 ? blanks : width(char);
  }
  return [shown, `${' '.repeat(caret ?? cells)}^`];
}

/** A text of the sandbox with each control character except tab and line break replaced; its length stays the same. */
function harmless(text) {
  return text.replace(/[^\P{Cc}\t\n]/gu, '\ufffd');
}

/** The number of a terminal's cells that a text takes. */
function width(text) {
  let cells = 0;
  for (const char of text) {
    if (/\p{Mark}|\p{Cf}/u.test(char)) continue;
    cells += isWide(char) ? 2 : 1;
  }
  return cells;
}

/** East Asian wide and full-width characters, and emoji that are shown as pictures. */
function isWide(char) {
  const point = char.codePointAt(0);
  return (
    (point >= 0x1100 && point <= 0x115f) ||
    (point >= 0x2e80 && point <= 0xa4cf && point !== 0x303f) ||
    (point >= 0xac00 && point <= 0xd7a3) ||
    (point >= 0xf900 && point <= 0xfaff) ||
    (point >= 0xfe30 && point <= 0xfe6f) ||
    (point >= 0xff00 && point <= 0xff60) ||
    (point >= 0xffe0 && point <= 0xffe6) ||
    (point >= 0x20000 && point <= 0x3fffd) ||
    /\p{Emoji_Presentation}/u.test(char)
  );
}

function padded(text, cells, right = false) {
  const blanks = ' '.repeat(Math.max(0, cells - width(text)));
  return right ? blanks + text : text + blanks;
}
