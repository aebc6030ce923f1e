// Objects: classes, properties that are read and written, and objects taken apart and put together.

enum Kind {
  Circle,
  Box,
  Group,
}
type Shape =
  | { kind: Kind.Circle; radius: number }
  | { kind: Kind.Box; width: number; height: number }
  | { kind: Kind.Group; members: Shape[]; label?: string };

function area(shape: Shape): number {
  switch (shape.kind) {
    case Kind.Circle:
      return 3 * shape.radius ** 2;
    case Kind.Box:
      return shape.width * shape.height;
    case Kind.Group:
      return shape.members.reduce((sum, member) => sum + area(member), 0);
  }
}

abstract class Account {
  static opened = 0;
  #balance = 0;
  readonly history: number[] = [];

  constructor(readonly owner: string) {
    Account.opened += 1;
  }

  abstract get fee(): number;

  get balance(): number {
    return this.#balance;
  }

  book(amount: number): this {
    this.#balance += amount - this.fee;
    this.history.push(amount);
    return this;
  }
}

class Savings extends Account {
  constructor(
    owner: string,
    private rate: number,
  ) {
    super(owner);
  }
  get fee(): number {
    return this.rate / 10;
  }
  override book(amount: number): this {
    return super.book(Math.floor(amount));
  }
}

class Giro extends Account {
  override readonly fee = 0.25;
}

/** Weights on springs: properties of few objects, again and again. */
class Weight {
  speed = 0;
  constructor(
    public place: number,
    public mass: number,
  ) {}
  pull(other: Weight, time: number): void {
    const force = (other.place - this.place - 1) * 0.4;
    this.speed += (force / this.mass) * time;
    other.speed -= (force / other.mass) * time;
  }
  move(time: number): void {
    this.place += this.speed * time;
  }
}

function swing(steps: number): number {
  const chain = Array.from({ length: 12 }, (_, i) => new Weight(i * 1.1, 1 + (i % 3)));
  for (let step = 0; step < steps; step++) {
    for (let i = 1; i < chain.length; i++) chain[i - 1]!.pull(chain[i]!, 0.02);
    for (const weight of chain) weight.move(0.02);
  }
  return chain.reduce((sum, { mass, speed }) => sum + mass * speed * speed, 0);
}

/** Settings in layers: spread, rest, defaults, optional members, `in`, `delete`. */
function settings(count: number): number {
  const base: Record<string, unknown> = {
    mode: 'plain',
    retries: 2,
    nested: { depth: 1, list: [1, 2, 3] },
  };
  let score = 0;
  for (let i = 0; i < count; i++) {
    const layer = { ...base, [`key${i % 40}`]: i, retries: i % 7, ...(i % 3 === 0 && { mode: 'strict' }) };
    const {
      mode,
      retries = 1,
      missing = 4,
      nested: {
        list: [first, ...others],
      },
      ...rest
    } = layer as any;
    score +=
      retries + missing + first + others.length + Object.keys(rest).length + (mode === 'strict' ? 1 : 0);
    score += layer['absent' as keyof typeof layer]?.toString().length ?? 1;
    if ('mode' in layer) delete layer['mode' as keyof typeof layer];
    for (const name in layer) if (Object.hasOwn(layer, name)) score += name.length;
    for (const [name, value] of Object.entries(layer))
      if (typeof value === 'number') score += name.length + value;
  }
  return score;
}

export default function objects(): (number | string)[] {
  const shapes: Shape[] = [];
  for (let i = 0; i < 400; i++) {
    shapes.push({ kind: Kind.Circle, radius: i % 9 }, { kind: Kind.Box, width: i, height: 2 });
    if (i % 5 === 0) shapes.push({ kind: Kind.Group, members: shapes.slice(-4), label: `group ${i}` });
  }
  const accounts: Account[] = [];
  for (let i = 0; i < 60; i++)
    accounts.push(i % 2 ? new Savings(`saver ${i}`, i % 4) : new Giro(`payer ${i}`));
  for (let i = 0; i < 6_000; i++) accounts[i % accounts.length]!.book((i % 100) + 0.5);
  const saved = accounts
    .filter((account) => account instanceof Savings)
    .reduce((sum, { balance }) => sum + balance, 0);
  return [
    area({ kind: Kind.Group, members: shapes }),
    saved.toFixed(2),
    Account.opened,
    swing(250).toFixed(6),
    settings(1_200),
  ];
}
