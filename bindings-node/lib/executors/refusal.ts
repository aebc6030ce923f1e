// Errors of executors of the caller's.
//
// In: anything that was thrown, which may be hostile. Out: the kind and the message of an error of an executor.

import { ExecutorError, isErrorCode } from './data.js';

/** The kind and the message for a call that threw. Never throws. */
export function refusal(thrown: unknown): [kind: string, message: string] {
  try {
    if (thrown instanceof ExecutorError) {
      const { code, message } = thrown as { code: unknown; message: unknown };
      if (typeof message === 'string') return [isErrorCode(code) ? code : 'other', message];
    }
  } catch {
    // A trap or a getter has thrown: its exception is refused like any other.
  }
  return ['other', `the executor failed: ${messageOf(thrown)}`];
}

/** The text of anything that was thrown. Never throws. */
export function messageOf(thrown: unknown): string {
  try {
    if (!(thrown instanceof Error)) return String(thrown);
    const { message, name } = thrown as { message: unknown; name: unknown };
    return String(message === '' ? name : message);
  } catch {
    return `a value of the type ${typeof thrown}`;
  }
}
