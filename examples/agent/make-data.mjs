// Makes `data/tickets.csv` and `data/customers.csv`: a year at the help desk of a shop.
//
// In: nothing. Out: the same bytes each time. A few rows in a hundred are dirty, in the ways of real exports: odd
// dates, amounts without a number, currencies that nobody trades, duplicate rows.

import { writeFileSync } from 'node:fs';

const TICKETS = 4_000;
const CUSTOMERS = 600;

const random = seeded(20_250_301);
const between = (low, high) => low + Math.floor(random() * (high - low + 1));
const pick = (list) => list[Math.floor(random() * list.length)];

/** Picks a key by its weight. */
function weighted(weights) {
  let rest = random() * Object.values(weights).reduce((sum, weight) => sum + weight, 0);
  for (const [key, weight] of Object.entries(weights)) {
    rest -= weight;
    if (rest < 0) return key;
  }
  return Object.keys(weights)[0];
}

const CATEGORIES = { delivery: 30, returns: 22, billing: 16, account: 14, product: 10, warranty: 6, 返金: 2 };
const CHANNELS = { email: 50, chat: 35, phone: 15 };
const PRIORITIES = { low: 40, normal: 40, high: 15, urgent: 5 };
const CURRENCIES = { EUR: 50, USD: 20, GBP: 14, SEK: 8, PLN: 5, JPY: 3 };
const SEGMENTS = { consumer: 70, business: 25, enterprise: 5 };
const COUNTRIES = { DE: 30, FR: 18, US: 20, GB: 14, SE: 8, PL: 6, JP: 4 };

// For each category: the hours that tickets stay open, and how often and how much is refunded.
const HABITS = {
  delivery: { hours: 30, refunds: 0.35, amount: 45 },
  returns: { hours: 70, refunds: 0.8, amount: 90 },
  billing: { hours: 22, refunds: 0.3, amount: 60 },
  account: { hours: 9, refunds: 0.02, amount: 15 },
  product: { hours: 40, refunds: 0.15, amount: 120 },
  warranty: { hours: 140, refunds: 0.5, amount: 210 },
  返金: { hours: 55, refunds: 0.9, amount: 75 },
};
const PER_EURO = { EUR: 1, USD: 1.08, GBP: 0.85, SEK: 11.2, PLN: 4.3, JPY: 162 };

const SUBJECTS = {
  delivery: ['Parcel is late', 'Parcel left with a neighbour, who?', 'Box arrived open', 'Wrong address on the label'],
  returns: ['Want to send it back', 'Return label does not print', 'Sent back, no refund yet', 'Wrong size, again'],
  billing: ['Charged twice', 'Invoice without VAT number', 'Card refused, "do not honour"', 'Discount not applied'],
  account: ['Cannot log in', 'Code never arrives', 'Please delete my account', 'Change of e-mail address'],
  product: ['Part missing', 'Manual only in Finnish', 'Colour differs from the picture', 'Smells of smoke'],
  warranty: ['Stopped after 3 months', 'Screen flickers', 'Battery swollen, urgent!', 'Second repair failed'],
  返金: ['返金はいつですか', '商品が届かない、返金希望', '返品したのに返金がない'],
};

const customerIds = Array.from({ length: CUSTOMERS }, (_, index) => `C${String(1_001 + index)}`);
const customers = customerIds.map((id) => [id, weighted(SEGMENTS), weighted(COUNTRIES), `20${between(17, 25)}-${two(between(1, 12))}-01`]);

const start = Date.UTC(2025, 0, 1);
const tickets = [];
for (let index = 0; index < TICKETS; index++) {
  if (index > 100 && random() < 0.006) {
    tickets.push([...tickets[index - between(1, 40)]]);
    continue;
  }
  tickets.push(ticket(index));
}

write('tickets', ['id', 'opened_at', 'closed_at', 'customer_id', 'category', 'channel', 'priority', 'refund', 'currency', 'subject'], tickets);
write('customers', ['id', 'segment', 'country', 'since'], customers);

function ticket(index) {
  const category = weighted(CATEGORIES);
  const { hours, refunds, amount } = HABITS[category];
  const opened = start + Math.floor((index / TICKETS) * 365 * 24 * 60) * 60_000 + between(0, 120) * 60_000;
  const closed = opened + Math.ceil(-Math.log(1 - random()) * hours * 60) * 60_000;
  const currency = category === '返金' ? 'JPY' : weighted(CURRENCIES);
  const refund = random() < refunds ? (amount * PER_EURO[currency] * (0.3 + random() * 1.6)).toFixed(currency === 'JPY' ? 0 : 2) : '';
  const row = {
    id: `T${String(50_000 + index)}`,
    opened: iso(opened),
    closed: random() < 0.04 ? '' : iso(closed),
    customer: pick(customerIds),
    category,
    channel: weighted(CHANNELS),
    priority: weighted(PRIORITIES),
    refund,
    currency: refund === '' ? '' : currency,
    subject: pick(SUBJECTS[category]),
  };
  soil(row, opened);
  return Object.values(row);
}

/** Makes a few rows in a hundred dirty. */
function soil(row, opened) {
  const dice = random();
  if (dice < 0.01) row.opened = row.opened.replace(/^(\d+)-(\d+)-(\d+)T(\d+:\d+).*$/, '$3/$2/$1 $4');
  else if (dice < 0.016) row.closed = iso(opened - between(1, 60) * 3_600_000);
  else if (dice < 0.024) row.customer = pick(['', 'C9999', 'guest']);
  else if (dice < 0.03 && row.refund !== '') row.refund = pick(['n/a', 'pending', '12,50']);
  else if (dice < 0.04 && row.refund !== '') row.currency = pick(['XTS', 'EURO', '']);
  // Untidy, but without loss:
  else if (dice < 0.07) row.category = pick([row.category.toUpperCase(), ` ${row.category}`, `${row.category} `]);
  else if (dice < 0.08 && Number(row.refund) >= 1_000) row.refund = Number(row.refund).toLocaleString('en-US');
}

function write(name, header, rows) {
  const text = [header, ...rows].map((row) => row.map(quoted).join(',')).join('\n');
  writeFileSync(new URL(`data/${name}.csv`, import.meta.url), `${text}\n`);
  console.log(`data/${name}.csv: ${rows.length} rows`);
}

function quoted(field) {
  return /[",\n]/.test(field) ? `"${field.replaceAll('"', '""')}"` : field;
}

function iso(time) {
  return new Date(time).toISOString().replace(':00.000Z', 'Z');
}

function two(number) {
  return String(number).padStart(2, '0');
}

/** Numbers in [0, 1) that are the same for the same seed (mulberry32). */
function seeded(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
