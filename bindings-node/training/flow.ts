// Ways through a program: generators, promises, exceptions, and loops that are left early.

class Refused extends Error {
  override name = 'Refused';
  constructor(
    readonly code: number,
    options?: ErrorOptions,
  ) {
    super(`refused with ${code}`, options);
  }
}

function* pages(count: number): Generator<number[], string> {
  for (let page = 0; page < count; page++) yield Array.from({ length: 5 }, (_, i) => page * 5 + i);
  return 'the end';
}

function* flat<T>(lists: Iterable<T[]>): Generator<T> {
  for (const list of lists) yield* list;
}

class Range implements Iterable<number> {
  constructor(
    private readonly from: number,
    private readonly to: number,
  ) {}
  *[Symbol.iterator](): Iterator<number> {
    for (let n = this.from; n < this.to; n++) yield n;
  }
}

async function fetched(key: number): Promise<number> {
  await null;
  if (key % 23 === 0) throw new Refused(key);
  return key * 2;
}

async function patient(key: number): Promise<number> {
  for (let attempt = 0; ; attempt++) {
    try {
      return await fetched(key + attempt);
    } catch (error) {
      if (!(error instanceof Refused) || attempt > 3) throw error;
    }
  }
}

async function* ticks(count: number): AsyncGenerator<number> {
  for (let i = 0; i < count; i++) yield await Promise.resolve(i);
}

function parsed(text: string): number {
  let cleaned = 0;
  try {
    const value = Number(text);
    if (Number.isNaN(value)) throw new TypeError(`no number: ${text}`);
    if (value > 90) throw new Refused(value, { cause: text });
    return value;
  } catch (error) {
    return error instanceof Refused ? error.code % 10 : -(error as Error).message.length;
  } finally {
    cleaned += 1;
  }
}

function search(size: number): number {
  let looks = 0;
  outer: for (let a = 1; a < size; a++) {
    for (let b = a; b < size; b++) {
      looks += 1;
      if ((a * b) % 97 === 1) continue outer;
      if (a + b === 2 * size - 3) break outer;
    }
  }
  do looks -= 3;
  while (looks % 7 !== 0);
  return looks;
}

export default async function flow(): Promise<number[]> {
  let sum = 0;
  for (const n of flat(pages(400))) if (n % 3) sum += n;
  const [first, , third, ...others] = new Range(2, 300);
  const spread = Math.max(...new Range(0, 200)) + first! + third! + others.length;
  let awaited = 0;
  for (let key = 1; key < 600; key++) awaited += await patient(key);
  const together = await Promise.all(
    [...new Range(1, 200)].map((key) => patient(key).then((value) => value + 1)),
  );
  const settled = await Promise.allSettled([...new Range(0, 100)].map(fetched));
  for await (const tick of ticks(300)) awaited += tick;
  const numbers = Array.from({ length: 600 }, (_, i) => parsed(i % 11 ? String(i % 120) : `x${i}`));
  const stack = new Refused(1).stack ?? '';
  const quick = await Promise.race([fetched(2), new Promise<number>(() => undefined)]);
  return [
    sum,
    spread,
    awaited,
    together.reduce((a, b) => a + b, 0),
    settled.filter(({ status }) => status === 'rejected').length,
    numbers.reduce((a, b) => a + b, 0),
    stack.includes('flow') ? 1 : 0,
    quick,
    search(120),
  ];
}
