// A generator of random choices with a seed, the same on every machine.
//
// In: a seed and the number of a case. Out: choices that depend on these two alone, so that a case can be reproduced
// without those before it.

/** Choices for one case. */
export function randomness(seed, number) {
  let state = mixed(mixed(seed >>> 0) ^ Math.imul(number + 1, 0x9e3779b1));
  const unit = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    return mixed(state) / 2 ** 32;
  };
  const random = {
    /** A number in [0, 1). */
    unit,
    /** An integer in [0, n). */
    below: (n) => Math.floor(unit() * n),
    /** An integer in [from, to]. */
    between: (from, to) => from + random.below(to - from + 1),
    /** Whether an event of that probability happens. */
    chance: (probability) => unit() < probability,
    pick: (list) => list[random.below(list.length)],
    /** A key of `weights`, with the probability of its weight. */
    weighted: (weights) => {
      const entries = Object.entries(weights);
      let left = unit() * entries.reduce((sum, [, weight]) => sum + weight, 0);
      for (const [key, weight] of entries) {
        left -= weight;
        if (left < 0) return key;
      }
      return entries[0][0];
    },
    /** An array of `length` results of `make`. */
    list: (length, make) => Array.from({ length }, (_, index) => make(index)),
  };
  return random;
}

function mixed(state) {
  let t = Math.imul(state ^ (state >>> 15), 1 | state);
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
  return (t ^ (t >>> 14)) >>> 0;
}
