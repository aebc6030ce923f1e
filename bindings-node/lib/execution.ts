// The handle on a run.
//
// In: the run. Out: what a caller may do with it: await it, end it, look at it. Awaiting never
// rejects: whatever happens inside is a result with a status.

import type { CodeExecution, CodeExecutionResult } from '../index.js';
import type { Run } from './run.js';

// Text beyond this is cut by the core; there is no use in copying more of it.
const REASON_UNITS = 20_000;

export class Execution implements CodeExecution {
  readonly #run: Run;
  readonly #result: Promise<CodeExecutionResult>;

  constructor(run: Run, result: Promise<CodeExecutionResult>) {
    this.#run = run;
    this.#result = result;
  }

  get running(): boolean {
    return this.#run.running;
  }

  get reports(): readonly unknown[] {
    return this.#run.reportsSoFar();
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

/** Any reason as text; one that resists is named by its type. */
function asText(reason: unknown): string {
  if (typeof reason === 'string') return reason;
  try {
    return String(reason);
  } catch {
    return `a reason of type ${typeof reason}`;
  }
}
