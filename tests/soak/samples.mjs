// What a process holds: sampled when none of its runs is alive, and judged flat or not.
//
// In: how many runs there have been. Out: lines of a table, and what has grown. Memory is flat when the
// least of the last quarter is not above the most of the second by more than its tolerance: the
// allocators keep freed pages in heaps of their threads, and give them out in another order each time.

import { readFileSync, readdirSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc');

const MIB = 2 ** 20;
/** MiB, but for the last: a hundred threads keep a quarter of one each of their stacks, and the allocators some. */
const TOLERANCE = { rss: 32, heap: 4, threads: 0, fds: 0 };

export const threads = () => readdirSync('/proc/self/task').length;

export class Samples {
  rows = [];
  #started = performance.now();

  take(runs, cacheBytes = 0) {
    collectGarbage();
    const resident = Number(readFileSync('/proc/self/statm', 'utf8').split(' ')[1]) * 4096;
    const { heapUsed, external } = process.memoryUsage();
    const row = {
      runs,
      seconds: (performance.now() - this.#started) / 1e3,
      rss: resident / MIB,
      // Compiled code that is kept, up to a bound that short soaks do not reach.
      cache: cacheBytes / MIB,
      heap: (heapUsed + external) / MIB,
      threads: threads(),
      // One of them is the folder being read.
      fds: readdirSync('/proc/self/fd').length - 1,
    };
    this.rows.push(row);
    return row;
  }

  /** What the last quarter holds and the second did not. */
  grown() {
    const quarter = Math.floor(this.rows.length / 4);
    const second = this.rows.slice(quarter, 2 * quarter);
    const last = this.rows.slice(-quarter);
    // Threads come and go by seconds: how many there are at the end is looked at there.
    return ['rss', 'heap', 'fds'].flatMap((what) => {
      const held = (row) => row[what] - (what === 'rss' ? row.cache : 0);
      const before = Math.max(...second.map(held));
      const after = Math.min(...last.map(held));
      return after > before + TOLERANCE[what] ? [`${what}: from ${before.toFixed(1)} to ${after.toFixed(1)}`] : [];
    });
  }

  static header() {
    return '    runs      s   RSS MiB   heap MiB  threads  fds';
  }

  static line({ runs, seconds, rss, heap, threads: count, fds }) {
    const cells = [`${runs}`.padStart(8), seconds.toFixed(0).padStart(6), rss.toFixed(1).padStart(9), heap.toFixed(1).padStart(10)];
    return `${cells.join(' ')} ${`${count}`.padStart(8)} ${`${fds}`.padStart(4)}`;
  }
}
