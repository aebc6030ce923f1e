// Small generic helpers.

export function* chunks<T>(items: readonly T[], size: number): Generator<T[]> {
  for (let at = 0; at < items.length; at += size) yield items.slice(at, at + size);
}

export function groupBy<T, K>(items: Iterable<T>, key: (item: T) => K): Map<K, T[]> {
  const groups = new Map<K, T[]>();
  for (const item of items) {
    const group = groups.get(key(item));
    if (group) group.push(item);
    else groups.set(key(item), [item]);
  }
  return groups;
}

export const countBy = <T, K>(items: Iterable<T>, key: (item: T) => K): Map<K, number> =>
  new Map([...groupBy(items, key)].map(([name, group]) => [name, group.length]));

export function median(values: readonly number[]): number {
  if (values.length === 0) return NaN;
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

export function sum<T>(items: readonly T[], of: (item: T) => number): number {
  return Math.round(items.reduce((total, item) => total + of(item), 0) * 100) / 100;
}
