// The package as an ECMAScript module. It has the same functions, classes and state as with `require`.
import isolane from './dist/index.js';

export const { runCode, current, Runtime, Session, SerializationError, QueueFullError, RuntimeClosedError, unwrap } = isolane;
export const { StatusError, UncaughtError, MemoryLimitError, TerminatedError, LinkError } = isolane;
