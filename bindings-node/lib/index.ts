// The exports of the package; `index.d.ts` documents them.

import './addon/node-version.js';

export { current } from './run/current.js';
export { describe } from './crossing/describe.js';
export { runCode } from './run/run-code.js';
export { QueueFullError, RuntimeClosedError } from './crossing/refusals.js';
export { Runtime } from './session/runtime.js';
export { Session } from './session/session.js';
export { SerializationError } from './crossing/serialization-error.js';
export { LinkError, MemoryLimitError, StatusError, TerminatedError, UncaughtError, unwrap } from './run/unwrap.js';
