// `isolane/environment`: environments that run code of clients, and the service that keeps their processes.

export {
  EXECUTION_EXIT_STATES,
  EXECUTION_STATES,
  ProcessError,
  ProcessServer,
  ProcessService,
  TypeScriptEnvironment,
} from './environment/environment.js';
