// This thread's one connection to the core.
//
// In: a wake-up from the native side, one for many events. Out: each event, handed to its run. This module
// also lends out the encoders. No exception leaves it for the event loop: each run handles the errors of its
// own callbacks.

import { AsyncResource } from 'node:async_hooks';
import { Buffer } from 'node:buffer';
import { availableParallelism } from 'node:os';

import type { CellExecutionResult } from '../index.js';
import { Encoder } from './encode.js';
import { setImmediate } from './event-loop.js';
import { MessageReader } from './message-reader.js';
import { loadNative } from './native.js';
import type { Run } from './run.js';
import { beginTurn, isLong } from './slices.js';
import { EventKind, MORE, STOP_POLLING } from './wire.js';

/** Events that were drained together. */
interface Batch {
  readonly reader: MessageReader;
  /** The number of events that have not been delivered. */
  left: number;
  /** The inbox, if the events are in it. */
  readonly room: Buffer | undefined;
  /** Whether the batch is from an earlier turn: its runs may have been ended since. */
  isOld: boolean;
}

const INBOX_BYTES = 64 * 1024;
// On one processor polling would only take time from the sandbox.
const POLLS = availableParallelism() > 1;

/** The asynchronous context in which this module was loaded. Polling has no context of any caller's. */
const context = new AsyncResource('isolane.bridge');

/** The addon and its folder. */
export const { native, folder } = loadNative();
export const bridge = native.openBridge(receive);

const runs = new Map<number, Run>();
/** The receivers of events of sessions outside of their cells. A session that nobody holds may be collected. */
const sessions = new Map<number, WeakRef<Run>>();
const asked = new Map<number, (reader: MessageReader) => void>();
const idle: Encoder[] = [];
let polling = false;
/** Whether to poll once more, even if no event is expected. */
let more = false;
/** Whether polling for the expected event still pays off. */
let paysOff = false;
/** Whether an event is expected since the last drain, because the sandbox of a started host function continues. */
let expecting = false;
let inbox: Buffer | undefined = Buffer.allocUnsafeSlow(INBOX_BYTES);
let requests = 0;
/** Drained events that are left for the next turn of the event loop. */
let interrupted: Batch | undefined;

/** Registers a run, so that it receives its events. */
export function attach(number: number, run: Run): void {
  runs.set(number, run);
  pollForEvents();
}

/** Resumes the events of a run after its large message has been read. */
export function resumeEvents(number: number): void {
  native.resume(bridge, number);
  pollAgain();
}

/** Registers a session, so that it receives its events outside of cells. */
export function attachSession(number: number, between: Run): void {
  sessions.set(number, new WeakRef(between));
}

/** Forgets a session that has ended. */
export function detachSession(number: number): void {
  sessions.delete(number);
}

/** Returns a number for a request; the event with that number calls `done`. */
export function onAnswer(done: (reader: MessageReader) => void): number {
  requests += 1;
  asked.set(requests, done);
  return requests;
}

/** Borrows an encoder for one message. A getter that runs meanwhile may borrow another one. */
export function borrowEncoder(): Encoder {
  return idle.pop() ?? new Encoder();
}

/** Gives an encoder back, which forgets its message: an idle one keeps no value of the caller's alive. */
export function returnEncoder(encoder: Encoder): void {
  encoder.forget();
  if (idle.length < 4) idle.push(encoder);
}

/**
 * Polls in the next turns of the event loop, because an event is expected soon. Waking a sleeping thread costs
 * more than most answers take. The native side decides for how long to poll (`drain`).
 */
function pollForEvents(): void {
  if (POLLS) startPolling();
}

function startPolling(): void {
  if (polling) return;
  polling = true;
  native.poll(bridge, true);
  context.runInAsyncScope(setImmediate, undefined, poll);
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
      if (native.poll(bridge, false)) receive();
    }
  }
}

function receive(): void {
  beginTurn();
  const rest = interrupted;
  if (rest !== undefined) {
    interrupted = undefined;
    dispatch(rest);
    // More events may have arrived meanwhile, or may not have fitted into that batch.
    pollAgain();
    return;
  }
  // A host function that runs the event loop itself calls this function again while the inbox is in use.
  const room = inbox;
  inbox = undefined;
  const expected = expecting;
  expecting = false;
  const written = native.drain(bridge, room ?? Buffer.alloc(0), expected);
  paysOff = written !== STOP_POLLING;
  if (typeof written !== 'number') {
    inbox = room;
    dispatch(open(new MessageReader(written), undefined));
  } else if (written > 0) dispatch(open(new MessageReader(room as Buffer), room));
  else inbox = room;
}

/** Begins to deliver a batch of events. */
function open(reader: MessageReader, room: Buffer | undefined): Batch {
  const head = reader.u32();
  // The event loop does its other work before the next batch.
  if (head >= MORE) pollAgain();
  return { reader, left: head % MORE, room, isOld: false };
}

/** Delivers events until the batch is empty or the slice of this turn is over. */
function dispatch(batch: Batch): void {
  const { reader } = batch;
  try {
    while (batch.left > 0) {
      batch.left -= 1;
      next(reader, batch.isOld);
      if (batch.left > 0 && isLong()) {
        batch.isOld = true;
        interrupted = batch;
        pollAgain();
        return;
      }
    }
  } finally {
    if (interrupted !== batch && batch.room !== undefined) inbox = batch.room;
  }
}

function next(reader: MessageReader, isOld: boolean): void {
  const kind = reader.u8() as EventKind;
  const number = reader.u32();
  const end = reader.u32() + reader.at;
  if (kind === EventKind.Answered) {
    const done = asked.get(number);
    asked.delete(number);
    done?.(reader);
  } else {
    const run = runs.get(number) ?? sessions.get(number)?.deref();
    if (run !== undefined) deliver(run, kind, number, reader, isOld);
  }
  reader.at = end;
}

/** Polls once more, after the other work of the event loop. */
function pollAgain(): void {
  more = true;
  startPolling();
}

function deliver(run: Run, kind: EventKind, number: number, reader: MessageReader, isOld: boolean): void {
  switch (kind) {
    case EventKind.Call:
      run.called(reader.u32(), reader.u32(), reader, isOld);
      pollForEvents();
      return;
    case EventKind.Start:
      run.asyncCalled(reader.u32(), reader.u32(), reader, isOld);
      expecting = true;
      pollForEvents();
      return;
    case EventKind.FunctionSettled:
      run.functionSettled(reader.u32(), reader.u8() === 1, reader);
      return;
    case EventKind.PromiseSettled:
      run.promiseSettled(reader.u32(), reader.u8() === 1, reader);
      return;
    case EventKind.SessionEnded:
      run.sandbox.end();
      return;
    case EventKind.Executed:
      runs.delete(number);
      run.executed(reader.text() as CellExecutionResult['session']);
      // The result of the call comes next.
      expecting = true;
      pollForEvents();
      return;
    default:
      runs.delete(number);
      run.settled(reader);
  }
}
