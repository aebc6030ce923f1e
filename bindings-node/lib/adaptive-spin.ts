// How long to look for the next event before going to sleep.
//
// In: when one is expected, when it came, and whether the event loop had to be woken for it. Out:
// whether to go on looking. As the core's `binding/adaptive_spin.rs`, whose other half this is, and which gives the
// reasons.

import { performance } from 'node:perf_hooks';

const SHORT_MS = 0.05;
const LONG_MS = 0.25;
const NEAR_MS = 0.35;

const TRIES = 4;
const MOST_TRUST = 16;
const FIRST_DOUBT = 4;
const MOST_DOUBT = 1024;

export class AdaptiveSpin {
  private since = 0;
  private expecting = false;
  /** Above zero looks are long: how many in vain end that. Otherwise how many near misses begin it. */
  private trust = 0;
  private doubt = FIRST_DOUBT;

  /** Something is expected from now on. */
  begin(): void {
    this.since = performance.now();
    this.expecting = true;
  }

  /** Whether looking for it is still worth it. */
  lasts(): boolean {
    return performance.now() - this.since < (this.trust > 0 ? LONG_MS : SHORT_MS);
  }

  /** It came, and was found by looking, or else by being woken. */
  end(found: boolean): void {
    if (!this.expecting) return;
    this.expecting = false;
    const tookMs = performance.now() - this.since;
    if (this.trust <= 0) {
      if (!found && tookMs < NEAR_MS) this.trust = this.trust === 0 ? TRIES : this.trust + 1;
    } else if (found) {
      this.trust = Math.min(this.trust + 1, MOST_TRUST);
      if (tookMs > SHORT_MS) this.doubt = FIRST_DOUBT;
    } else if (this.trust > 1) {
      this.trust -= 1;
    } else {
      this.trust = -this.doubt;
      this.doubt = Math.min(this.doubt * 2, MOST_DOUBT);
    }
  }
}
