// Calls: recursion, closures, methods, and functions that are handed around.

type Tree = { key: number; left: Tree | null; right: Tree | null };

/** Ways to place queens so that none attacks another. */
function queens(size: number, row = 0, columns = 0, rising = 0, falling = 0): number {
  if (row === size) return 1;
  let ways = 0;
  for (let column = 0; column < size; column++) {
    const [c, r, f] = [1 << column, 1 << (row + column), 1 << (row - column + size)];
    if (columns & c || rising & r || falling & f) continue;
    ways += queens(size, row + 1, columns | c, rising | r, falling | f);
  }
  return ways;
}

function insert(tree: Tree | null, key: number): Tree {
  if (tree === null) return { key, left: null, right: null };
  if (key < tree.key) tree.left = insert(tree.left, key);
  else if (key > tree.key) tree.right = insert(tree.right, key);
  return tree;
}

const depth = (tree: Tree | null): number => (tree ? 1 + Math.max(depth(tree.left), depth(tree.right)) : 0);
const total = (tree: Tree | null): number =>
  tree === null ? 0 : tree.key + total(tree.left) + total(tree.right);

/** Moves of a tower of disks: short calls with several arguments, and no value. */
function tower(
  disks: number,
  from: string,
  to: string,
  over: string,
  move: (from: string, to: string) => void,
): void {
  if (disks === 0) return;
  tower(disks - 1, from, over, to, move);
  move(from, to);
  tower(disks - 1, over, to, from, move);
}

const isEven = (n: number): boolean => (n === 0 ? true : isOdd(n - 1));
const isOdd = (n: number): boolean => (n === 0 ? false : isEven(n - 1));

function counter(step: number) {
  let count = 0;
  return { next: () => (count += step), peek: () => count };
}

function memoized<A, R>(fn: (argument: A) => R): (argument: A) => R {
  const known = new Map<A, R>();
  return (argument) => {
    if (!known.has(argument)) known.set(argument, fn(argument));
    return known.get(argument)!;
  };
}

const compose =
  (...steps: ((n: number) => number)[]) =>
  (start: number) =>
    steps.reduce((value, step) => step(value), start);

export default function calls(): number[] {
  let tree: Tree | null = null;
  for (let i = 0, key = 17; i < 1_500; i++) {
    key = (key * 73 + 41) % 4_093;
    tree = insert(tree, key);
  }
  let moves = 0;
  tower(12, 'a', 'c', 'b', (from, to) => {
    if (from !== to) moves += 1;
  });
  const paths: (n: number) => number = memoized((n) => (n < 3 ? 1 : paths(n - 1) + paths(n - 3)));
  const steps = counter(3);
  const change = compose(
    (n) => n + 1,
    (n) => n * 2,
    Math.trunc,
    steps.next.bind(null),
  );
  let changed = 0;
  for (let i = 0; i < 3_000; i++)
    changed += change(i) + Math.max.apply(null, [i, 5]) + (isEven(i % 20) ? 1 : 0);
  return [queens(7), depth(tree), total(tree), moves, paths(60), changed, steps.peek()];
}
