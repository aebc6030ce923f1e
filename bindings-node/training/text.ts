// Text: built up, taken apart, searched and replaced.

const WORDS = 'invoice parcel refund window basket copper meadow signal planet orange'.split(' ');

/** Lines of a log, piece by piece. */
function log(lines: number): string {
  let text = '';
  for (let i = 0; i < lines; i++) {
    const level = i % 17 === 0 ? 'ERROR' : i % 5 === 0 ? 'warn' : 'info';
    text += `2024-0${(i % 9) + 1}-1${i % 10} [${level}] ${WORDS[i % 10]}#${i}: took ${(i * 37) % 900}ms`;
    text += i % 4 ? ` by ${WORDS[(i * 3) % 10]}.${WORDS[(i * 7) % 10]}@shop${i % 6}.test\n` : '\n';
  }
  return text;
}

function summary(text: string): Record<string, number> {
  const took = /\[(?<level>\w+)\]\s+(\w+)#(\d+): took (?<ms>\d+)ms/g;
  const sums: Record<string, number> = {};
  for (const { groups } of text.matchAll(took))
    sums[groups!.level!] = (sums[groups!.level!] ?? 0) + Number(groups!.ms);
  const address = /([a-z]+)\.([a-z]+)@([a-z0-9]+)\.test/i;
  sums.addresses = text.split('\n').filter((line) => address.test(line)).length;
  sums.hidden = text.replace(
    /[a-z]+\.[a-z]+@(\w+)\.test/g,
    (_, host: string) => `<${host.toUpperCase()}>`,
  ).length;
  return sums;
}

/** A table of values between commas, some of them in quotes: one character after another. */
function cells(line: string): string[] {
  const found: string[] = [];
  let cell = '';
  let quoted = false;
  for (let i = 0; i < line.length; i++) {
    const character = line[i]!;
    if (quoted && character === '"' && line[i + 1] === '"') i += 1;
    if (character === '"' && line[i - 1] !== '"') quoted = !quoted;
    else if (character === ',' && !quoted) {
      found.push(cell.trim());
      cell = '';
    } else cell += character;
  }
  return [...found, cell.trim()];
}

function tokens(source: string): number {
  let count = 0;
  for (let at = 0; at < source.length;) {
    const code = source.charCodeAt(at);
    if (code <= 32) at += 1;
    else {
      let end = at + 1;
      const letter = (c: number) => (c >= 97 && c <= 122) || (c >= 48 && c <= 57) || c === 95;
      if (letter(code)) while (end < source.length && letter(source.charCodeAt(end))) end += 1;
      count += source.slice(at, end).length > 1 ? 2 : 1;
      at = end;
    }
  }
  return count;
}

function titles(lines: string[]): string {
  return lines
    .map((line) =>
      line
        .trim()
        .toLowerCase()
        .replace(/\b[a-z]/g, (first) => first.toUpperCase())
        .padEnd(24, '.'),
    )
    .filter((line, i, all) => all.indexOf(line) === i && !line.startsWith('X') && line.includes('.'))
    .join('|');
}

function roman(n: number): string {
  const values: [number, string][] = [
    [100, 'c'],
    [90, 'xc'],
    [50, 'l'],
    [40, 'xl'],
    [10, 'x'],
    [9, 'ix'],
    [5, 'v'],
    [4, 'iv'],
    [1, 'i'],
  ];
  return values.reduce((text, [value, sign]) => {
    while (n >= value) [n, text] = [n - value, text + sign];
    return text;
  }, '');
}

export default function text(): (number | string)[] {
  const lines = log(900);
  const sums = summary(lines);
  let columns = 0;
  for (let i = 0; i < 250; i++)
    columns += cells(`${i}, "${WORDS[i % 10]}, ""large""", ${i * 1.5}, plain text,, end`).length;
  const names = lines
    .split(/\s+/)
    .slice(0, 900)
    .map((word) => `${word} ${WORDS[word.length % 10]}`);
  let letters = 0;
  for (const character of 'naïve café – 日本語 🎈'.repeat(60))
    letters += character.codePointAt(0)! > 127 ? 1 : 0;
  let numerals = '';
  for (let n = 1; n < 200; n++) numerals += roman(n);
  const numbers = Array.from(
    { length: 500 },
    (_, i) => parseFloat(`${i}.${i % 8}5`) + parseInt(i.toString(16), 16) + +`${i}`,
  );
  return [
    lines.length,
    JSON.stringify(sums),
    columns,
    tokens(lines),
    titles(names).length,
    letters,
    numerals.length,
    numbers.reduce((a, b) => a + b, 0),
    [...lines.slice(0, 400)].reverse().join('').lastIndexOf('ofni'),
  ];
}
