import type { Row } from 'tickets';
import { deadline } from './policy.ts';

export interface Verdict { id: string; due: Date }

export function review(rows: readonly Row[]): Verdict[] {
  return rows.map((row): Verdict => ({ id: row.id, due: deadline(row.category, row.opened_at) }));
}
