// `isolane/environment`: environments that run code of clients, and the service that keeps their processes.

import './addon/node-version.js';

export { ProcessError } from './environment/problem.js';
export { ProcessServer } from './environment/server.js';
export { ProcessService } from './environment/service.js';
export { EXECUTION_EXIT_STATES, EXECUTION_STATES } from './environment/states.js';
export { TypeScriptEnvironment } from './environment/typescript.js';
