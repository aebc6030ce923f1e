// The exports of the package; `index.d.ts` documents them.

export { current } from './current.js';
export { describe } from './describe.js';
export { runCode } from './run-code.js';
export { QueueFullError, RuntimeClosedError } from './refusals.js';
export { Runtime } from './runtime.js';
export { Session } from './session.js';
export { SerializationError } from './serialization-error.js';
export { LinkError, MemoryLimitError, StatusError, TerminatedError, UncaughtError, unwrap } from './unwrap.js';
