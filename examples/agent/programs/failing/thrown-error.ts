import { list } from 'tickets';
import { review } from './lib/review.ts';

const { rows } = await list({ page: 1 });
console.log(`reviewing ${rows.length} rows`);

export default review(rows);
