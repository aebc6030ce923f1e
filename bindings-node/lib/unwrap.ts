// Results as exceptions, for callers who want them.
//
// In: a result, or a copy of one. Out: its value, or an error of the class that its status has. Only
// the fields of the result are looked at, so that one that came from another thread will do.

import type { CodeExecutionResult } from '../index.js';

type FailedStatus = Exclude<CodeExecutionResult['status'], 'success'>;

/** A run that did not succeed; thrown by {@link unwrap} as one of its subclasses. */
export class StatusError extends Error {
  declare readonly result: CodeExecutionResult;
  readonly status: FailedStatus;

  constructor(result: CodeExecutionResult) {
    const cause = result.error?.cause;
    super(described(result), cause === undefined ? undefined : { cause });
    this.status = result.status as FailedStatus;
    // Out of sight of whoever prints the error: the message says what the result says.
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

/** The value of a successful result; throws the error of any other. */
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
  throw new TypeError(`unwrap takes what a run came to, an object with a 'status'`);
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
