// An environment of the caller's own.
//
// In: the object of the caller. Out: its functions, for the native side, and the bindings that each execution gets.

import { types } from 'node:util';

import type { EnvironmentBindings, EnvironmentModule, ExecutionInput, ToolInfo } from '../../environment.js';
import type { Door } from '../door/door.js';

type Callable = (...args: never[]) => unknown;

/** An environment of the caller, as functions of the native side: `execute` gets the number of its bindings. */
export function foreign(given: unknown, door: () => Door | undefined): unknown {
  // A number would name an environment of the native side.
  if (typeof given !== 'object' || given === null) return {};
  const module = given as EnvironmentModule;
  const of = (name: keyof EnvironmentModule, call: Callable): Callable | undefined =>
    typeof module[name] === 'function' ? call : undefined;
  return {
    execute: of('execute', (input: ExecutionInput, number: number) => module.execute(input, bindingsOf(number, door))),
    kill: of('kill', (eid: number) => module.kill(eid)),
    docs: of('generateDocs', () => module.generateDocs?.()),
    toolDocs: of('generateToolDocs', (tool: ToolInfo) => module.generateToolDocs?.(tool)),
    shutdown: of('shutdown', () => module.shutdown?.()),
  };
}

/** The bindings of one execution; the native side knows them by their number. */
function bindingsOf(number: number, door: () => Door | undefined): EnvironmentBindings {
  const ask = (name: string, eid: unknown, value: unknown): void => {
    door()?.ask(name, [number, eid, value]);
  };
  return {
    setState: (eid, state) => ask('setState', eid, state),
    stdout: (eid, bytes) => ask('stdout', eid, bytes),
    stderr: (eid, bytes) => ask('stderr', eid, bytes),
    output: (eid, fields) => ask('output', eid, fields),
    error: (eid, error) => ask('error', eid, types.isNativeError(error) || error instanceof Error ? plain(error) : error),
    invokeTool: async (eid, name, args) => door()?.call('invokeTool', [number, eid, name, args]),
  };
}

/** The name and the message of an error. Its stack has the host's files, which clients must not see. */
function plain(error: Error): Record<string, string> {
  const { name, message } = error;
  return { name, message };
}
