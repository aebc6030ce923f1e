// The events of this thread's runs.
//
// In: a wake-up from the native side, one for many events. Out: each event, handed to its run. No exception leaves this
// module for the event loop: each run handles the errors of its own callbacks.

import { Buffer } from 'node:buffer';

import type { CellExecutionResult } from '../../index.js';
import { drain, expectEvent, pollAgain, pollForEvents, receiveWith } from '../addon/connection.js';
import { EventKind, MORE } from '../addon/wire.js';
import { MessageReader } from '../crossing/message-reader.js';
import { beginTurn, isLong } from '../crossing/slices.js';

/** Receives the events of a run, or those of a session outside of its cells. */
export interface EventHandler {
  /** The sandbox called a host function and waits for the answer. `isOld`: the run may have settled since. */
  called(fn: number, call: number, reader: MessageReader, isOld: boolean): void;
  /** The sandbox called an asynchronous host function and continues. `isOld`: the run may have been ended since. */
  asyncCalled(fn: number, promise: number, reader: MessageReader, isOld: boolean): void;
  functionSettled(call: number, ok: boolean, reader: MessageReader): void;
  promiseSettled(promise: number, ok: boolean, reader: MessageReader): void;
  settled(reader: MessageReader): void;
  /** A cell of a system has settled, whose result the native side keeps. */
  executed(session: CellExecutionResult['session']): void;
  sessionEnded(): void;
}

/** Events that were drained together. */
interface Batch {
  readonly reader: MessageReader;
  /** The number of events that have not been delivered. */
  left: number;
  /** The inbox, if the events are in it. */
  readonly buffer: Buffer | undefined;
  /** Whether the batch is from an earlier turn: its runs may have been ended since. */
  isOld: boolean;
}

const INBOX_BYTES = 64 * 1024;

const runs = new Map<number, EventHandler>();
/** The receivers of events of sessions outside of their cells. A session that nobody holds may be collected. */
const sessions = new Map<number, WeakRef<EventHandler>>();
const asked = new Map<number, (reader: MessageReader) => void>();
let inbox: Buffer | undefined = Buffer.allocUnsafeSlow(INBOX_BYTES);
let requests = 0;
/** Drained events that are left for the next turn of the event loop. */
let interrupted: Batch | undefined;

receiveWith(receive);

/** Registers a run, so that it receives its events. */
export function attach(number: number, run: EventHandler): void {
  runs.set(number, run);
  pollForEvents();
}

/** Registers a session, so that it receives its events outside of cells. */
export function attachSession(number: number, session: EventHandler): void {
  sessions.set(number, new WeakRef(session));
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
  const buffer = inbox;
  inbox = undefined;
  const written = drain(buffer ?? Buffer.alloc(0));
  if (typeof written !== 'number') {
    inbox = buffer;
    dispatch(open(new MessageReader(written), undefined));
  } else if (written > 0) dispatch(open(new MessageReader(buffer as Buffer), buffer));
  else inbox = buffer;
}

/** Begins to deliver a batch of events. */
function open(reader: MessageReader, buffer: Buffer | undefined): Batch {
  const head = reader.u32();
  // The event loop does its other work before the next batch.
  if (head >= MORE) pollAgain();
  return { reader, left: head % MORE, buffer, isOld: false };
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
    if (interrupted !== batch && batch.buffer !== undefined) inbox = batch.buffer;
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

function deliver(run: EventHandler, kind: EventKind, number: number, reader: MessageReader, isOld: boolean): void {
  switch (kind) {
    case EventKind.Call:
      run.called(reader.u32(), reader.u32(), reader, isOld);
      pollForEvents();
      return;
    case EventKind.Start:
      run.asyncCalled(reader.u32(), reader.u32(), reader, isOld);
      expectEvent();
      return;
    case EventKind.FunctionSettled:
      run.functionSettled(reader.u32(), reader.u8() === 1, reader);
      return;
    case EventKind.PromiseSettled:
      run.promiseSettled(reader.u32(), reader.u8() === 1, reader);
      return;
    case EventKind.SessionEnded:
      run.sessionEnded();
      return;
    case EventKind.Executed:
      runs.delete(number);
      run.executed(reader.text() as CellExecutionResult['session']);
      // The result of the call comes next.
      expectEvent();
      return;
    default:
      runs.delete(number);
      run.settled(reader);
  }
}
