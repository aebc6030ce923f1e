// The executors as an ECMAScript module. It has the same classes and state as with `require`.
import executors from './dist/executors.js';

export const { LocalCodeExecutor, ContainerCodeExecutor, ConfinedCodeExecutor, IsolateCodeExecutor } = executors;
export const { CodeLoop, ScriptedModel, CodeExecutionResult, ExecutorError } = executors;
