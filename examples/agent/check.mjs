// Checks of the demo's results.
//
// The host computes the agent's numbers again from the CSV itself, in another way than the agent and without its code
// or that of the tools. Positions are looked up in the sources.

import { readFileSync } from 'node:fs';

const EUROS = { EUR: 1, USD: 0.92, GBP: 1.18, SEK: 0.089, PLN: 0.23, JPY: 0.0062 };

/** The differences between the agent's answer and the host's own, as lines of text; empty if there are none. */
export function differences(answer, top) {
  const own = compute();
  const lines = Object.values(own.categories)
    .sort((a, b) => b.refunded - a.refunded)
    .slice(0, top);
  return compare('', answer, {
    rows: own.rows,
    used: own.used,
    flaws: new Map(Object.entries(own.flaws)),
    lines: lines.map(({ category, hours, ...line }) => ({ category, ...line, medianHours: middle(hours) })),
    refunded: own.refunded,
    latest: new Date(own.latest),
  });
}

/** The differences between a failed run and its expected outcome; its position must lie in the text `at`. */
export function outcomeDifferences(result, { status, name, at }, sources) {
  const wrong = compare('status', result.status, status);
  if (name !== undefined) wrong.push(...compare('error.name', result.error?.name, name));
  if ('result' in result) wrong.push('there is a result');
  if (at === undefined) return wrong;
  const [file, text] = at;
  const { filename, line, column } = result.error ?? {};
  wrong.push(...compare('error.filename', filename, file));
  const start = sources[file].split('\n')[line - 1]?.indexOf(text) ?? -1;
  const within = start >= 0 && column > start && column <= start + text.length;
  if (!within) wrong.push(`position: ${filename}:${line}:${column} is not in ${JSON.stringify(text)}`);
  return wrong;
}

function compute() {
  const segments = Object.fromEntries(records('customers').map(([id, segment]) => [id, segment]));
  const own = { rows: 0, used: 0, flaws: {}, categories: {}, refunded: 0, latest: '' };
  const ids = [];
  for (const [id, opened, closed, customer, kind, , , amount, currency] of records('tickets')) {
    own.rows += 1;
    const flaw = flawOf({ again: ids.includes(id), opened, closed, segment: segments[customer], amount, currency });
    ids.push(id);
    if (flaw !== null) {
      own.flaws[flaw] = (own.flaws[flaw] ?? 0) + 1;
      continue;
    }
    const category = kind.toLowerCase().trim();
    const entry = (own.categories[category] ??= { category, tickets: 0, open: 0, hours: [], refunded: 0, fromBusinesses: 0 });
    const euros = amount === '' ? 0 : parseFloat(amount.split(',').join('')) * EUROS[currency];
    own.used += 1;
    own.refunded += euros;
    // Such dates sort as texts.
    if (opened > own.latest) own.latest = opened;
    entry.tickets += 1;
    entry.refunded += euros;
    if (segments[customer] !== 'consumer') entry.fromBusinesses += euros;
    if (closed === '') entry.open += 1;
    else entry.hours.push((Date.parse(closed) - Date.parse(opened)) / 3_600_000);
  }
  return own;
}

function flawOf({ again, opened, closed, segment, amount, currency }) {
  if (again) return 'twice';
  if (opened.includes('/') || (closed !== '' && closed < opened)) return 'odd date';
  if (['n/a', 'pending', '12,50'].includes(amount)) return 'no amount';
  if (segment === undefined) return 'no such customer';
  if (amount !== '' && !(currency in EUROS)) return 'no such currency';
  return null;
}

/** The fields of each line except the first, read character by character. */
function records(name) {
  const lines = readFileSync(new URL(`data/${name}.csv`, import.meta.url), 'utf8').trimEnd().split('\n');
  return lines.slice(1).map((line) => {
    const fields = [''];
    let inside = false;
    for (const char of line) {
      if (char === '"') inside = !inside;
      else if (char === ',' && !inside) fields.push('');
      else fields[fields.length - 1] += char;
    }
    return fields;
  });
}

function middle(values) {
  const sorted = Float64Array.from(values).sort();
  return (sorted[Math.floor((sorted.length - 1) / 2)] + sorted[Math.ceil((sorted.length - 1) / 2)]) / 2;
}

/**
 * The differences between `got` and `wanted`: numbers by more than a cent, other values at all. Ignores further keys.
 */
function compare(path, got, wanted) {
  if (typeof wanted === 'number') {
    return Math.abs(got - wanted) < 0.01 ? [] : [`${path}: ${got} instead of ${wanted}`];
  }
  if (wanted instanceof Date) return compare(path, got instanceof Date && got.toISOString(), wanted.toISOString());
  if (wanted instanceof Map) {
    if (!(got instanceof Map) || got.size !== wanted.size) return [`${path}: not a Map of ${wanted.size}`];
    return [...wanted].flatMap(([key, value]) => compare(`${path}.${key}`, got.get(key), value));
  }
  if (Array.isArray(wanted) && got?.length !== wanted.length) return [`${path}: ${got?.length} entries instead of ${wanted.length}`];
  if (typeof wanted === 'object') return Object.keys(wanted).flatMap((key) => compare(path ? `${path}.${key}` : key, got?.[key], wanted[key]));
  return Object.is(got, wanted) ? [] : [`${path}: ${got} instead of ${wanted}`];
}
