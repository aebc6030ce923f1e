// The reports of a run so far.
//
// In: values, in the order of the calls. Out: the same values. Each report is read once, so the sink and the handle
// show the same object. A value that this host cannot represent is not part of the reports: the sink's call throws
// its error inside the sandbox.

import type { MessageReader, Recipient } from '../crossing/message-reader.js';

type Entry = { readonly value: unknown } | { readonly failure: unknown };

export class Reports {
  private readonly entries: Entry[] = [];

  /** The number of reports that have been read, including those that this host cannot represent. */
  get count(): number {
    return this.entries.length;
  }

  /** Adds the next report: its value, or the error of reading it. */
  add(ok: boolean, value: unknown): void {
    this.entries.push(ok ? { value } : { failure: value });
  }

  /** Reads the next report, which is not a large message, and adds it. */
  read(reader: MessageReader, run: Recipient): void {
    try {
      this.add(true, reader.next(run, 'report'));
    } catch (failure) {
      this.add(false, failure);
    }
  }

  /** The report with that number; throws the error of reading it. */
  get(index: number): unknown {
    const entry = this.entries[index] as Entry;
    if ('failure' in entry) throw entry.failure;
    return entry.value;
  }

  /** All reports that could be read, in order, in a new array. */
  all(): unknown[] {
    const values: unknown[] = [];
    for (const entry of this.entries) if ('value' in entry) values.push(entry.value);
    return values;
  }
}
