// What a run has reported so far.
//
// In: messages, in the order of the calls. Out: values, each read once, so that the sink and the handle
// show the same one. A value that this host cannot hold was never reported: whoever asks for it by its
// number, which is the sink's call, gets the error, and throws it inside the sandbox.

import type { Mail } from './bridge.js';
import type { Run } from './run.js';

type Entry = { readonly value: unknown } | { readonly failure: unknown };

export class Reports {
  private readonly entries: Entry[] = [];

  /** How many have been read, those included that cannot be held. */
  get count(): number {
    return this.entries.length;
  }

  /** Reads the next `count` of them. */
  read(mail: Mail, run: Run, count: number): void {
    for (let left = count; left > 0; left -= 1) this.entries.push(read(mail, run));
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

function read(mail: Mail, run: Run): Entry {
  try {
    return { value: mail.next(run, 'report') };
  } catch (failure) {
    return { failure };
  }
}
