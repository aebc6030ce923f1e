// Results as exceptions.
//
// In: a result, or a copy of one. Out: its value, or an error of the class for its status. Only the fields of the
// result matter, so a result from another thread works too.

import type { CodeExecutionResult } from '../../index.js';

type FailedStatus = Exclude<CodeExecutionResult['status'], 'success'>;

/** A run that did not succeed; thrown by {@link unwrap} as one of its subclasses. */
export class StatusError extends Error {
  declare readonly result: CodeExecutionResult;
  readonly status: FailedStatus;

  constructor(result: CodeExecutionResult) {
    const cause = result.error?.cause;
    super(described(result), cause === undefined ? undefined : { cause });
    this.status = result.status as FailedStatus;
    // Not enumerable, so that printing the error does not repeat the result; the message has the facts.
    Object.defineProperty(this, 'result', { value: result, configurable: true, writable: true });
  }

  static {
    named(this);
  }
}

/** The status `'error'`. */
export class UncaughtError extends StatusError {
  static {
    named(this);
  }
}

/** The status `'memory'`. */
export class MemoryLimitError extends StatusError {
  static {
    named(this);
  }
}

/** The status `'terminated'`. */
export class TerminatedError extends StatusError {
  static {
    named(this);
  }
}

/** The status `'link_error'`. */
export class LinkError extends StatusError {
  static {
    named(this);
  }
}

const CLASSES: ReadonlyMap<unknown, typeof StatusError> = new Map<FailedStatus, typeof StatusError>([
  ['error', UncaughtError],
  ['memory', MemoryLimitError],
  ['terminated', TerminatedError],
  ['link_error', LinkError],
]);

/** Returns the value of a successful result; throws the error of any other. */
export function unwrap(result: unknown): unknown {
  if (isResult(result)) {
    if (result.status === 'success') return result.result;
    const error = new (CLASSES.get(result.status) ?? StatusError)(result);
    Error.captureStackTrace(error, unwrap);
    throw error;
  }
  if (typeof (result as { then?: unknown } | null | undefined)?.then === 'function') {
    throw new TypeError('unwrap takes a result, and this one was not awaited yet: write unwrap(await run)');
  }
  throw new TypeError(`unwrap takes the result of a run, an object with a 'status'`);
}

function isResult(value: unknown): value is CodeExecutionResult {
  if (typeof value !== 'object' || value === null) return false;
  const { status, error } = value as Partial<CodeExecutionResult>;
  return status === 'success' || (CLASSES.has(status) && typeof error === 'object' && error !== null);
}

function described({ error }: CodeExecutionResult): string {
  const { name, message, filename, line, column } = error ?? { name: 'Error', message: '' };
  const place = line === undefined ? '' : ` (${filename}:${line}:${column})`;
  return `${name}: ${message}${place}`;
}

function named(errors: typeof StatusError): void {
  Object.defineProperty(errors.prototype, 'name', { value: errors.name, configurable: true, writable: true });
}
