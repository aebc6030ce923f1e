// This thread's one connection to the core.
//
// In: a wake-up from the native side, one for many events. Out: each event, handed to the run it is
// about. Also lends out the encoders. Nothing that happens here reaches the event loop as an
// exception: a run's callbacks and outcome are the run's.

import { Buffer } from 'node:buffer';
import { availableParallelism } from 'node:os';
import { setImmediate } from 'node:timers';

import { Decoder } from './decode.js';
import { Encoder } from './encode.js';
import { loadNative } from './native.js';
import { Patience } from './patience.js';
import type { Run } from './run.js';

/** What an event is; the order is that of `event.rs`. */
const enum EventKind {
  Call,
  FunctionSettled,
  PromiseSettled,
  Settled,
  Closed,
  Start,
}

const INBOX_BYTES = 64 * 1024;
// On one processor looking for events would only keep the sandbox from computing.
const LOOKS = availableParallelism() > 1;

// In the count of a batch: there are more to come.
const MORE = 0x8000_0000;

const NO_BLOBS: readonly Uint8Array[] = [];

/** The addon, and the folder that it is in. */
export const { native, folder } = loadNative();
export const bridge = native.openBridge(receive);

const runs = new Map<number, Run>();
const closing = new Map<number, () => void>();
const idle: Encoder[] = [];
const patience = new Patience();
let polling = false;
let more = false;
let inbox: Buffer | undefined = Buffer.allocUnsafeSlow(INBOX_BYTES);
let closings = 0;

/** Announces a run, whose events come from now on. */
export function attach(number: number, run: Run): void {
  runs.set(number, run);
  expectEvents();
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

/** A reader of messages and their blobs. */
export class Mail extends Decoder {
  private readonly pile: readonly Uint8Array[];
  private taken = 0;

  /** Mail in bytes that the native side just wrote: first the number of blobs that go with it. */
  constructor(bytes: Uint8Array) {
    super(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength), 0);
    this.pile = this.u32() === 0 ? NO_BLOBS : native.blobs(bridge);
  }

  /** The next message: its length, the number of its blobs, its nodes. As {@link Decoder.message}. */
  next(run: Run, root: string, asText = false): unknown {
    const { length, blobs } = this.head();
    const end = this.at + length;
    try {
      return this.message(length, blobs, run, root, asText);
    } finally {
      // What cannot be read must not spoil what comes after it.
      this.at = end;
    }
  }

  /** Passes over the next message. */
  skip(): void {
    const { length } = this.head();
    this.at += length;
  }

  private head(): { length: number; blobs: readonly Uint8Array[] } {
    const length = this.u32();
    const count = this.u32();
    if (count === 0) return { length, blobs: NO_BLOBS };
    this.taken += count;
    return { length, blobs: this.pile.slice(this.taken - count, this.taken) };
  }
}

/**
 * Looks for events for a moment, between the other things that the event loop does, because the
 * answer to what was just said is near. Waking a thread that sleeps costs more than the answer.
 */
export function expectEvents(): void {
  if (!LOOKS) return;
  patience.begin();
  startPolling();
}

function startPolling(): void {
  if (polling) return;
  polling = true;
  native.poll(bridge, true);
  setImmediate(poll);
}

function poll(): void {
  more = false;
  try {
    receive();
  } finally {
    if (more || patience.lasts()) setImmediate(poll);
    else {
      polling = false;
      if (native.poll(bridge, false)) receive();
    }
  }
}

function receive(): void {
  // A host function that runs the event loop itself comes here again while the inbox is in use.
  const room = inbox;
  inbox = undefined;
  try {
    const written = native.drain(bridge, room ?? Buffer.alloc(0));
    if (typeof written !== 'number') dispatch(new Mail(written));
    else if (written > 0) dispatch(new Mail(room as Buffer));
  } finally {
    inbox = room;
  }
}

function dispatch(mail: Mail): void {
  patience.end(polling);
  const head = mail.u32();
  const count = head % MORE;
  if (head >= MORE) {
    // After what else the event loop has to do.
    more = true;
    startPolling();
  }
  for (let i = 0; i < count; i += 1) {
    const kind = mail.u8() as EventKind;
    const number = mail.u32();
    if (kind === EventKind.Closed) {
      closing.get(number)?.();
      closing.delete(number);
      continue;
    }
    const end = mail.u32() + mail.at;
    const run = runs.get(number);
    if (run !== undefined) deliver(run, kind, number, mail);
    mail.at = end;
  }
}

function deliver(run: Run, kind: EventKind, number: number, mail: Mail): void {
  switch (kind) {
    case EventKind.Call:
      run.called(mail.u32(), mail.u32(), mail);
      expectEvents();
      return;
    case EventKind.Start:
      run.asyncCalled(mail.u32(), mail.u32(), mail);
      expectEvents();
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
