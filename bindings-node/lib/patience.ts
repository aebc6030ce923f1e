// How long to look for the next event before going to sleep.
//
// In: when one is expected, and when it came. Out: whether to go on looking. As the core's
// `patience.rs`, whose other half this is: as long as what is waited for was seen to take.

import { performance } from 'node:perf_hooks';

const LONGEST_MS = 0.25;
const SHORTEST_MS = 0.01;
const AT_FIRST_MS = 0.06;
// What took this long was near enough to be looked for, had the event loop not had to be woken.
const NEAR_MS = 0.35;

export class Patience {
  private windowMs = AT_FIRST_MS;
  private since = 0;
  private expecting = false;

  /** Something is expected from now on. */
  begin(): void {
    this.since = performance.now();
    this.expecting = true;
  }

  /** Whether looking for it is still worth it. */
  lasts(): boolean {
    return performance.now() - this.since < this.windowMs;
  }

  /** It came. */
  end(): void {
    if (!this.expecting) return;
    this.expecting = false;
    const tookMs = performance.now() - this.since;
    const wantedMs = tookMs < NEAR_MS ? Math.min(Math.max(2 * tookMs, SHORTEST_MS), LONGEST_MS) : SHORTEST_MS;
    // Quick to learn that looking pays, and slow to learn that it does not.
    this.windowMs += (wantedMs - this.windowMs) / (wantedMs > this.windowMs ? 2 : 16);
  }
}
