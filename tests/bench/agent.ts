// An agent's program: eight calls of its host, two thousand rows read, a summary returned.

interface Row {
  id: number;
  region: string;
  product: string;
  units: number;
  price: number;
  note?: string;
}
interface Summary {
  region: string;
  revenue: number;
  tax: number;
  best: string;
  urgent: number;
}

declare function taxOf(region: string): Promise<number>;

const REGIONS = ['north', 'east', 'south', 'west'] as const;
const URGENT: RegExp = /\burgent\b/i;

function best(rows: readonly Row[]): string {
  const units = new Map<string, number>();
  for (const { product, units: more } of rows) units.set(product, (units.get(product) ?? 0) + more);
  return [...units].sort(([, a], [, b]) => b - a)[0]?.[0] ?? 'none';
}

async function summary(region: string, rows: readonly Row[]): Promise<Summary> {
  const revenue = rows.reduce((sum: number, row) => sum + row.units * row.price, 0);
  const urgent = rows.filter(({ note }) => note !== undefined && URGENT.test(note)).length;
  return { region, revenue, tax: revenue * (await taxOf(region)), best: best(rows), urgent };
}

export default async function main(rows: Row[]): Promise<Summary[]> {
  const summaries: Summary[] = [];
  for (const region of REGIONS) {
    summaries.push(await summary(region, rows.filter((row) => row.region === region)));
  }
  const halves = REGIONS.map((region) => summary(region, rows.filter((row) => row.region === region && row.units > 50)));
  return [...summaries, ...(await Promise.all(halves))];
}
