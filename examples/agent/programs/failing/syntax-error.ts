import { list } from 'tickets';

interface Totals { open: number; closed: number }

export default async function totals(): Promise<Totals> {
	const { rows } = await list({ page: 1 });
	const open = rows.filter((row) => row.closed_at === '').length;
	return { open, closed: rows.length - open;
}
