// Tools of the host: five capabilities over the data in `data/`, and nothing else.
//
// Sandbox code may call them any number of times with any values. So each checks its arguments, and the expensive ones
// have a budget. They answer after some milliseconds, as services do.

import { readFileSync } from 'node:fs';
import { setTimeout as after } from 'node:timers/promises';

const PAGE_SIZE = 250;
const SEARCHES = 20;

const EUROS = new Map(Object.entries({ EUR: 1, USD: 0.92, GBP: 1.18, SEK: 0.089, PLN: 0.23, JPY: 0.0062 }));

const ARTICLES = [
  { title: 'Where is my parcel?', topics: ['delivery'], views: 12_400 },
  { title: 'Your parcel was left with a neighbour', topics: ['delivery'], views: 3_100 },
  { title: 'Sending something back', topics: ['returns', 'warranty'], views: 9_800 },
  { title: 'When refunds arrive', topics: ['returns', 'billing'], views: 15_250 },
  { title: 'Why you were charged twice', topics: ['billing'], views: 2_050 },
  { title: 'What the warranty covers', topics: ['warranty'], views: 4_700 },
];

/** The bridged modules of a run, by specifier. Each run has its own set, because it has its own budgets. */
export function openTools() {
  const tickets = readCsv('tickets');
  const customers = new Map(readCsv('customers').map((customer) => [customer.id, customer]));
  const pages = Math.ceil(tickets.length / PAGE_SIZE);
  let searches = 0;

  return {
    tickets: {
      async list({ page } = {}) {
        if (!Number.isInteger(page) || page < 1 || page > pages) throw new RangeError(`page must be a whole number from 1 to ${pages}`);
        await after(25);
        const rows = tickets.slice((page - 1) * PAGE_SIZE, page * PAGE_SIZE);
        return { page, pages, total: tickets.length, rows };
      },
    },
    customers: {
      async get(id) {
        if (typeof id !== 'string' || !/^C\d{4}$/.test(id)) throw new TypeError(`not a customer id: ${JSON.stringify(id)}`);
        await after(5);
        return customers.get(id) ?? null;
      },
    },
    rates: {
      // A synchronous host function is synchronous in the sandbox: no await needed.
      convert(amount, from) {
        if (typeof amount !== 'number' || !Number.isFinite(amount)) throw new TypeError('amount must be a finite number');
        if (!EUROS.has(from)) throw new RangeError(`no rate for ${JSON.stringify(from)}`);
        return amount * EUROS.get(from);
      },
    },
    kb: {
      async search(query) {
        if (typeof query !== 'string' || query.length > 200) throw new TypeError('query must be a short text');
        if (++searches > SEARCHES) throw new Error(`no more than ${SEARCHES} searches a run`);
        await after(20);
        if (query === 'account') throw Object.assign(new Error('this part of the index is being rebuilt'), { code: 'INDEX_REBUILDING' });
        return ARTICLES.filter(({ topics }) => topics.includes(query));
      },
    },
  };
}

/** The rows of `data/NAME.csv` as objects of texts. */
function readCsv(name) {
  const text = readFileSync(new URL(`data/${name}.csv`, import.meta.url), 'utf8');
  const [header, ...rows] = parseCsv(text);
  return rows.map((row) => Object.fromEntries(header.map((key, index) => [key, row[index]])));
}

/** Rows of fields; a quoted field may contain commas, line breaks and doubled quotes. */
function parseCsv(text) {
  const rows = [];
  let row = [];
  for (const [, quoted, plain, end] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\n]*))(,|\n)/g)) {
    row.push(quoted?.replaceAll('""', '"') ?? plain);
    if (end === '\n') {
      rows.push(row);
      row = [];
    }
  }
  return rows;
}
