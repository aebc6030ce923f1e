// Messages from the core to this thread.
//
// In: frames that the native side wrote, and large messages that it keeps. Out: values. A message in a frame is
// read at once. A large message is read in slices of several turns of the event loop. The later events of its
// run wait until it has been read, so they keep their order. The events of other runs do not wait.

import { Buffer } from 'node:buffer';

import { bridge, native, resumeEvents } from '../addon/connection.js';
import { LARGE } from '../addon/wire.js';
import { Decoder, NO_BLOBS, PAUSED, type Blobs, type Owners } from './decode.js';
import { start, type Work } from './slices.js';

/** The run that receives a message: the owner of the functions and promises in it. */
export interface Recipient extends Owners {
  /** The native side's number of the run. */
  readonly number: number;
  /** Whether the caller has ended it, so that nothing needs its messages. */
  readonly isTerminated: boolean;
  /** Counts the bytes of messages from the sandbox. */
  readonly throws: { received(bytes: number): void };
  /** The error for anything that needs the running run after its end. */
  ended(): Error;
}

/** Takes the value of a message, or the error of reading it if not `ok`. Must not throw. */
export type Done = (ok: boolean, value: unknown) => void;

/** A reader of messages and their blobs. */
export class MessageReader extends Decoder {
  private readonly frameBlobs: readonly Uint8Array[] | undefined;
  private taken = 0;

  /** A reader of bytes that the native side just wrote. They begin with the number of their blobs. */
  constructor(bytes: Uint8Array, frameBlobs?: readonly Uint8Array[]) {
    super(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength), 0);
    const count = this.u32();
    this.frameBlobs = frameBlobs ?? (count === 0 ? undefined : native.blobs(bridge()));
  }

  /** The same reader on a copy of the bytes, for reading in a later turn. */
  copy(): MessageReader {
    const copy = new MessageReader(Buffer.from(this.bytes), this.frameBlobs);
    copy.at = this.at;
    copy.taken = this.taken;
    return copy;
  }

  /** Whether the next message is a large one. */
  get isLarge(): boolean {
    return this.peekU32() === LARGE;
  }

  /** Reads the next message, which is not a large one: its length, the number of its blobs, its nodes. */
  next(run: Recipient, root: string, asText = false): unknown {
    const { length, blobs } = this.head();
    const end = this.at + length;
    try {
      return this.message(length, blobs, run, root, asText);
    } finally {
      // The next message can be read even if this one cannot.
      this.at = end;
    }
  }

  /** Returns the next message, which is a large one, for the caller to read. */
  large(run: Recipient, root: string, asText = false): LargeMessage {
    this.at += 4;
    return new LargeMessage(this.u32(), run, root, asText);
  }

  /** Reads the next message of an event, whatever its size. The run's next events come after `done`. */
  read(run: Recipient, root: string, done: Done): void {
    if (this.isLarge) {
      run.throws.received(Infinity);
      start(new Reading(this.large(run, root), run, done));
      return;
    }
    let value: unknown;
    let ok = true;
    const before = this.taken;
    try {
      value = this.next(run, root);
    } catch (failure) {
      ok = false;
      value = failure;
    }
    // Its nodes are few, or it would be a large one.
    for (let at = before; at < this.taken; at += 1) run.throws.received(this.frameBlobs?.[at]?.byteLength ?? 0);
    done(ok, value);
  }

  /** Skips the next message of an event. */
  skip(run: Recipient): void {
    if (this.isLarge) {
      this.large(run, '').drop();
      resumeEvents(run.number);
    } else {
      const { length } = this.head();
      this.at += length;
    }
  }

  private head(): { length: number; blobs: Blobs } {
    const length = this.u32();
    const count = this.u32();
    if (count === 0 || this.frameBlobs === undefined) return { length, blobs: NO_BLOBS };
    this.taken += count;
    return { length, blobs: { list: this.frameBlobs.slice(this.taken - count, this.taken), more: NO_BLOBS.more } };
  }
}

/** A message that is read in slices. */
export class LargeMessage {
  private readonly number: number;
  private readonly run: Recipient;
  private readonly root: string;
  private readonly asText: boolean;
  private decoder: Decoder | undefined;

  constructor(number: number, run: Recipient, root: string, asText: boolean) {
    this.number = number;
    this.run = run;
    this.root = root;
    this.asText = asText;
  }

  /** Continues until that time; returns the value or PAUSED. Throws if the message cannot be read. */
  go(until: number): unknown {
    this.decoder ??= this.begin();
    return this.decoder.go(until);
  }

  /** Frees the message, read or not. */
  drop(): void {
    this.decoder = undefined;
    native.dropLarge(bridge(), this.number);
  }

  private begin(): Decoder {
    const { buffer, byteOffset, byteLength } = native.largeNodes(bridge(), this.number);
    const decoder = new Decoder(Buffer.from(buffer, byteOffset, byteLength), 0);
    const list: Uint8Array[] = [];
    const more = (): boolean => {
      const next = native.largeBlobs(bridge(), this.number);
      list.push(...next);
      return next.length > 0;
    };
    decoder.begin(byteLength, { list, more }, this.run, this.root, this.asText);
    return decoder;
  }
}

/** The reading of an event's large message. */
class Reading implements Work {
  private readonly message: LargeMessage;
  private readonly run: Recipient;
  private readonly done: Done;

  constructor(message: LargeMessage, run: Recipient, done: Done) {
    this.message = message;
    this.run = run;
    this.done = done;
  }

  step(until: number): boolean {
    let ok = true;
    let value: unknown;
    try {
      // The caller has ended the run, so nothing needs this message.
      if (this.run.isTerminated) throw this.run.ended();
      value = this.message.go(until);
      if (value === PAUSED) return false;
    } catch (failure) {
      ok = false;
      value = failure;
    }
    this.message.drop();
    try {
      this.done(ok, value);
    } finally {
      resumeEvents(this.run.number);
    }
    return true;
  }
}
