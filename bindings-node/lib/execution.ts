// The handle on a run.
//
// In: the run. Out: an object by which the caller awaits the run, ends it and reads its reports. Awaiting it
// never rejects: the outcome of any run is a result with a status.

import type { CodeExecution, CodeExecutionResult } from '../index.js';
import type { Reports } from './reports.js';
import type { Run } from './run.js';

// The core cuts longer reasons, so more text is not copied.
const REASON_UNITS = 20_000;

export class Execution implements CodeExecution {
  readonly #run: Run;
  readonly #result: Promise<CodeExecutionResult>;
  /** Of the run, which lets go of them when it has settled. */
  readonly #reports: Reports;

  constructor(run: Run, result: Promise<CodeExecutionResult>, reports: Reports) {
    this.#run = run;
    this.#result = result;
    this.#reports = reports;
  }

  get running(): boolean {
    return this.#run.running;
  }

  get reports(): readonly unknown[] {
    this.#run.readReports();
    return this.#reports.all();
  }

  terminate(reason?: unknown): void {
    this.#run.terminate(reason === undefined ? undefined : asText(reason).slice(0, REASON_UNITS));
  }

  then<A = CodeExecutionResult, B = never>(
    onFulfilled?: ((result: CodeExecutionResult) => A | PromiseLike<A>) | null,
    onRejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.#result.then(onFulfilled, onRejected);
  }

  catch<B = never>(onRejected?: ((reason: unknown) => B | PromiseLike<B>) | null): Promise<CodeExecutionResult | B> {
    return this.#result.catch(onRejected);
  }

  finally(onFinally?: (() => void) | null): Promise<CodeExecutionResult> {
    return this.#result.finally(onFinally);
  }

  get [Symbol.toStringTag](): string {
    return 'CodeExecution';
  }
}

/** Any reason as text; the type of one that throws when it is converted. */
function asText(reason: unknown): string {
  if (typeof reason === 'string') return reason;
  try {
    return String(reason);
  } catch {
    return `a reason of type ${typeof reason}`;
  }
}
