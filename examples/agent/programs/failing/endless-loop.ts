import { list } from 'tickets';
import { convert } from 'rates';

const { rows } = await list({ page: 1 });
let low = 0;
let high = rows.length;

// The classic: when high is low + 1, middle is low, and nothing moves any more.
while (low < high) {
  const middle = (low + high) >> 1;
  if (convert(1, 'EUR') > 0) low = middle;
  else high = middle;
}

export default low;
