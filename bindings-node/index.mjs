// The package as an ECMAScript module. It has the same functions, classes and state as with `require`.
import isolane from './dist/index.js';

export const { current, describe, runCode, Runtime, Session, SerializationError, unwrap } = isolane;
export const { QueueFullError, RuntimeClosedError } = isolane;
export const { StatusError, UncaughtError, MemoryLimitError, TerminatedError, LinkError } = isolane;
