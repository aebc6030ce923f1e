// Memory of a process: sampled when none of its runs is alive, and judged flat or not.
//
// In: the number of runs so far. Out: lines of a table, and the values that have grown. Memory is flat when the minimum
// of the last quarter exceeds the maximum of the second by no more than its tolerance: the allocators keep freed pages
// in heaps of their threads, and reuse them in another order each time.

import { readFileSync, readdirSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc');

const MIB = 2 ** 20;
/**
 * MiB, except for the last. A hundred threads keep a quarter of a MiB each of their stacks, and the allocators keep
 * some.
 */
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
      // Compiled code in the cache, up to a limit that short soaks do not reach.
      cache: cacheBytes / MIB,
      heap: (heapUsed + external) / MIB,
      threads: threads(),
      // One of them is the open folder.
      fds: readdirSync('/proc/self/fd').length - 1,
    };
    this.rows.push(row);
    return row;
  }

  /** The values that the last quarter exceeds. */
  grown() {
    const quarter = Math.floor(this.rows.length / 4);
    const second = this.rows.slice(quarter, 2 * quarter);
    const last = this.rows.slice(-quarter);
    // Threads start and end within seconds, so their number is checked at the end.
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
