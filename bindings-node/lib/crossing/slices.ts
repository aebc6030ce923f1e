// Cooperative scheduling of long work on the event loop.
//
// In: work that can be done in steps. Out: the completed work. It runs at once within the slice of the current
// turn. The remaining work takes one slice in each later turn, round robin. So a sandbox's values never keep the
// event loop from timers, from other runs or from a call of `terminate`.

import { now, setImmediate } from '../addon/event-loop.js';

/** The time for all work together in one turn of the event loop. */
const SLICE_MS = 15;

/** Work that may take long. */
export interface Work {
  /** Works until about that time of `now()`; returns whether the work is done. Never throws. */
  step(until: number): boolean;
}

const queue: Work[] = [];
/** The time at which the slice of this turn ends; 0 if it has not begun. */
let until = 0;
let scheduled = false;

/** Records that a turn of the event loop has begun. */
export function beginTurn(): void {
  until = 0;
}

/** The time at which the slice of this turn ends; begins the slice if necessary. */
export function endOfSlice(): number {
  if (until === 0) until = now() + SLICE_MS;
  return until;
}

/** Whether the slice of this turn is over. */
export function isLong(): boolean {
  return now() >= endOfSlice();
}

/** Does work at once within the slice of this turn, and queues the rest. */
export function start(work: Work): void {
  if (queue.length > 0 || isLong() || !work.step(until)) {
    queue.push(work);
    schedule();
  }
}

/** Calls `act` with each item, in slices. `act` must not throw. */
export function forEach<T>(items: Iterable<T>, act: (item: T) => void): void {
  const iterator = items[Symbol.iterator]();
  start({
    step(end) {
      for (let count = 1; ; count += 1) {
        const next = iterator.next();
        if (next.done === true) return true;
        act(next.value);
        if (count % 64 === 0 && now() >= end) return false;
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
  until = now() + SLICE_MS;
  for (let work = queue.shift(); work !== undefined; work = queue.shift()) {
    if (!work.step(until)) queue.push(work);
    if (now() >= until) break;
  }
  if (queue.length > 0) schedule();
}
