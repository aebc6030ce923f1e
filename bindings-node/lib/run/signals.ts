// Signals of callers that end calls and runs.
//
// In: a signal, which may be one of a library, and a function to call when it is aborted. Out: that call. All that watch
// one signal share one listener.

import type { AbortSignalLike } from '../../index.js';

class Watch {
  readonly watchers = new Set<() => void>();
  readonly listener = (): void => {
    // From the last on: cells that wait behind the first one are ended before its end lets them run.
    const watchers = [...this.watchers].reverse();
    this.watchers.clear();
    for (const aborted of watchers) aborted();
  };
}

const watches = new WeakMap<AbortSignalLike, Watch>();

/** Calls that function when the signal is aborted. Throws as the signal's `addEventListener` does. */
export function watch(signal: AbortSignalLike, aborted: () => void): void {
  const found = watches.get(signal);
  // A listener that could not be taken away has no watchers, and does nothing.
  if (found !== undefined && found.watchers.size > 0) {
    found.watchers.add(aborted);
    return;
  }
  const made = new Watch();
  made.watchers.add(aborted);
  signal.addEventListener('abort', made.listener, { __proto__: null, once: true } as { once: boolean });
  watches.set(signal, made);
}

/** Calls it no more. Never throws. */
export function unwatch(signal: AbortSignalLike, aborted: () => void): void {
  const found = watches.get(signal);
  if (found === undefined || !found.watchers.delete(aborted) || found.watchers.size > 0) return;
  watches.delete(signal);
  try {
    signal.removeEventListener('abort', found.listener);
  } catch {
    // The call is over, and has a result: a signal that keeps an idle listener is no error of it.
  }
}
