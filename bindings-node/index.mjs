// The package as an ECMAScript module: the same functions and classes, and the same state, as for
// `require`.
import isolane from './dist/index.js';

export const { runCode, Runtime, SerializationError, unwrap } = isolane;
export const { StatusError, UncaughtError, MemoryLimitError, TerminatedError, LinkError } = isolane;
