// Environments as an ECMAScript module. It has the same classes and state as with `require`.
import environment from './dist/environment.js';

export const { TypeScriptEnvironment, ProcessService, ProcessServer, ProcessError, EXECUTION_STATES, EXECUTION_EXIT_STATES } = environment;
