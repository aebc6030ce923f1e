// Work that takes long, between the other things that the event loop does.
//
// In: work that can be done bit by bit. Out: the same, done: at once as far as that takes a moment, and
// otherwise in turns of the event loop, a slice in each, every piece of work in its turn. So nothing that a
// sandbox hands over keeps the loop from timers, from other runs, or from a call of `terminate`.

import { performance } from 'node:perf_hooks';
import { setImmediate } from 'node:timers';

/** What all work together may take in one turn of the event loop. */
const SLICE_MS = 15;

/** Something that takes long. */
export interface Work {
  /** Does some of it, until about that time of `performance.now()`; says whether it is done. Never throws. */
  step(until: number): boolean;
}

const queue: Work[] = [];
/** When the slice of this turn is over; 0 when none was begun. */
let until = 0;
let scheduled = false;

/** A turn of the event loop has begun. */
export function beginTurn(): void {
  until = 0;
}

/** When this turn has taken as long as it may. */
export function endOfSlice(): number {
  if (until === 0) until = performance.now() + SLICE_MS;
  return until;
}

/** Whether this turn has. */
export function isLong(): boolean {
  return performance.now() >= endOfSlice();
}

/** Does work, at once as far as this turn has time for it. */
export function start(work: Work): void {
  if (queue.length > 0 || isLong() || !work.step(until)) {
    queue.push(work);
    schedule();
  }
}

/** Calls `act` with each item. It must not throw. */
export function forEach<T>(items: Iterable<T>, act: (item: T) => void): void {
  const iterator = items[Symbol.iterator]();
  start({
    step(end) {
      for (let count = 1; ; count += 1) {
        const next = iterator.next();
        if (next.done === true) return true;
        act(next.value);
        if (count % 64 === 0 && performance.now() >= end) return false;
      }
    },
  });
}

function schedule(): void {
  if (scheduled) return;
  scheduled = true;
  setImmediate(turn);
}

function turn(): void {
  scheduled = false;
  until = performance.now() + SLICE_MS;
  for (let work = queue.shift(); work !== undefined; work = queue.shift()) {
    if (!work.step(until)) queue.push(work);
    if (performance.now() >= until) break;
  }
  if (queue.length > 0) schedule();
}
