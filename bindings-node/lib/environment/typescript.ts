// The environment that runs TypeScript in isolates.
//
// In: options, executions and the bindings of each. Out: promises of the native side's answers.

import type { ExecutionExitState } from '../../environment.js';
import { type Bag, object, option } from '../crossing/options.js';
import { Door } from '../door/door.js';

/** The doors of environments, which a service uses without a way through JavaScript. */
const doors = new WeakMap<TypeScriptEnvironment, Door>();

/** The door of an environment of this class. */
export function doorOf(environment: unknown): Door | undefined {
  return environment instanceof TypeScriptEnvironment ? doors.get(environment) : undefined;
}

export class TypeScriptEnvironment {
  readonly #door: Door;

  constructor(options?: unknown) {
    const { runtime, ...rest } = options === undefined ? ({} as Bag) : object(options, 'options');
    this.#door = new Door('typescript-environment', rest, runtime);
    doors.set(this, this.#door);
  }

  execute(input: unknown, bindings: unknown): Promise<ExecutionExitState> {
    const bag = object(bindings, 'bindings');
    const names = ['setState', 'stdout', 'stderr', 'output', 'error', 'invokeTool'];
    const functions = Object.fromEntries(names.map((name) => [name, method(bag, name)]));
    const call = this.#door.call<ExecutionExitState>('execute', [input, { ...functions, tools: option(bag, 'tools') }]);
    return call.then();
  }

  kill(eid: unknown): Promise<void> {
    return this.#door.call<void>('kill', [eid]).then();
  }

  generateDocs(): Promise<string> {
    return this.#door.call<string>('docs', []).then();
  }

  generateToolDocs(tool: unknown): Promise<string> {
    return this.#door.call<string>('toolDocs', [tool]).then();
  }

  shutdown(): Promise<void> {
    return this.#door.call<void>('shutdown', []).then();
  }

  get [Symbol.toStringTag](): string {
    return 'TypeScriptEnvironment';
  }
}

/** A method of an object as a function; any other value as it is. */
function method(bag: Bag, name: string): unknown {
  const value = option(bag, name);
  return typeof value === 'function' ? (...args: unknown[]) => Reflect.apply(value, bag, args) : value;
}
