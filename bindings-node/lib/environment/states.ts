// The states of an execution.

export const EXECUTION_STATES = Object.freeze(['queued', 'running'] as const);
export const EXECUTION_EXIT_STATES = Object.freeze(['failed', 'success', 'timeout', 'canceled'] as const);
