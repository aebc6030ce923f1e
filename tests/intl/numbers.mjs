// Calls of `Intl.NumberFormat` and of the methods of numbers, as programs write them, and stranger ones. The same for each
// seed.

import { random } from '../node/date-texts.mjs';

const CURRENCIES = ['USD', 'USD', 'EUR', 'GBP', 'JPY', 'CHF', 'INR', 'CAD', 'BRL', 'KRW', 'BHD', 'XOF', 'usd', 'XXX', 'ABC', 'XCG', 'CZK', 'CLP', 'DEM'];
const UNITS = ['byte', 'kilobyte', 'megabyte', 'kilometer', 'mile', 'celsius', 'fahrenheit', 'percent', 'liter', 'foot', 'inch', 'day', 'hour', 'month', 'year', 'kilometer-per-hour', 'mile-per-hour', 'mile-per-gallon', 'meter-per-second', 'liter-per-kilometer', 'megabyte-per-second', 'degree', 'mile-scandinavian', 'stone', 'fluid-ounce', 'gallon-per-minute', 'week', 'gram-per-gallon'];

/** That many pairs of a value and options. */
export function numberCalls(count, seed) {
  const next = random(seed);
  const int = (from, to) => from + Math.floor(next() * (to - from + 1));
  const pick = (list) => list[int(0, list.length - 1)];
  const often = (share) => next() < share;
  const double = () => pick([
    () => int(-2000, 2000),
    () => int(-(10 ** int(1, 15)), 10 ** int(1, 15)),
    () => (next() - 0.5) * 10 ** int(0, 12),
    () => Math.round((next() - 0.3) * 10 ** int(2, 8)) / 100,
    () => (next() - 0.5) * 10 ** int(-12, 0),
    () => int(-100, 100) / 8,
    () => int(-2000, 2000) / 1000,
    () => pick([0, -0, 1, -1, 0.5, 1.5, 2.5, 999, 999.5, 999.95, 1000, 1049, 1050, 9999, 99_999, 999_499, 999_500, 999_999, 1e15, 1e21, 1e300, 5e-324, 0.1 + 0.2, 1.005, 0.045, 1e-7, NaN, Infinity, -Infinity, 2 ** 53, 12345.678]),
  ])();
  const value = () => pick([double, double, double, double, () => BigInt(int(-1e9, 1e9)) ** BigInt(int(1, 4)), () => `${int(-1e9, 1e9)}${int(0, 1e9)}.${int(0, 1e9)}`])();
  const digits = () => {
    const options = {};
    if (often(0.2)) options.minimumIntegerDigits = int(1, 6);
    if (often(0.35)) options.maximumFractionDigits = int(0, 6);
    if (often(0.25)) options.minimumFractionDigits = int(0, options.maximumFractionDigits ?? 4);
    if (often(0.15)) options.maximumSignificantDigits = int(1, 8);
    if (often(0.08)) options.minimumSignificantDigits = int(1, options.maximumSignificantDigits ?? 5);
    if (often(0.08)) options.roundingPriority = pick(['auto', 'morePrecision', 'lessPrecision']);
    if (often(0.12)) options.roundingMode = pick(['ceil', 'floor', 'expand', 'trunc', 'halfCeil', 'halfFloor', 'halfExpand', 'halfTrunc', 'halfEven']);
    if (often(0.08)) options.trailingZeroDisplay = pick(['auto', 'stripIfInteger']);
    if (often(0.05)) {
      options.roundingIncrement = pick([1, 2, 5, 10, 20, 25, 50, 100, 200, 250, 500, 1000, 2000, 2500, 5000]);
      const places = int(0, 4);
      Object.assign(options, { minimumFractionDigits: places, maximumFractionDigits: places });
    }
    return options;
  };
  const options = () => {
    const style = pick([undefined, undefined, 'decimal', 'percent', 'currency', 'currency', 'unit']);
    const all = { ...(style && { style }), ...(often(0.8) ? digits() : {}) };
    if (style === 'currency') {
      all.currency = pick(CURRENCIES);
      if (often(0.4)) all.currencyDisplay = pick(['code', 'symbol', 'narrowSymbol', 'name', 'name']);
      if (often(0.2)) all.currencySign = pick(['accounting', 'standard']);
    }
    if (style === 'unit') {
      all.unit = pick(UNITS);
      if (often(0.6)) all.unitDisplay = pick(['long', 'short', 'narrow']);
    }
    if (often(0.3)) all.notation = pick(['compact', 'compact', 'standard', 'scientific', 'engineering']);
    if (often(0.2)) all.compactDisplay = pick(['long', 'short']);
    if (often(0.15)) all.signDisplay = pick(['auto', 'never', 'always', 'exceptZero', 'negative']);
    if (often(0.15)) all.useGrouping = pick([true, false, 'always', 'auto', 'min2', 'true', 0, '']);
    return all;
  };
  return Array.from({ length: count }, () => [value(), options()]);
}
