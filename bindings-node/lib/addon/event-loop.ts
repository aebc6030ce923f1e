// The timers and the clock of Node.js, as they were when isolane was loaded.
//
// A test of the caller's may replace them by ones that stand still until the test moves them. Runs would then never
// settle.

import { performance } from 'node:perf_hooks';
import timers from 'node:timers';

export const { setImmediate, setTimeout, clearTimeout } = timers;

/** The milliseconds since the process started. */
export const now: () => number = performance.now.bind(performance);
