// Rows as the help desk exports them → tickets that can be counted, and the flaws of the other rows.

import type { Row } from 'tickets';

export enum Flaw {
  Twice = 'twice',
  Date = 'odd date',
  Amount = 'no amount',
  Customer = 'no such customer',
  Currency = 'no such currency',
}

export const enum Priority { Low = 1, Normal, High, Urgent }

export interface Ticket {
  id: string;
  opened: Date;
  closed?: Date;
  customerId: string;
  category: string;
  priority: Priority;
  refund?: { amount: number; currency: string };
}

const PRIORITIES: Record<string, Priority> = {
  low: Priority.Low,
  normal: Priority.Normal,
  high: Priority.High,
  urgent: Priority.Urgent,
};
const AMOUNT = /^(?:\d+|\d{1,3}(?:,\d{3})+)(?:\.\d+)?$/;

class Dirty extends Error {
  constructor(readonly flaw: Flaw, readonly id: string) {
    super(`${id}: ${flaw}`);
  }
}

function date(text: string, id: string): Date {
  const parsed = new Date(/^\d{4}-/.test(text) ? text : NaN);
  if (Number.isNaN(parsed.getTime())) throw new Dirty(Flaw.Date, id);
  return parsed;
}

function refund({ id, refund, currency }: Row): Ticket['refund'] {
  if (refund === '') return undefined;
  if (!AMOUNT.test(refund)) throw new Dirty(Flaw.Amount, id);
  return { amount: Number(refund.replaceAll(',', '')), currency };
}

function parse(row: Row): Ticket {
  const opened = date(row.opened_at, row.id);
  const closed = row.closed_at ? date(row.closed_at, row.id) : undefined;
  if (closed && closed < opened) throw new Dirty(Flaw.Date, row.id);
  return {
    id: row.id,
    opened,
    closed,
    customerId: row.customer_id,
    category: row.category.trim().toLowerCase(),
    priority: PRIORITIES[row.priority] ?? Priority.Normal,
    refund: refund(row),
  };
}

export function clean(rows: readonly Row[]): { tickets: Ticket[]; dropped: Dirty[] } {
  const seen = new Set<string>();
  const tickets: Ticket[] = [];
  const dropped: Dirty[] = [];
  for (const row of rows) {
    try {
      if (seen.has(row.id)) throw new Dirty(Flaw.Twice, row.id);
      seen.add(row.id);
      tickets.push(parse(row));
    } catch (error) {
      if (!(error instanceof Dirty)) throw error;
      dropped.push(error);
    }
  }
  return { tickets, dropped };
}
