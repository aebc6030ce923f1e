// JSON: written, read, changed and compared.

interface Ticket {
  id: number;
  title: string;
  open: boolean;
  hours: number;
  labels: string[];
  author: { name: string; mail: string | null; seen: { last: string; count: number } };
}

function tickets(count: number): Ticket[] {
  const all: Ticket[] = [];
  for (let id = 0; id < count; id++) {
    const name = `person ${id % 31}`;
    all.push({
      id,
      title: id % 8 ? `ticket number ${id}` : `"quoted" \\ ticket\n${id} ☂`,
      open: id % 3 !== 0,
      hours: id / 8,
      labels: [`area-${id % 6}`, `size-${id % 4}`].slice(0, id % 3),
      author: {
        name,
        mail: id % 5 ? `${name.replace(' ', '.')}@mail.test` : null,
        seen: { last: '2024-05-06', count: id * 3 },
      },
    });
  }
  return all;
}

function same(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  const keys = Object.keys(a);
  if (keys.length !== Object.keys(b).length) return false;
  return keys.every((key) =>
    same((a as Record<string, unknown>)[key], (b as Record<string, unknown>)[key]),
  );
}

function copy<T>(value: T): T {
  if (Array.isArray(value)) return value.map(copy) as T;
  if (typeof value !== 'object' || value === null) return value;
  const out: Record<string, unknown> = {};
  for (const [key, member] of Object.entries(value)) out[key] = copy(member);
  return out as T;
}

/** The paths of all that two values differ in. */
function differences(a: any, b: any, path: string, found: string[]): string[] {
  if (typeof a !== 'object' || a === null || typeof b !== 'object' || b === null) {
    if (!Object.is(a, b)) found.push(path);
    return found;
  }
  for (const key of new Set([...Object.keys(a), ...Object.keys(b)]))
    differences(a[key], b[key], `${path}.${key}`, found);
  return found;
}

export default function json(): (number | string)[] {
  const all = tickets(500);
  const written = JSON.stringify(all);
  const read = JSON.parse(written) as Ticket[];
  const pretty = JSON.stringify({ all: all.slice(0, 60) }, null, 2);
  const chosen = JSON.stringify(all.slice(0, 60), ['id', 'author', 'name']);
  const changed = JSON.parse(written.slice(0, written.indexOf(',{"id":80,')) + ']', (key, value) =>
    key === 'hours' ? value * 2 : value,
  );
  const copied = copy(read);
  copied[7]!.author.seen.count = -1;
  copied[9]!.labels.push('more');
  const cloned = structuredClone(read.slice(0, 100));
  let refused = 0;
  for (const text of ['{"a":', '[1,]', 'nul', '"\\x"', '{"b" 1}']) {
    try {
      JSON.parse(text);
    } catch (error) {
      if (error instanceof SyntaxError) refused += 1;
    }
  }
  return [
    written.length,
    pretty.length,
    chosen.length,
    changed.length,
    same(all, read) ? 'same' : 'different',
    differences(all, copied, '', []).join(),
    same(cloned, all.slice(0, 100)) ? 'same' : 'different',
    refused,
    read
      .filter(({ open, hours }) => open && hours > 20)
      .reduce((sum, { author }) => sum + author.seen.count, 0),
  ];
}
