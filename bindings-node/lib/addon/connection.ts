// This thread's one connection to the core.
//
// In: wake-ups from the native side, one for many events. Out: the native side, and calls of the function that receives
// the events. While an event is expected soon, this module polls.

import { AsyncResource } from 'node:async_hooks';
import { availableParallelism } from 'node:os';

import { setImmediate } from './event-loop.js';
import { loadNative } from './native.js';
import { STOP_POLLING } from './wire.js';

// On one processor polling would only take time from the sandbox.
const POLLS = availableParallelism() > 1;

class LoadContext extends AsyncResource {
  /** Programs that look for open handles ask for this, Jest among them: a context keeps no event loop alive. */
  hasRef(): boolean {
    return false;
  }
}

/** The asynchronous context in which this module was loaded. The bridge and polling have no context of any caller's. */
const context = new LoadContext('isolane.bridge');

/** Does that in no context of the caller's, and in no domain: an error of another caller is not an error of that domain. */
function apart<T>(act: () => T): T {
  const holder = process as { domain?: unknown };
  const { domain } = holder;
  if (domain === undefined || domain === null) return context.runInAsyncScope(act);
  holder.domain = undefined;
  try {
    return context.runInAsyncScope(act);
  } finally {
    holder.domain = domain;
  }
}

/** Takes the events that are there. Nothing starts before the module that has this function is loaded. */
let receive = (): void => {};

/** The addon and its folder. */
export const { native, folder } = loadNative();
let opened: number | undefined;

let polling = false;
/** Whether to poll once more, even if no event is expected. */
let more = false;
/** Whether polling for the expected event still pays off. */
let paysOff = false;
/** Whether an event is expected since the last drain, because the sandbox of a started host function continues. */
let expecting = false;

/** Has that function called for each wake-up. */
export function receiveWith(receiver: () => void): void {
  receive = receiver;
}

/**
 * The number of this thread's bridge. It opens on first use: programs that look for open handles take it for one, and so
 * a program that only loads the package has none.
 */
export function bridge(): number {
  return (opened ??= apart(() => native.openBridge(() => receive())));
}

/** Takes the next events, as {@link Native.drain} does. */
export function drain(inbox: Uint8Array): number | Uint8Array {
  const expected = expecting;
  expecting = false;
  const written = native.drain(bridge(), inbox, expected);
  paysOff = written !== STOP_POLLING;
  return written;
}

/** Resumes the events of a run after its large message has been read. */
export function resumeEvents(number: number): void {
  native.resume(bridge(), number);
  pollAgain();
}

/** Announces an event that no native call announces itself, and polls. */
export function expectEvent(): void {
  expecting = true;
  pollForEvents();
}

/**
 * Polls in the next turns of the event loop, because an event is expected soon. Waking a sleeping thread costs
 * more than most answers take. The native side decides for how long to poll (`drain`).
 */
export function pollForEvents(): void {
  if (POLLS) startPolling();
}

/** Polls once more, after the other work of the event loop. */
export function pollAgain(): void {
  more = true;
  startPolling();
}

function startPolling(): void {
  if (polling) return;
  polling = true;
  native.poll(bridge(), true);
  apart(() => setImmediate(poll));
}

function poll(): void {
  more = false;
  paysOff = false;
  try {
    receive();
  } finally {
    if (more || paysOff) setImmediate(poll);
    else {
      polling = false;
      if (native.poll(bridge(), false)) receive();
    }
  }
}
