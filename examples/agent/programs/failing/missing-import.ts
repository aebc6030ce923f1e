import { list } from 'tickets';
import { groupBy } from 'lodash';

export default async () => {
  const { rows } = await list({ page: 1 });
  return groupBy(rows, 'category');
};
