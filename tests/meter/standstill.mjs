// Standstills of this thread's event loop.
//
// In: the start and the end of the measurement. Out: the longest turn of the loop, in CPU time of this thread, so that
// neither other processes nor waiting count. Linux only, as Node.js 20 cannot report a thread's time.

import { openSync, readSync } from 'node:fs';

const clock = openSync(`/proc/self/task/${process.pid}/schedstat`);

/** The longest turn of the event loop, in CPU time of this thread. */
export class Standstill {
  longest = 0;
  live = true;
  last = threadMs();

  constructor() {
    this.look();
  }

  look() {
    if (!this.live) return;
    this.mark();
    setImmediate(() => this.look());
  }

  mark() {
    const now = threadMs();
    this.longest = Math.max(this.longest, now - this.last);
    this.last = now;
  }

  /** The following work is the meter's own. */
  pause() {
    this.mark();
    this.live = false;
  }

  resume() {
    this.live = true;
    this.last = threadMs();
    this.look();
  }

  end() {
    this.pause();
    return this.longest;
  }
}

function threadMs() {
  const bytes = Buffer.allocUnsafe(64);
  const size = readSync(clock, bytes, 0, 64, 0);
  return Number(bytes.toString('latin1', 0, size).split(' ')[0]) / 1e6;
}
