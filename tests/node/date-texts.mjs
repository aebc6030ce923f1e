// Texts that programs, tables, logs, mails and models hold as dates, and texts that nearly are. The same for each seed.

/** A generator of numbers from 0 to below 1 (mulberry32). */
export function random(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let mixed = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

const MONTHS = ['January', 'February', 'March', 'April', 'May', 'June', 'July', 'August', 'September', 'October', 'November', 'December'];
const DAYS = ['Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday', 'Mo', 'lundi'];
const ZONES = ['', '', '', 'Z', ' Z', ' UTC', ' GMT', ' GMT+2', ' GMT-0330', '+02:00', '+0200', ' +0200', ' -08:00', '-8', ' EST', ' PDT', ' CEST', ' (CET)', '+25:00', ' UTC+5:30', '+1'];
const BLANKS = ['', '', '', '', ' ', '\t', '\n', '\r', '\r\n', '\u00a0', '\ufeff', '\u2028', '\u3000', '"', "'", '(x)', '(a(b)', 'on ', 'é', '\0', ',', '-', '+'];

/** The texts for which this was written: those that QuickJS-ng reads wrongly, and their neighbours. */
export const KNOWN = [
  '\t2024-05-06', '\n2024-05-06', '\r\n2024-05-06', '\u00a02024-05-06', '\ufeff2024-05-06', ' 2024-05-06', '\n5/6/2024', '\t5/6/2024', '2024-05-00', '2024-00-05',
  '0000-00-00 00:00:00', '0000-00-00', '2024-05-06\r', '2024-05-06\n', '2024-05-06 ', '2024-05-06\t', '2024-05-06T10:00\r', '2024-13-01', '2024-02-30', '2024-05-32', '', ' ',
  '2024', '24', '0', '13', '32', '49', '50', '99', '100', '1e3', 'null', 'undefined', 'NaN', 'Invalid Date', 'today', 'May', 'May 2024', '2024 May', 'May 6', '6 May', '+002024-05-06', '-000001-01-01', '-000000-01-01',
  '+275760-09-13T00:00:00.000Z', '+275760-09-13T00:00:00.001Z', '2024-05-06T24:00', '2024-05-06T24:00:01', '2024-05-06T10', '2024-05-06t10:00z', '2024-05-06 10:00 AM', '12:00 AM', '5/6/2024, 10:00:00 AM',
  '5/6/2024, 10:00:00\u202fAM', '2024-05-06T10:00:00.123456789Z', '20240506', '20240506T100000Z', '2024-W19-1', '2024-127', '6.5.2024', '06.05.2024 10:00', '1.2.3.4', '1:2:3:4:5', '10::20', '2024-05-06T10:00:00,123Z',
];

/** That many texts. */
export function texts(count, seed) {
  const next = random(seed);
  const int = (from, to) => from + Math.floor(next() * (to - from + 1));
  const pick = (list) => list[int(0, list.length - 1)];
  const often = (share) => next() < share;
  const pad = (value, width = 2) => (often(0.9) ? String(value).padStart(width, '0') : String(value));
  const year = () => pick([pad(int(1990, 2035), 4), pad(int(1900, 2100), 4), pad(int(0, 99)), pad(int(0, 9999), 4), pad(int(10_000, 300_000), 6)]);
  const month = () => pad(often(0.95) ? int(1, 12) : int(0, 20));
  const day = () => pad(often(0.95) ? int(1, 28) : int(0, 35));
  const name = () => {
    const full = pick(MONTHS);
    return pick([full, full.slice(0, 3), full.slice(0, 3).toUpperCase(), `${full.slice(0, 3)}.`, full.toLowerCase(), full.slice(0, 2)]);
  };
  const fraction = () => (often(0.3) ? pick(['.', ',']) + pad(int(0, 10 ** int(1, 11)), int(1, 9)) : '');
  const time = () => {
    const seconds = often(0.7) ? `:${pad(often(0.97) ? int(0, 59) : int(60, 99))}${fraction()}` : '';
    const half = often(0.25) ? pick([' AM', ' PM', 'am', 'pm', ' a.m.', '\u202fPM', ' A']) : '';
    return `${pad(often(0.95) ? int(0, 23) : int(24, 30))}${often(0.97) ? ':' : pick(['.', 'h', '::'])}${pad(int(0, 59))}${seconds}${half}${pick(ZONES)}`;
  };
  const separator = () => pick(['-', '-', '/', '.', ' ', ', ', '-/']);
  const date = () => {
    const [one, two] = [separator(), separator()];
    const week = () => (often(0.5) ? `${often(0.5) ? pick(DAYS) : pick(DAYS).slice(0, 3)}${pick([', ', ' ', ''])}` : '');
    return pick([
      () => `${year()}-${month()}-${day()}`,
      () => `${year()}-${month()}-${day()}`,
      () => `${year()}${one}${month()}${often(0.9) ? one : two}${day()}`,
      () => `${month()}/${day()}/${year()}`,
      () => `${day()}${one}${month()}${two}${year()}`,
      () => `${week()}${name()} ${day()}, ${year()}`,
      () => `${week()}${day()} ${name()} ${year()}`,
      () => `${week()}${name()} ${day()}${pick(['', 'st', 'th'])}${pick([' ', ', '])}${year()}`,
      () => `${day()}-${name()}-${year()}`,
      () => `${year()}-${month()}`,
      () => `${pick(['+', '-'])}${pad(int(0, 300_000), 6)}-${month()}-${day()}`,
      () => `${name()} ${year()}`,
      () => year(),
      () => String(int(0, 2 ** 31)),
    ])();
  };
  const whole = () => {
    const text = often(0.65) ? `${date()}${pick(['T', 'T', ' ', ' ', ', ', ' at ', 't', '  ', '_'])}${time()}` : often(0.9) ? date() : time();
    return `${pick(BLANKS)}${text}${pick(BLANKS)}`;
  };
  const damaged = (text) => {
    const at = int(0, text.length);
    return pick([() => text.slice(0, at), () => text.slice(at), () => text.slice(0, at) + pick(BLANKS) + text.slice(at), () => text.slice(0, at) + pick([...'0123456789:-+.TZ() ,/']) + text.slice(at + 1)])();
  };
  return [...KNOWN, ...Array.from({ length: count - KNOWN.length }, () => (often(0.75) ? whole() : damaged(whole())))];
}
