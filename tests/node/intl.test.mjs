// `Intl` and the methods that depend on a locale, beside Node's own: the same calls there and in the sandbox.
//
// The reference is Node.js 20. Its V8 has a narrow no-break space before AM and PM in the parts of a text, and a plain one
// in the text.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { runCode } from '../isolation.mjs';
import { dateCalls } from '../intl/dates.mjs';
import { numberCalls } from '../intl/numbers.mjs';

/** The answers of a program to all calls, or the names and messages of their errors. */
const PROGRAM = `
  const answered = (call) => {
    try { return call(); } catch (error) { return [error.name, error.message]; }
  };
  export default answers;`;

/** The answers here and in the sandbox, of which those that differ are given. */
async function differences(calls, answer) {
  const source = PROGRAM.replace('answers', `calls.map((call) => answered(() => (${answer})(...call)))`);
  const { result, error, logs } = await runCode(source, { language: 'javascript', globals: { calls } });
  assert.equal(error, undefined);
  assert.deepEqual(logs, []);
  const here = calls.map((call) => {
    try {
      return answer(...call);
    } catch (caught) {
      return [caught.name, caught.message];
    }
  });
  return calls
    .map((call, index) => ({ call, sandbox: result[index], node: here[index] }))
    .filter(({ sandbox, node }) => JSON.stringify(sandbox) !== JSON.stringify(node));
}

// Node's own ICU fails where an increment is far below the last digit of a large number.
const numbers = numberCalls(3000, 7).filter(([value, { roundingIncrement = 1 }]) => roundingIncrement === 1 || Math.abs(Number(value)) < 1e9);

test('numbers have the texts and parts of Node.js', async () => {
  assert(numbers.length > 2900);
  const differ = await differences(numbers, (value, options) => {
    const format = new Intl.NumberFormat('en-US', options);
    return [format.format(value), format.formatToParts(value), value.toLocaleString?.('en-US', options)];
  });
  assert.deepEqual(differ, []);
});

test('numbers have the resolved options of Node.js', async () => {
  // V8 reads options back from a pattern, which loses the priority beside `stripIfInteger`.
  const calls = numbers.filter(([, options]) => options.trailingZeroDisplay !== 'stripIfInteger');
  const differ = await differences(calls, (_, options) => new Intl.NumberFormat('en', options).resolvedOptions());
  assert.deepEqual(differ, []);
});

test('plurals, lists and distances in time are those of Node.js', async () => {
  const values = [0, 1, -1, 2, -2, 1.5, 3, 11, 12, 13, 21, 22, 23, 101, 111, 112, 1000, -1234.5678, 0.9999, 1.00001, -0];
  const units = ['second', 'minutes', 'hour', 'day', 'weeks', 'month', 'quarter', 'years'];
  const styles = ['long', 'short', 'narrow'];
  const distances = values.flatMap((value) => units.flatMap((unit) => styles.flatMap((style) => ['always', 'auto'].map((numeric) => [value, unit, { style, numeric }]))));
  assert.deepEqual(await differences(distances, (value, unit, options) => {
    const format = new Intl.RelativeTimeFormat('en-US', options);
    return [format.format(value, unit), format.formatToParts(value, unit), format.resolvedOptions()];
  }), []);
  const plurals = [...values, NaN, Infinity, '1', null].flatMap((value) => [{}, { type: 'ordinal' }, { minimumFractionDigits: 1 }, { maximumSignificantDigits: 1, type: 'ordinal' }].map((options) => [value, options]));
  assert.deepEqual(await differences(plurals, (value, options) => {
    const rules = new Intl.PluralRules('en-US', options);
    return [rules.select(value), rules.resolvedOptions()];
  }), []);
  const items = [[], ['a'], ['a', 'b'], ['a', 'b', 'c'], [...'abcdé'], 'xyz', new Set(['p', 'q']), undefined];
  const lists = items.flatMap((list) => ['conjunction', 'disjunction', 'unit'].flatMap((type) => styles.map((style) => [list, { type, style }])));
  assert.deepEqual(await differences(lists, (list, options) => {
    const format = new Intl.ListFormat('en-US', options);
    return [format.format(list), format.formatToParts(list), format.resolvedOptions()];
  }), []);
});

test('dates have the texts, parts and resolved options of Node.js', async () => {
  const differ = await differences(dateCalls(2000, 11), (time, options) => {
    const format = new Intl.DateTimeFormat('en-US', options);
    // V8 reads options back from a pattern, and letters of its literals as fields.
    const isOdd = /[(├]|\dh /.test(format.format(time));
    return [format.format(time), format.formatToParts(time), isOdd || format.resolvedOptions()];
  });
  assert.deepEqual(differ, []);
});

test('the locale methods of dates give the texts of Node.js', async () => {
  const differ = await differences(dateCalls(1500, 12), (time, options) => {
    const answers = (method) => {
      try {
        return new Date(time)[method]('en-US', options);
      } catch (error) {
        return [error.name, error.message];
      }
    };
    return ['toLocaleString', 'toLocaleDateString', 'toLocaleTimeString'].map(answers);
  });
  assert.deepEqual(differ, []);
});

/** Texts that lists are sorted by, and the pairs of neighbours in a mixed order. */
const WORDS = ['', 'a', 'A', 'á', 'Á', 'à', 'ä', 'a\u0308', 'ae', 'æ', 'b', 'B', 'ß', 'ss', 'z', 'Z', 'é', 'e', 'E', 'résumé', 'resume', 'Resume', 'résume', 'co-op', 'coop', 'co op', 'CO-OP', 'file1', 'file2', 'file10', 'File2', 'file 2', 'file02', '1', '2', '10', '1.5', '-1', '$5', '€5', 'item_1', 'item-1', 'item 1', "don't", 'dont', 'Ünal', 'unal', 'Łódź', 'lodz', 'naïve', 'naive', 'Σ', 'σ', 'ς', 'я', 'Я', 'ё', '日本', '中国', 'あ', 'ア', '한국', 'ก', 'א', 'ب', '😀', '👍🏽', '\ud800', 'a\0b', 'ab', ' a', 'a ', 'İ', 'ı', 'i', 'I', 'ﬁ', 'fi', 'x²', 'x2', '½', '1/2', '...', '…', '#', '@', '_', '-', 'zebra', 'Zebra', 'apple', 'Apple', 'banana'];

test('texts have the order of Node.js', async () => {
  const options = [undefined, { numeric: true }, ...['base', 'accent', 'case', 'variant'].map((sensitivity) => ({ sensitivity })), { caseFirst: 'upper' }, { caseFirst: 'lower' }, { ignorePunctuation: true }, { sensitivity: 'base', numeric: true }];
  const calls = options.map((one) => [WORDS, one]);
  const answer = (words, one) => {
    const { compare } = new Intl.Collator('en-US', one);
    return [
      words.map((word) => words.map((other) => compare(word, other))), words.map((word) => word.localeCompare('file2', 'en-US', one)), [...words].sort(compare),
      new Intl.Collator('en', one).resolvedOptions(),
    ];
  };
  const differ = await differences(calls, answer);
  assert.deepEqual(differ.flatMap(({ call, sandbox, node }) => WORDS.flatMap((one, i) => WORDS.flatMap((other, k) => (sandbox[0]?.[i][k] === node[0][i][k] ? [] : [[call[1], one, other, sandbox[0]?.[i][k], node[0][i][k]]])))), []);
  assert.deepEqual(differ, []);
});

test('texts have the segments of Node.js', async () => {
  const family = '👨\u200d👩\u200d👧';
  const texts = [
    '', 'a', 'Hello, 3.5 wörld!', "don't can't e-mail", 'a\r\nb\n\nc', `${family}👍🏽 🇩🇪🇫🇷🇺🇸x`, 'e\u0301a\u0308\u0308', 'नमस्ते किम्', '한국어 단어', 'foo_bar-baz.qux@example.com', '1,234.56 $5 10%', 'Mr. Smith went. He left!  "Why?" she said. (No.) e.g. this',
    'Ω≈ç√ ½', '\ud800x', 'x\u200dy', 'Привет, мир', 'שלום עולם', 'مرحبا بالعالم', '  two  blanks ', 'a'.repeat(300), `e${'\u0301'.repeat(400)}x`, 'word '.repeat(60), 'ﬁ ŉ', '¿Qué? ¡Sí!', 'https://a.b/c?d=e', 'U.S.A. 3rd', "l'été", '½½ ²',
  ];
  const calls = texts.flatMap((text) => ['grapheme', 'word', 'sentence'].map((granularity) => [text, { granularity }]));
  assert.deepEqual(await differences(calls, (text, options) => {
    const segments = new Intl.Segmenter('en-US', options).segment(text);
    return [[...segments].map((one) => [one.segment, one.index, one.isWordLike, one.input === text]), [-1, 0, 3, text.length - 1, text.length, NaN, undefined].map((at) => segments.containing(at))];
  }), []);
});

/** Calls whose options or arguments are not valid, as texts of programs. */
const HOSTILE = [
  "new Intl.NumberFormat('en_US')", "new Intl.NumberFormat('')", 'new Intl.NumberFormat(null)', 'new Intl.NumberFormat([null])', 'new Intl.NumberFormat([1])', "new Intl.NumberFormat('en', null)",
  "new Intl.NumberFormat('en', { style: 'x' })", "new Intl.NumberFormat('en', { style: 'currency' })", "new Intl.NumberFormat('en', { style: 'currency', currency: 'EURO' })", "new Intl.NumberFormat('en', { currency: '1' })",
  "new Intl.NumberFormat('en', { style: 'unit' })", "new Intl.NumberFormat('en', { style: 'unit', unit: 'foo' })", "new Intl.NumberFormat('en', { unit: 'meter-per-foo' })", "new Intl.NumberFormat('en', { minimumFractionDigits: 200 })",
  "new Intl.NumberFormat('en', { maximumFractionDigits: 21 })", "new Intl.NumberFormat('en', { minimumFractionDigits: 5, maximumFractionDigits: 2 })", "new Intl.NumberFormat('en', { minimumIntegerDigits: 0 })", "new Intl.NumberFormat('en', { minimumIntegerDigits: 22 })",
  "new Intl.NumberFormat('en', { minimumSignificantDigits: 5, maximumSignificantDigits: 2 })", "new Intl.NumberFormat('en', { maximumFractionDigits: NaN })", "new Intl.NumberFormat('en', { maximumFractionDigits: 'a' })", "new Intl.NumberFormat('en', { maximumFractionDigits: -Infinity })",
  "new Intl.NumberFormat('en', { useGrouping: 'x' })", "new Intl.NumberFormat('en', { roundingIncrement: 3 })", "new Intl.NumberFormat('en', { roundingIncrement: 5, maximumSignificantDigits: 2 })", "new Intl.NumberFormat('en', { roundingIncrement: 5, minimumFractionDigits: 1, maximumFractionDigits: 2 })",
  "new Intl.NumberFormat('en', { roundingPriority: 1 })", "new Intl.NumberFormat('en', { numberingSystem: 'x' })", "new Intl.NumberFormat('en', { get style() { throw new RangeError('mine'); } })", "new Intl.NumberFormat('en', { notation: { toString() { throw new TypeError('mine'); } } })",
  "new Intl.NumberFormat({ get length() { throw new RangeError('mine'); } })", "new Intl.NumberFormat('en', { localeMatcher: 'x' })", "(1).toLocaleString('x')", "(1n).toLocaleString('en', { style: 'currency' })",
  "new Intl.NumberFormat('en', { maximumFractionDigits: 20 }).format(0.1)", "new Intl.NumberFormat('en', { minimumFractionDigits: 20 }).format(1e300)", "new Intl.NumberFormat().format('1e400')", "new Intl.NumberFormat().format('0x10')", "new Intl.NumberFormat().format('abc')", "new Intl.NumberFormat().format()",
  "new Intl.NumberFormat().format(' 1e3 ')", "new Intl.NumberFormat().format(null)", "new Intl.NumberFormat().format([5])", "new Intl.NumberFormat().format({ valueOf: () => 5n })", "new Intl.NumberFormat().format('12345678901234567890.126')",
  "new Intl.DateTimeFormat('en', { timeZone: 'x' })", "new Intl.DateTimeFormat('en', { timeZone: '' })", "new Intl.DateTimeFormat('en', { timeZone: '+05:30' })", "new Intl.DateTimeFormat('en', null)", "new Intl.DateTimeFormat('en', { dateStyle: 'short', year: 'numeric' })", "new Intl.DateTimeFormat('en', { timeStyle: 'short', hour: 'numeric' })",
  "new Date(0).toLocaleDateString('en', { timeStyle: 'short' })", "new Date(0).toLocaleTimeString('en', { dateStyle: 'short' })", "new Intl.DateTimeFormat('en').format(NaN)", "new Intl.DateTimeFormat().format('x')", "new Intl.DateTimeFormat().format(8.64e15 + 1)", "new Date(NaN).toLocaleDateString()", "new Intl.DateTimeFormat('en', { month: 'x' })",
  "new Intl.DateTimeFormat('en', { fractionalSecondDigits: 4 })", "new Intl.DateTimeFormat('en', { calendar: 'x' })", "new Intl.DateTimeFormat('en', { hourCycle: 'x' })", "new Intl.DateTimeFormat('en', { formatMatcher: 'x' })", "new Intl.DateTimeFormat('en', { dateStyle: 'x' })", "new Intl.DateTimeFormat('en', { timeZone: { toString() { throw new RangeError('mine'); } } })",
  "new Date(0).toLocaleString('en', null)", "Intl.PluralRules('en')", "Intl.ListFormat('en')", "Intl.RelativeTimeFormat('en')", "new Intl.PluralRules('en', { type: 'x' })", "new Intl.PluralRules('en', null)", "new Intl.ListFormat('en', 1)", "new Intl.ListFormat('en', { type: 'x' })",
  "new Intl.ListFormat('en').format([1])", "new Intl.ListFormat('en').format(['a', 2n])", "new Intl.RelativeTimeFormat('en').format(NaN, 'day')", "new Intl.RelativeTimeFormat('en').format(1, 'x')", "new Intl.RelativeTimeFormat('en').format(1)", "new Intl.RelativeTimeFormat('en', { numeric: 'x' })", "new Intl.RelativeTimeFormat('en', null)", "new Intl.Collator('en', { sensitivity: 'x' })", "new Intl.Collator('en', null)", "'a'.localeCompare('b', 'x')", "'a'.localeCompare()", "'i'.toLocaleUpperCase('x')", "'i'.toLocaleUpperCase(null)", "'i'.toLocaleUpperCase([])", "new Intl.Segmenter('en', { granularity: 'x' })", "new Intl.Segmenter('en', null)",
  "String(new Intl.Segmenter('en').segment('a'))", "String(new Intl.Segmenter('en').segment('a')[Symbol.iterator]())", "new Intl.Segmenter('en').segment().containing().segment", "new Intl.Segmenter('en').segment('ab')[Symbol.iterator]().next().value.segment", "new Intl.DateTimeFormat('en', { timeZone: 'asia/kolkata' }).resolvedOptions().timeZone",
];

test('calls that are not valid end as in Node.js', async () => {
  const answer = (call) => `answered(() => { const made = ${call}; return typeof made === 'object' ? 'object' : made; })`;
  const { result, error } = await runCode(PROGRAM.replace('answers', `[${HOSTILE.map(answer)}]`), { language: 'javascript' });
  assert.equal(error, undefined);
  const source = PROGRAM.replace('answers', `[${HOSTILE.map(answer)}]`);
  const { default: expected } = await import(`data:text/javascript,${encodeURIComponent(source)}`);
  const differ = HOSTILE.map((call, index) => [call, result[index], expected[index]]).filter(([, one, other]) => JSON.stringify(one) !== JSON.stringify(other));
  assert.deepEqual(differ, []);
});

test('the objects of Intl have the properties of those in Node.js', async () => {
  const source = `
    const described = (object) => Object.entries(Object.getOwnPropertyDescriptors(object)).map(([key, it]) => [
      key, typeof it.value, typeof it.get, typeof it.set, it.value?.name ?? it.get?.name, it.value?.length ?? it.get?.length, it.writable, it.enumerable, it.configurable,
    ].join(':')).filter((line) => !/^(formatRange|selectRange)/.test(line));
    const format = new Intl.NumberFormat();
    class Own extends Intl.NumberFormat { twice(value) { return this.format(value * 2); } }
    export default [
      names.map((name) => [described(Intl[name]), described(Intl[name].prototype).sort(), Intl[name].prototype[Symbol.toStringTag], Intl[name].prototype.constructor === Intl[name]]),
      Intl[Symbol.toStringTag], String(Intl), typeof Intl.NumberFormat(), String(format), format.format === format.format, format.format.name, format.format.length, [1, 2000].map(format.format),
      new Own().twice(1000), new Own() instanceof Intl.NumberFormat, Object.keys(Intl), Intl.getCanonicalLocales(['EN-us', 'de', 'en-US']), Intl.NumberFormat.supportedLocalesOf(['en-US', 'en']),
      [1234.5, [new Date(0)], null].toLocaleString('en-US', { timeZone: 'UTC' }), [0.5, 2].toLocaleString('en-US', { style: 'percent' }), new Float32Array([1.5, 2000]).toLocaleString('en-US'),
    ];`;
  const names = ['NumberFormat', 'DateTimeFormat', 'PluralRules', 'RelativeTimeFormat', 'ListFormat', 'Collator', 'Segmenter'];
  const { result, error } = await runCode(source, { language: 'javascript', globals: { names } });
  assert.equal(error, undefined);
  const here = source.replaceAll('names.map', `${JSON.stringify(names)}.map`);
  const { default: expected } = await import(`data:text/javascript,${encodeURIComponent(here)}`);
  assert.deepEqual(result, expected);
});
