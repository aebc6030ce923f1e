// The errors of a runtime that starts nothing now, or nothing any more.
//
// In: the core's message. Out: an error with a class and a `code` of its own, so that a server need not read messages.

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

/** Gives the errors of a class their name and their code. */
function describe(errors: { readonly prototype: Error }, name: string, code: string): void {
  const shared = { configurable: true, writable: true };
  Object.defineProperties(errors.prototype, { name: { ...shared, value: name }, code: { ...shared, value: code } });
}
