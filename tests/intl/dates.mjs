// Calls of `Intl.DateTimeFormat` and of the locale methods of dates, as programs write them, and stranger ones. The same
// for each seed.

import { random } from '../node/date-texts.mjs';

const ZONES = ['UTC', 'UTC', 'America/New_York', 'America/Los_Angeles', 'America/Chicago', 'Europe/London', 'Europe/Berlin', 'Asia/Tokyo', 'Asia/Kolkata', 'Australia/Sydney', 'Asia/Kathmandu', 'America/Bogota', 'Pacific/Auckland', 'Asia/Dubai', 'Etc/GMT+5', 'GMT', 'america/denver', 'US/Eastern', 'Asia/Calcutta', 'Europe/Dublin'];
const TEXTS = ['long', 'short', 'narrow'];
const NUMBERS = ['numeric', '2-digit'];
const LENGTHS = ['full', 'long', 'medium', 'short'];
const FIELDS = { weekday: TEXTS, year: NUMBERS, month: [...NUMBERS, ...TEXTS], day: NUMBERS, hour: NUMBERS, minute: NUMBERS, second: NUMBERS };

/** That many pairs of a time and options. */
export function dateCalls(count, seed) {
  const next = random(seed);
  const int = (from, to) => from + Math.floor(next() * (to - from + 1));
  const pick = (list) => list[int(0, list.length - 1)];
  const often = (share) => next() < share;
  const time = () => pick([
    // The names of zones are those of today for all years.
    () => int(Date.UTC(2008), Date.UTC(2034)),
    () => Date.UTC(int(2010, 2030), int(0, 11), int(1, 31), int(0, 23), pick([0, 0, int(0, 59)])),
  ])();
  const options = () => {
    const all = { timeZone: pick(ZONES) };
    if (often(0.25)) {
      if (often(0.7)) all.dateStyle = pick(LENGTHS);
      if (!all.dateStyle || often(0.6)) all.timeStyle = pick(LENGTHS);
    } else {
      const share = pick([0.2, 0.5, 0.8]);
      for (const [name, widths] of Object.entries(FIELDS)) if (often(share)) all[name] = pick(widths);
      if (often(0.06)) all.era = pick(TEXTS);
      if (often(0.06)) all.dayPeriod = pick(TEXTS);
      if (often(0.1)) all.fractionalSecondDigits = int(1, 3);
      if (often(0.2)) all.timeZoneName = pick(['short', 'long', 'shortOffset', 'longOffset']);
    }
    if (often(0.2)) all.hourCycle = pick(['h11', 'h12', 'h23', 'h24']);
    if (often(0.2)) all.hour12 = often(0.5);
    return all;
  };
  return Array.from({ length: count }, () => [time(), options()]);
}
