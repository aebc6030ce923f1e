type Country = 'no' | 'se' | 'dk' | 'fi';
interface Line {
  sku: string;
  count: number;
  price?: number;
}
interface Order {
  readonly id: number;
  country: Country;
  lines: Line[];
  note: string | null;
}
enum Band {
  Small,
  Large,
}

const edition: number = 0;
const VAT: Record<Country, number> = { no: 0.25, se: 0.25, dk: 0.25, fi: 0.255 };
const LARGE = 40 as const;

function price<T extends Line>(line: T): number {
  return line.count * (line.price ?? 1);
}

const net = (order: Order): number => order.lines.reduce((sum: number, line) => sum + price(line), 0);

class Ledger<K extends string> {
  private readonly sums = new Map<K, number>();
  public add(key: K, amount: number): this {
    this.sums.set(key, (this.sums.get(key) ?? 0) + amount);
    return this;
  }
  get all(): [K, number][] {
    return [...this.sums].sort(([, a], [, b]) => b - a);
  }
}

const orders: readonly Order[] = [
  { id: 1, country: 'no', lines: [{ sku: 'a', count: 3, price: 9.5 }], note: null },
  { id: 2, country: 'fi', lines: [{ sku: 'b', count: 7 }, { sku: 'c', count: 5, price: 8 }], note: 'gift' },
];

const ledger = new Ledger<Country>();
for (const order of orders) {
  const gross = net(order) * (1 + VAT[order.country]);
  ledger.add(order.country, gross);
}
const bands = orders.map((order) => (net(order) > LARGE ? Band.Large : Band.Small));
export default { edition, sums: ledger.all, bands, notes: orders.flatMap(({ note }) => note ?? []) };
