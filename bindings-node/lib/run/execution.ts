// The handle on a run.
//
// In: the run. Out: an object by which the caller awaits the run, ends it and reads its reports. Awaiting it
// never rejects: the outcome of any run is a result with a status.

import type { CodeExecutionResult } from '../../index.js';
import { reasonText } from './reason.js';
import type { Reports } from './reports.js';
import type { Run } from './run.js';

export class Execution<Result extends CodeExecutionResult = CodeExecutionResult> implements PromiseLike<Result> {
  readonly #run: Run;
  readonly #result: Promise<Result>;
  /** Of the run, which lets go of them when it has settled. */
  readonly #reports: Reports;

  readonly #tag: string;

  constructor(run: Run, result: Promise<Result>, reports: Reports, tag = 'CodeExecution') {
    this.#run = run;
    this.#result = result;
    this.#reports = reports;
    this.#tag = tag;
  }

  get running(): boolean {
    return this.#run.running;
  }

  get reports(): readonly unknown[] {
    this.#run.readReports();
    return this.#reports.all();
  }

  terminate(reason?: unknown): void {
    this.#run.terminate(reason === undefined ? undefined : reasonText(reason));
  }

  then<A = Result, B = never>(
    onFulfilled?: ((result: Result) => A | PromiseLike<A>) | null,
    onRejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.#result.then(onFulfilled, onRejected);
  }

  catch<B = never>(onRejected?: ((reason: unknown) => B | PromiseLike<B>) | null): Promise<Result | B> {
    return this.#result.catch(onRejected);
  }

  finally(onFinally?: (() => void) | null): Promise<Result> {
    return this.#result.finally(onFinally);
  }

  get [Symbol.toStringTag](): string {
    return this.#tag;
  }
}
