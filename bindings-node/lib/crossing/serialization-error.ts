// The error for a value that cannot cross the sandbox's boundary.
//
// In: the value's path and kind. Out: an error whose message is the same in every language.

/** Thrown for a value that cannot be cloned. The message names its path, such as `globals.db.pool`. */
export class SerializationError extends TypeError {
  static {
    Object.defineProperty(this.prototype, 'name', {
      value: 'SerializationError',
      configurable: true,
      writable: true,
    });
  }
}

const IDENTIFIER = /^[\p{ID_Start}$_][\p{ID_Continue}$\u200c\u200d]*$/u;

/** The part of a path that names a property. */
export function segment(key: string): string {
  return IDENTIFIER.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`;
}

/** The error for `what` at `path`. */
export function notCloneable(path: string, what: string): SerializationError {
  return new SerializationError(`${path}: ${what} cannot be cloned`);
}
