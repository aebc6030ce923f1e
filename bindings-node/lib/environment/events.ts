// The events of processes, for an iteration.
//
// In: the number of a reader of the native side. Out: its events, one after another.

import type { ProcessEvent } from '../../environment.js';

type NextEvent = (reader: number) => Promise<ProcessEvent | null>;

/** The events of a reader, until the last one or until its consumer leaves. */
export class Events implements AsyncIterableIterator<ProcessEvent> {
  readonly #reader: Promise<number>;
  readonly #next: NextEvent;
  readonly #close: (reader: number) => unknown;
  #over = false;

  constructor(reader: Promise<number>, next: NextEvent, close: (reader: number) => unknown) {
    this.#reader = reader;
    this.#next = next;
    this.#close = close;
    // An iteration gets the error.
    reader.catch(() => undefined);
  }

  async next(): Promise<IteratorResult<ProcessEvent, undefined>> {
    const event = this.#over ? null : await this.#next(await this.#reader);
    if (event !== null) return { done: false, value: event };
    this.#over = true;
    return { done: true, value: undefined };
  }

  async return(): Promise<IteratorResult<ProcessEvent, undefined>> {
    this.#over = true;
    this.#close(await this.#reader);
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}
