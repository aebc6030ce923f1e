// The costs of the year's tickets, and the articles that could have saved them.

import { list, type Row } from 'tickets';
import * as customers from 'customers';
import { convert } from 'rates';
import { search } from 'kb';
import { clean, Flaw, type Ticket } from './lib/clean.ts';
import { chunks, countBy, groupBy, median, sum } from './lib/stats.js';

declare function report(value: unknown): void;

type Segment = 'consumer' | 'business' | 'enterprise';
interface Customer { id: string; segment: Segment; country: string }
interface Costed extends Ticket { euros: number; customer: Customer }

export interface Line {
  category: string;
  tickets: number;
  open: number;
  medianHours: number;
  refunded: number;
  fromBusinesses: number;
  article: string;
}

const HOUR = 3_600_000;
const flaws = new Map<Flaw, number>();
const flawed = (flaw: Flaw) => void flaws.set(flaw, (flaws.get(flaw) ?? 0) + 1);

// The first page has the number of pages; the others are read four at a time.
const first = await list({ page: 1 });
const rows: Row[] = [...first.rows];
const rest = Array.from({ length: first.pages - 1 }, (_, index) => index + 2);
for (const pages of chunks(rest, 4)) {
  const answers = await Promise.all(pages.map((page) => list({ page })));
  rows.push(...answers.flatMap((answer) => answer.rows));
  report({ step: 'read', done: rows.length, of: first.total });
}

async function loadCustomers(ids: Iterable<string>): Promise<Map<string, Customer>> {
  const known = new Map<string, Customer>();
  for (const some of chunks([...ids], 200)) {
    const answers = await Promise.allSettled(some.map((id) => customers.get(id)));
    answers.forEach((answer, index) => {
      if (answer.status === 'rejected') console.warn('customers.get', some[index], answer.reason.message);
      else if (answer.value !== null) known.set(some[index], answer.value as Customer);
    });
    report({ step: 'customers', done: known.size });
  }
  return known;
}

function cost(ticket: Ticket, known: Map<string, Customer>): Costed | Flaw {
  const customer = known.get(ticket.customerId);
  if (!customer) return Flaw.Customer;
  try {
    return { ...ticket, customer, euros: ticket.refund ? convert(ticket.refund.amount, ticket.refund.currency) : 0 };
  } catch (error) {
    if (error instanceof RangeError) return Flaw.Currency;
    throw error;
  }
}

async function articleFor(category: string): Promise<string> {
  try {
    const found = await search(category);
    return found.toSorted((a, b) => b.views - a.views)[0]?.title ?? '—';
  } catch (error) {
    console.error(`kb.search("${category}") failed:`, error);
    return '(search failed)';
  }
}

async function describe(category: string, tickets: Costed[]): Promise<Line> {
  const hours = tickets.flatMap(({ opened, closed }) => (closed ? [(closed.getTime() - opened.getTime()) / HOUR] : []));
  const line = {
    category,
    tickets: tickets.length,
    open: tickets.length - hours.length,
    medianHours: median(hours),
    refunded: sum(tickets, (ticket) => ticket.euros),
    fromBusinesses: sum(tickets.filter(({ customer }) => customer.segment !== 'consumer'), (ticket) => ticket.euros),
    article: await articleFor(category),
  } satisfies Line;
  report({ step: 'counted', category, refunded: line.refunded });
  return line;
}

export async function triage({ top }: { top: number }) {
  const { tickets, dropped } = clean(rows);
  for (const { flaw } of dropped) flawed(flaw);

  const known = await loadCustomers(new Set(tickets.map((ticket) => ticket.customerId)));
  const costed: Costed[] = [];
  for (const ticket of tickets) {
    const answer = cost(ticket, known);
    if (typeof answer === 'string') flawed(answer);
    else costed.push(answer);
  }
  console.info('tickets by country', countBy(costed, ({ customer }) => customer.country));

  const groups = groupBy(costed, (ticket) => ticket.category);
  const lines = await Promise.all([...groups].map(([category, group]) => describe(category, group)));
  lines.sort((a, b) => b.refunded - a.refunded);
  return {
    rows: rows.length,
    used: costed.length,
    flaws,
    lines: lines.slice(0, top),
    refunded: sum(lines, (line) => line.refunded),
    latest: new Date(Math.max(...costed.map(({ opened }) => opened.getTime()))),
  };
}
