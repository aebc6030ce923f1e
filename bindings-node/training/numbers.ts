// Arithmetic: integers, floats, bits, and arrays of each.

/** How many edits make one word of the other: a table of rows, of which each needs the one before. */
function edits(from: string, to: string): number {
  let above = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (let row = 1; row <= from.length; row++) {
    const here = [row];
    for (let column = 1; column <= to.length; column++) {
      const same = from[row - 1] === to[column - 1];
      here.push(
        same ? above[column - 1]! : 1 + Math.min(above[column]!, here[column - 1]!, above[column - 1]!),
      );
    }
    above = here;
  }
  return above[to.length]!;
}

/** Primes below a bound. */
function primes(bound: number): number[] {
  const composite = new Uint8Array(bound);
  const found: number[] = [];
  for (let n = 2; n < bound; n++) {
    if (composite[n]) continue;
    found.push(n);
    for (let multiple = n * n; multiple < bound; multiple += n) composite[multiple] = 1;
  }
  return found;
}

/** How a grid of temperatures evens out: neighbours in nested arrays. */
function diffuse(size: number, steps: number): number {
  let grid: number[][] = [];
  for (let y = 0; y < size; y++) grid.push(Array.from({ length: size }, (_, x) => (x * 5 + y * 3) % 11));
  for (let step = 0; step < steps; step++) {
    const next: number[][] = [];
    for (let y = 0; y < size; y++) {
      const row = grid[y]!;
      const above = grid[(y + size - 1) % size]!;
      const below = grid[(y + 1) % size]!;
      const out = new Array<number>(size).fill(0);
      for (let x = 0; x < size; x++) {
        out[x]! +=
          0.6 * row[x]! +
          0.1 * (above[x]! + below[x]! + row[(x + 1) % size]! + row[(x + size - 1) % size]!);
      }
      next.push(out);
    }
    grid = next;
  }
  return grid[1]![2]!;
}

/** How long points of a plane stay near: floats in local variables. */
function escapes(width: number, most: number): number {
  let total = 0;
  for (let a = -2; a < 1; a += 3 / width) {
    for (let b = -1; b < 1; b += 3 / width) {
      let x = 0;
      let y = 0;
      let count = 0;
      while (x * x + y * y < 4 && count < most) {
        [x, y] = [x * x - y * y + a, 2 * x * y + b];
        count += 1;
      }
      total += count;
    }
  }
  return total;
}

/** A hash of bytes, and numbers that look like chance. */
function mix(count: number): number {
  let state = 0x9e3779b9;
  let hash = 0;
  for (let i = 0; i < count; i++) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    hash = (Math.imul(hash, 31) + (state & 0xff)) | 0;
  }
  return hash >>> 0;
}

/** Angles and roots, rounded as people do. */
function waves(count: number): number {
  const samples = new Float64Array(count);
  for (let i = 0; i < count; i++)
    samples[i] = Math.sin(i / 10) * Math.sqrt(i) + Math.abs(Math.floor(i / 3) - i ** 0.5);
  let sum = 0;
  for (const sample of samples) sum += Math.round(sample * 100) / 100;
  return sum;
}

/** The last digits of a factorial. */
function factorial(n: bigint): bigint {
  let product = 1n;
  for (let i = 2n; i <= n; i++) product *= i;
  return product % 1_000_000_007n;
}

export default function numbers(): (number | string)[] {
  const found = primes(12_000);
  return [
    edits('the quick brown fox jumps over it'.repeat(3), 'a quack broad ox jumped over them'.repeat(3)),
    found.length,
    found.reduce((sum, n) => sum + n, 0),
    diffuse(48, 12).toFixed(6),
    escapes(50, 60),
    mix(40_000),
    waves(6_000).toFixed(2),
    String(factorial(400n)),
  ];
}
