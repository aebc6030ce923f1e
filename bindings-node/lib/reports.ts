// The reports of one run, in call order.
//
// In: messages, each read once, by whoever comes first: the call of the sink, a look at the handle, the
// outcome. Out: the values; one that this host cannot hold takes a place, so that no other is taken for it,
// and is shown to no one.

import type { Mail } from './bridge.js';
import type { Run } from './run.js';

type Report = { readonly value: unknown } | { readonly failure: unknown };

export class Reports {
  private readonly read: Report[] = [];
  private delivered = 0;

  /** How many were read. */
  get length(): number {
    return this.read.length;
  }

  /** All that were read. */
  values(): unknown[] {
    return this.read.flatMap((report) => ('value' in report ? [report.value] : []));
  }

  /** Reads the report that comes next. */
  next(mail: Mail, run: Run): void {
    try {
      this.read.push({ value: mail.next(run) });
    } catch (failure) {
      this.read.push({ failure });
    }
  }

  /** The report that the sink is given next, in this mail unless it was read before. */
  deliver(mail: Mail, run: Run): unknown {
    const index = this.delivered;
    this.delivered += 1;
    if (index < this.read.length) mail.skip();
    else this.next(mail, run);
    const report = this.read[index] as Report;
    if ('failure' in report) throw report.failure;
    return report.value;
  }
}
