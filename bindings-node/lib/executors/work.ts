// Calls of executors and runs of the loop, which go on without this thread.
//
// In: news of the native side. Out: the same, one by one and in order. Large news are read in slices of several turns of
// the event loop, and later ones wait for them.

import { attachWork, bridge, detachWork, native } from '../bridge.js';
import { setImmediate } from '../event-loop.js';
import { MessageReader } from '../message-reader.js';
import { Reports } from '../reports.js';
import { Run } from '../run.js';
import { Sandbox } from '../sandbox.js';
import { isLong } from '../slices.js';
import { MORE, NewsKind } from '../wire.js';

export abstract class Work {
  /** The native side's number of this work. */
  protected number = 0;
  /** The owner of the messages, which have no functions and no promises. */
  readonly #owner = new Run(new Sandbox(null), undefined, new Reports(), undefined);
  /** Whether news are being read, or will be in another turn. */
  #isReading = false;
  #isOver = false;
  #holds = false;

  /** Takes a piece of news; `number` is that of a question. */
  protected abstract heard(kind: NewsKind, number: number, message: unknown): void;

  /** The news cannot be read, or their receiver has failed. Nothing is heard any more. */
  protected abstract broke(failure: unknown): void;

  /** It has begun under that number. */
  protected began(number: number): void {
    this.number = number;
    this.#owner.number = number;
    attachWork(number, this);
  }

  /** Has the event loop wait for it, or not. */
  protected hold(holds: boolean): void {
    if (this.#holds === holds) return;
    this.#holds = holds;
    native.holdEventLoop(bridge, holds);
  }

  cancel(): void {
    if (this.number !== 0 && !this.#isOver) native.cancelWork(bridge, this.number);
  }

  /** Hears the news that have come. */
  pump(): void {
    if (this.#isReading || this.#isOver) return;
    this.#isReading = true;
    try {
      while (this.#next());
    } catch (failure) {
      this.#end();
      this.broke(failure);
    }
  }

  /** Hears the news of one frame. Returns whether to go on at once. */
  #next(): boolean {
    const reader = new MessageReader(native.takeNews(bridge, this.number));
    const head = reader.u32();
    for (let left = head % MORE; left > 0; left -= 1) {
      const kind = reader.u8() as NewsKind;
      const number = reader.u32();
      if (reader.isLarge) {
        // It is the last one of the frame.
        reader.read(this.#owner, 'news', (ok, message) => this.#read(ok, kind, number, message));
        return false;
      }
      this.#hear(kind, number, reader.next(this.#owner, 'news'));
    }
    if (head >= MORE && isLong()) {
      setImmediate(() => this.#goOn());
      return false;
    }
    this.#isReading = head >= MORE;
    return this.#isReading;
  }

  /** A large message has been read. Never throws. */
  #read(ok: boolean, kind: NewsKind, number: number, message: unknown): void {
    try {
      if (!ok) throw message;
      this.#hear(kind, number, message);
    } catch (failure) {
      this.#end();
      this.broke(failure);
      return;
    }
    setImmediate(() => this.#goOn());
  }

  #goOn(): void {
    this.#isReading = false;
    this.pump();
  }

  #hear(kind: NewsKind, number: number, message: unknown): void {
    if (this.#isOver) return;
    if (kind === NewsKind.Ended || kind === NewsKind.Failed || kind === NewsKind.Raised) this.#end();
    this.heard(kind, number, message);
  }

  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    native.cancelWork(bridge, this.number);
    detachWork(this.number);
    this.hold(false);
  }
}
