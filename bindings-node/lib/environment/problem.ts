// Refusals of the process service.
//
// In: the value that a call rejected with. Out: an error with the code of the refusal.

/** A call that the process service refused. */
export class ProcessError extends Error {
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }

  static {
    Object.defineProperty(this.prototype, 'name', { value: 'ProcessError', configurable: true, writable: true });
  }
}

/** Throws the value that a call rejected with: a refusal as a {@link ProcessError}. */
export function asProblem(thrown: unknown): never {
  if (typeof thrown === 'object' && thrown !== null && !(thrown instanceof Error)) {
    const { code, message } = thrown as { code: string; message: string };
    throw new ProcessError(code, message);
  }
  throw thrown;
}
