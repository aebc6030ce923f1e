// What a run has reported so far.
//
// In: values as they are read, in the order of the calls. Out: the same, each read once, so that the sink and the
// handle show the same one. A value that this host cannot hold was never reported: whoever asks for it by its
// number, which is the sink's call, gets the error, and throws it inside the sandbox.

import type { Mail } from './mail.js';
import type { Run } from './run.js';

type Entry = { readonly value: unknown } | { readonly failure: unknown };

export class Reports {
  private readonly entries: Entry[] = [];

  /** How many have been read, those included that cannot be held. */
  get count(): number {
    return this.entries.length;
  }

  /** The next one has been read: to a value, or to why there is none. */
  add(ok: boolean, value: unknown): void {
    this.entries.push(ok ? { value } : { failure: value });
  }

  /** Reads the next one, at once. */
  read(mail: Mail, run: Run): void {
    try {
      this.add(true, mail.next(run, 'report'));
    } catch (failure) {
      this.add(false, failure);
    }
  }

  /** The report with that number; throws if it cannot be held. */
  get(index: number): unknown {
    const entry = this.entries[index] as Entry;
    if ('failure' in entry) throw entry.failure;
    return entry.value;
  }

  /** All of them, in order, in an array of the caller's own. */
  all(): unknown[] {
    const values: unknown[] = [];
    for (const entry of this.entries) if ('value' in entry) values.push(entry.value);
    return values;
  }
}
