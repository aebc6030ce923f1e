// A process service over HTTP.
//
// In: the server of the native side, which listens. Out: its address, and its end.

import type { Door } from '../door/door.js';

/** A service that answers over HTTP. */
export class ProcessServer {
  readonly url: string;
  readonly #door: Door;
  /** The event loop waits for it: the program does not end while the server listens. */
  readonly #closed: Promise<void>;

  constructor(door: Door, url: string) {
    this.#door = door;
    this.url = url;
    this.#closed = door.call<void>('closed', []).then();
  }

  async close(): Promise<void> {
    await this.#door.call('close', []);
    await this.#closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  get [Symbol.toStringTag](): string {
    return 'ProcessServer';
  }
}
