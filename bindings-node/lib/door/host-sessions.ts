// Sessions that a system opens, with the values and functions of the caller.
//
// In: the options of sessions as the caller wrote them, and the numbers of sessions and cells that a call has begun. Out:
// the request of all sessions, which is written once; and the receivers of their events.

import { native } from '../addon/connection.js';
import type { NativeHostSessions } from '../addon/native.js';
import { borrowEncoder, returnEncoder } from '../crossing/encoders.js';
import { type Bag, option } from '../crossing/options.js';
import { attach } from '../run/events.js';
import { Reports } from '../run/reports.js';
import { ignore } from '../run/sandbox-functions.js';
import { Cell } from '../session/cell.js';
import { readSessionOptions, writeSession } from '../session/options.js';
import { SessionSandbox } from '../session/sandbox.js';

export class HostSessions {
  readonly native: NativeHostSessions;
  /** A sandbox with the functions of the options, of which that of each session is a copy. */
  readonly #template: SessionSandbox;
  /** The promises among the options, by number. */
  readonly #promises: Map<number, Promise<unknown>>;
  /** The sandboxes of open sessions. */
  readonly #sandboxes = new Map<number, SessionSandbox>();

  constructor(options: Bag) {
    const session = readSessionOptions(options);
    this.#template = new SessionSandbox(null, session.report, session.interleave);
    const encoder = borrowEncoder();
    try {
      writeSession(encoder, session, this.#template);
      this.#promises = this.#template.promises.pending();
      // They settle in the sessions alone.
      this.#template.promises.end();
      this.native = native.hostSessions(encoder.bytes, encoder.at, encoder.blobs, this.#template.natives);
    } finally {
      returnEncoder(encoder);
    }
  }

  /** Takes note of the session that a call has opened, and of the cell that it has queued. */
  began(begun: object): void {
    const [opened, session, cell] = ['opened', 'session', 'cell'].map((name) => option(begun as Bag, name));
    if (typeof opened === 'number') this.#open(opened);
    const sandbox = this.#sandboxes.get(typeof session === 'number' ? session : 0);
    if (typeof cell !== 'number' || sandbox === undefined) return;
    const run = new Cell(sandbox, undefined, new Reports(), ignore);
    run.started(cell);
    attach(cell, run);
  }

  #open(number: number): void {
    for (const [known, sandbox] of this.#sandboxes) if (!sandbox.running) this.#sandboxes.delete(known);
    this.#sandboxes.set(number, this.#template.copied(number, this.#promises));
  }
}
