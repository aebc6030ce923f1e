// `isolane/executors`: executors of code that a model wrote, and the loop in which the model sees the outcome of that code.

import './addon/node-version.js';

export { CodeExecutionResult, ExecutorError } from './executors/data.js';
export { IsolateCodeExecutor } from './executors/isolate.js';
export { CodeLoop } from './executors/loop.js';
export { ConfinedCodeExecutor, ContainerCodeExecutor, LocalCodeExecutor } from './executors/program.js';
export { ScriptedModel } from './executors/scripted-model.js';
