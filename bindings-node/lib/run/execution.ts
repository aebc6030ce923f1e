// The handle on a run.
//
// In: the run. Out: an object by which the caller awaits the run, ends it and reads its reports. Awaiting it
// never rejects: the outcome of any run is a result with a status.

import type { CodeExecutionResult } from '../../index.js';
import { Handle, type Handled } from './handle.js';
import type { Reports } from './reports.js';

/** A run that makes reports. */
interface Reporting extends Handled {
  /** Reads the reports that have been made meanwhile. */
  readReports(): void;
}

export class Execution<Result extends CodeExecutionResult = CodeExecutionResult> extends Handle<Result> {
  readonly #run: Reporting;
  /** Of the run, which lets go of them when it has settled. */
  readonly #reports: Reports;

  constructor(run: Reporting, result: Promise<Result>, reports: Reports, tag = 'CodeExecution') {
    super(run, result, tag);
    this.#run = run;
    this.#reports = reports;
  }

  get reports(): readonly unknown[] {
    this.#run.readReports();
    return this.#reports.all();
  }
}
