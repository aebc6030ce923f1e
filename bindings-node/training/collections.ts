// Collections: arrays that are sorted, filtered and grouped, maps, sets, and a queue.

interface Order {
  id: number;
  customer: string;
  city: string;
  cents: number;
  tags: Set<string>;
}

const CITIES = ['Lund', 'Turku', 'Bergen', 'Aarhus', 'Visby'];

function orders(count: number): Order[] {
  let state = 20_011;
  const chance = (below: number) => (state = (state * 48_271) % 2_147_483_647) % below;
  return Array.from({ length: count }, (_, id) => ({
    id,
    customer: `customer ${chance(120)}`,
    city: CITIES[chance(5)]!,
    cents: chance(50_000),
    tags: new Set(['new', 'gift', 'late', 'bulk'].filter(() => chance(2) === 0)),
  }));
}

function grouped(all: Order[]): Map<string, Order[]> {
  const groups = new Map<string, Order[]>();
  for (const order of all) {
    const group = groups.get(order.city);
    if (group) group.push(order);
    else groups.set(order.city, [order]);
  }
  return groups;
}

/** The least first: swaps in one array. */
class Heap<T> {
  private items: T[] = [];
  constructor(private readonly before: (a: T, b: T) => boolean) {}
  get size(): number {
    return this.items.length;
  }
  push(item: T): void {
    const { items } = this;
    let at = items.push(item) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!this.before(items[at]!, items[parent]!)) return;
      [items[at], items[parent]] = [items[parent]!, items[at]!];
      at = parent;
    }
  }
  pop(): T | undefined {
    const { items } = this;
    const [top] = items;
    const last = items.pop();
    if (items.length === 0 || last === undefined) return top;
    items[0] = last;
    for (let at = 0; ;) {
      let least = at;
      for (const child of [2 * at + 1, 2 * at + 2]) {
        if (child < items.length && this.before(items[child]!, items[least]!)) least = child;
      }
      if (least === at) return top;
      [items[at], items[least]] = [items[least]!, items[at]!];
      at = least;
    }
  }
}

/** How far each crossing of a town is from its first. */
function distances(side: number): number {
  const far = new Map<string, number>([['0:0', 0]]);
  const waiting: [number, number][] = [[0, 0]];
  while (waiting.length > 0) {
    const [x, y] = waiting.shift()!;
    for (const [dx, dy] of [
      [1, 0],
      [0, 1],
      [-1, 0],
      [0, -1],
    ] as const) {
      const name = `${x + dx}:${y + dy}`;
      const inside = x + dx >= 0 && y + dy >= 0 && x + dx < side && y + dy < side;
      if (!inside || far.has(name) || (x * y) % 7 === 3) continue;
      far.set(name, far.get(`${x}:${y}`)! + 1);
      waiting.push([x + dx, y + dy]);
    }
  }
  return [...far.values()].reduce((sum, steps) => sum + steps, far.size);
}

/** Keys that come, are counted, and go again. */
function churn(count: number): number {
  const counts = new Map<string | number, number>();
  const gone = new Set<number>();
  for (let i = 0; i < count; i++) {
    const key = i % 2 ? (i * 13) % 701 : `name ${(i * 29) % 503}`;
    counts.set(key, (counts.get(key) ?? 0) + 1);
    if (i % 9 === 0 && counts.delete((i * 7) % 701)) gone.add(i % 97);
  }
  let sum = gone.size;
  for (const [key, value] of counts) sum += typeof key === 'number' ? value : 2 * value;
  counts.forEach((value) => (sum += value));
  return sum;
}

export default function collections(): (number | string)[] {
  const all = orders(900);
  const byPrice = all.toSorted((a, b) => b.cents - a.cents || a.id - b.id);
  const byName = [...all].sort((a, b) =>
    a.customer < b.customer ? -1 : a.customer > b.customer ? 1 : a.id - b.id,
  );
  const sizes = [...grouped(all)].map(([city, group]) => `${city} ${group.length}`).sort();
  const numbers = all.map(({ cents }) => cents).sort((a, b) => a - b);
  const late = all
    .filter(({ tags }) => tags.has('late') && !tags.has('gift'))
    .flatMap(({ id, tags }) => [id, ...tags]);
  const heap = new Heap<number>((a, b) => a < b);
  for (const { cents } of all) heap.push(cents);
  let order = 0;
  for (let i = 0; heap.size > 0; i++) order += heap.pop()! * (i % 3);
  const found =
    all.findIndex(({ cents }) => cents === numbers[450]) +
    all.findLastIndex(({ city }) => city === 'Visby');
  const pairs = new Set(all.slice(0, 200).map(({ city, customer }) => `${city}/${customer}`));
  const moved = Array.from({ length: 400 }, (_, i) => i)
    .splice(50, 200)
    .concat(numbers.slice(0, 50))
    .reverse();
  return [
    byPrice[3]!.cents,
    byName[40]!.id,
    sizes.join(),
    late.length,
    order,
    distances(18),
    churn(8_000),
    found,
    pairs.size,
    moved.indexOf(77),
    all.some(({ cents }) => cents === 1) ? 1 : 0,
    all.every(({ id }) => id >= 0) ? 1 : 0,
    numbers.at(-1)!,
  ];
}
