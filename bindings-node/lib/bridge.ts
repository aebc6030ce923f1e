// This thread's one connection to the core.
//
// In: a wake-up from the native side, one for many events. Out: each event, handed to the run it is
// about. Also lends out the encoders. Nothing that happens here reaches the event loop as an
// exception: a run's callbacks and outcome are the run's.

import { Buffer } from 'node:buffer';
import { availableParallelism } from 'node:os';
import { setImmediate } from 'node:timers';

import { Encoder } from './encode.js';
import { Mail } from './mail.js';
import { loadNative } from './native.js';
import type { Run } from './run.js';
import { beginTurn, isLong } from './slices.js';
import { EventKind, MORE, NOT_WORTH_IT } from './wire.js';

/** Events that came together, and what is left of them. */
interface Batch {
  readonly mail: Mail;
  left: number;
  /** The inbox, if they are in it. */
  readonly room: Buffer | undefined;
}

const INBOX_BYTES = 64 * 1024;
// On one processor looking for events would only keep the sandbox from computing.
const LOOKS = availableParallelism() > 1;

/** The addon, and the folder that it is in. */
export const { native, folder } = loadNative();
export const bridge = native.openBridge(receive);

const runs = new Map<number, Run>();
const closing = new Map<number, () => void>();
const idle: Encoder[] = [];
let polling = false;
/** Whether the event loop has to come here again, whatever is expected. */
let more = false;
/** Whether it is worth looking for the event that is expected. */
let lasts = false;
let inbox: Buffer | undefined = Buffer.allocUnsafeSlow(INBOX_BYTES);
let closings = 0;
/** Events that this thread has, and did not get to in the turn in which they came. */
let interrupted: Batch | undefined;

/** Announces a run, whose events come from now on. */
export function attach(number: number, run: Run): void {
  runs.set(number, run);
  lookForEvents();
}

/** The events of a run go on, after a message that was read bit by bit. */
export function heardAgain(number: number): void {
  native.resume(bridge, number);
  lookAgain();
}

/** A number under which the end of a runtime will be told. */
export function onClosed(done: () => void): number {
  closings += 1;
  closing.set(closings, done);
  return closings;
}

/** An encoder for one message. A getter that is run meanwhile may need one of its own. */
export function borrowEncoder(): Encoder {
  const encoder = idle.pop() ?? new Encoder();
  encoder.reset();
  return encoder;
}

/** Gives an encoder back. */
export function returnEncoder(encoder: Encoder): void {
  if (idle.length < 4) idle.push(encoder);
}

/**
 * Looks for events for a moment, between the other things that the event loop does, because the
 * answer to what was just said is near. Waking a thread that sleeps costs more than the answer. For how long is
 * the native side's to say (`drain`).
 */
function lookForEvents(): void {
  if (LOOKS) startPolling();
}

function startPolling(): void {
  if (polling) return;
  polling = true;
  native.poll(bridge, true);
  setImmediate(poll);
}

function poll(): void {
  more = false;
  lasts = false;
  try {
    receive();
  } finally {
    if (more || lasts) setImmediate(poll);
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
    // More may have come meanwhile, or did not fit into that batch.
    lookAgain();
    return;
  }
  // A host function that runs the event loop itself comes here again while the inbox is in use.
  const room = inbox;
  inbox = undefined;
  const written = native.drain(bridge, room ?? Buffer.alloc(0));
  lasts = written !== NOT_WORTH_IT;
  if (typeof written !== 'number') {
    inbox = room;
    dispatch(open(new Mail(written), undefined));
  } else if (written > 0) dispatch(open(new Mail(room as Buffer), room));
  else inbox = room;
}

/** Begins to deliver a batch of events. */
function open(mail: Mail, room: Buffer | undefined): Batch {
  const head = mail.u32();
  // After what else the event loop has to do.
  if (head >= MORE) lookAgain();
  return { mail, left: head % MORE, room };
}

/** Delivers events, until there are no more or this turn of the event loop has taken long enough. */
function dispatch(batch: Batch): void {
  const { mail } = batch;
  try {
    while (batch.left > 0) {
      batch.left -= 1;
      next(mail);
      if (batch.left > 0 && isLong()) {
        interrupted = batch;
        lookAgain();
        return;
      }
    }
  } finally {
    if (interrupted !== batch && batch.room !== undefined) inbox = batch.room;
  }
}

function next(mail: Mail): void {
  const kind = mail.u8() as EventKind;
  const number = mail.u32();
  if (kind === EventKind.Closed) {
    closing.get(number)?.();
    closing.delete(number);
    return;
  }
  const end = mail.u32() + mail.at;
  const run = runs.get(number);
  if (run !== undefined) deliver(run, kind, number, mail);
  mail.at = end;
}

/** Has the event loop come here again, after what else it has to do. */
function lookAgain(): void {
  more = true;
  startPolling();
}

function deliver(run: Run, kind: EventKind, number: number, mail: Mail): void {
  switch (kind) {
    case EventKind.Call:
      run.called(mail.u32(), mail.u32(), mail);
      lookForEvents();
      return;
    case EventKind.Start:
      run.asyncCalled(mail.u32(), mail.u32(), mail);
      native.expect(bridge);
      lookForEvents();
      return;
    case EventKind.FunctionSettled:
      run.functionSettled(mail.u32(), mail.u8() === 1, mail);
      return;
    case EventKind.PromiseSettled:
      run.promiseSettled(mail.u32(), mail.u8() === 1, mail);
      return;
    default:
      runs.delete(number);
      run.settled(mail);
  }
}
