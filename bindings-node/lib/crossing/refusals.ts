// The errors of a runtime that starts nothing now, or nothing any more, and those with a name of their own.
//
// In: the core's message. Out: an error with a class and a `code` of its own, or with a name, so that a server need not
// read messages.

/** Thrown when as many runs are queued as the runtime allows. */
export class QueueFullError extends Error {
  declare readonly code: 'QUEUE_FULL';
  static {
    describe(this, 'QueueFullError', 'QUEUE_FULL');
  }
}

/** Thrown when the runtime is closed. */
export class RuntimeClosedError extends Error {
  declare readonly code: 'RUNTIME_CLOSED';
  static {
    describe(this, 'RuntimeClosedError', 'RUNTIME_CLOSED');
  }
}

/** An error with that name. */
export function named(name: string, message: string): Error {
  const error = new Error(message);
  Object.defineProperty(error, 'name', { value: name, configurable: true, writable: true });
  // Until its stack is text, an error holds the objects on the stack.
  void error.stack;
  return error;
}

/** Gives the errors of a class their name and their code. */
function describe(errors: { readonly prototype: Error }, name: string, code: string): void {
  const shared = { configurable: true, writable: true };
  Object.defineProperties(errors.prototype, { name: { ...shared, value: name }, code: { ...shared, value: code } });
}
