import { hoursFor } from './limits.ts';

type Iso = `${number}-${string}`;

export const deadline = (category: string, opened: Iso | string): Date =>
  new Date(Date.parse(opened) + hoursFor(category.trim().toLowerCase()) * 3_600_000);
