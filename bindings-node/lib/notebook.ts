// `isolane/notebook`: cells of Python and JavaScript in kernels that keep their state, as a tool for a model.
//
// In: options and the arguments of tool calls. Out: results of tools. The native side checks everything, keeps all state
// and words all messages; this module moves values.

import type { Available, ExecuteOptions, Stats, Tool, ToolResult } from '../notebook.js';
import { Door, DoorCall } from './door.js';
import { object, option } from './options.js';
import { Runtime } from './runtime.js';

export class Notebook {
  readonly #door: Door;
  #closed: Promise<void> | undefined;

  constructor(options?: unknown) {
    this.#door = withPath(() => {
      const { given, runtime } = withoutRuntime(options === undefined ? {} : object(options, 'options'));
      return new Door('notebook', given, runtime);
    });
  }

  execute(args: unknown, options?: ExecuteOptions): DoorCall<ToolResult> {
    return withPath(() => {
      const { signal, ...rest } = options === undefined ? {} : (object(options, 'options') as ExecuteOptions);
      return this.#door.call<ToolResult>('execute', [args, rest], signal);
    });
  }

  tool(): Tool {
    return this.#door.ask<Tool>('tool');
  }

  async available(): Promise<Available> {
    return await this.#door.call<Available>('available', []);
  }

  async reset(language: unknown): Promise<void> {
    await withPath(() => this.#door.call('reset', [language]));
  }

  stats(): Stats {
    return this.#door.ask<Stats>('stats');
  }

  close(): Promise<void> {
    this.#closed ??= this.#door.call('close', []).then(() => undefined);
    return this.#closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  get [Symbol.toStringTag](): string {
    return 'Notebook';
  }
}

/** The options without the runtime of JavaScript, which is no value. */
function withoutRuntime(given: Readonly<Record<string, unknown>>): {
  given: Readonly<Record<string, unknown>>;
  runtime: Runtime | undefined;
} {
  const js = option(given, 'js');
  if (typeof js !== 'object' || js === null) return { given, runtime: undefined };
  const { runtime, ...rest } = js as Record<string, unknown>;
  if (!(runtime instanceof Runtime)) return { given, runtime: undefined };
  return { given: { ...given, js: rest }, runtime };
}

/** The value of `act()`. An error of misuse has its `path`, with which its message begins. */
function withPath<T>(act: () => T): T {
  try {
    return act();
  } catch (error) {
    if (error instanceof TypeError || error instanceof RangeError) {
      Object.assign(error, { path: /^[^\s:]+/.exec(error.message)?.[0] });
    }
    throw error;
  }
}
