// Notebooks: cells of Python and JavaScript in kernels that keep their state, as a tool for a model.
//
// In: options and the arguments of tool calls. Out: results of tools. The native side checks everything, keeps all state
// and words all messages; this module moves values.

import type { Available, ExecuteOptions, Stats, Tool, ToolResult } from '../../notebook.js';
import { object, option, readSignal } from '../crossing/options.js';
import { CallSignals } from '../door/call-signals.js';
import { Door, type DoorCall } from '../door/door.js';
import { Kit, keyOf } from '../kit/kit.js';
import { reasonText } from '../run/reason.js';
import { Runtime } from '../session/runtime.js';
import { withPath } from './misuse.js';

/** The parents of children: a notebook that nobody holds any more ends, and its children with it. */
const parents = new WeakMap<Notebook, Notebook>();

/** The kits of notebooks, which keep the pages of browsers. */
const kits = new WeakMap<Notebook, Kit>();

/** The systems of registries. */
const registries = new WeakMap<Registry, Door>();

export class Registry {
  constructor(options?: unknown) {
    const given = withPath(() => (options === undefined ? {} : object(options, 'options')));
    registries.set(
      this,
      withPath(() => new Door('notebook-registry', given)),
    );
  }

  get [Symbol.toStringTag](): string {
    return 'Registry';
  }
}

export class Notebook {
  readonly #door: Door;
  #closed: Promise<void> | undefined;

  constructor(options?: unknown) {
    if (options instanceof Door) {
      this.#door = options;
      return;
    }
    this.#door = withPath(() => {
      const { given, runtime, kit } = withoutHandles(options === undefined ? {} : object(options, 'options'));
      if (kit !== undefined) kits.set(this, kit);
      return new Door('notebook', withSignals(withKey(given)), runtime);
    });
  }

  child(options?: unknown): Notebook {
    return withPath(() => {
      const given = withSignals(options === undefined ? {} : object(options, 'options'));
      const key = this.#door.ask<string>('key');
      const child = new Notebook(new Door('notebook', { ...given, $parent: key }));
      parents.set(child, this);
      return child;
    });
  }

  execute(args: unknown, options?: ExecuteOptions): DoorCall<ToolResult> {
    return withPath(() => {
      const { signal: given, ...rest } = options === undefined ? {} : (object(options, 'options') as ExecuteOptions);
      const signal = readSignal(given);
      // A call that is ended before it begins starts nothing.
      const ended = signal?.aborted ? { $aborted: reasonText(signal.reason) } : {};
      return this.#door.call<ToolResult>('execute', [args, { ...rest, ...ended }], signal);
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

/** The options with the key of the registry in its place. */
function withKey(given: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const registry = option(given, 'registry');
  const door = registry instanceof Registry ? registries.get(registry) : undefined;
  if (door === undefined) return given;
  const { registry: _, ...rest } = given;
  return { ...rest, $registry: door.ask<string>('key') };
}

/** The options without the runtime and the kit of JavaScript, which are no values; the kit's key is in its place. */
function withoutHandles(given: Readonly<Record<string, unknown>>): {
  given: Readonly<Record<string, unknown>>;
  runtime?: Runtime;
  kit?: Kit;
} {
  const js = option(given, 'js');
  if (typeof js !== 'object' || js === null) return { given };
  const { runtime, kit, ...rest } = js as Record<string, unknown>;
  const isRuntime = runtime instanceof Runtime;
  const isKit = kit instanceof Kit;
  if (!isRuntime && !isKit) return { given };
  const others = { ...rest, ...(isRuntime ? {} : { runtime }), ...(isKit ? { $kit: keyOf(kit) } : { kit }) };
  return { given: { ...given, js: others }, ...(isRuntime && { runtime }), ...(isKit && { kit }) };
}

/** The options with functions whose last argument is the number of a call, and one that aborts its signal. */
function withSignals(given: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const [tools, llm, agent] = [option(given, 'tools'), option(given, 'llm'), option(given, 'agent')];
  if (tools === undefined && llm === undefined && agent === undefined) return given;
  const calls = new CallSignals();
  const asTool = (function_: unknown, owner?: unknown): unknown => {
    if (typeof function_ !== 'function') return function_;
    return (args: unknown, number: number) => calls.call(number, (signal) => function_.call(owner, args, { signal }));
  };
  const tool = (given: unknown): unknown => {
    if (typeof given !== 'object' || given === null || Array.isArray(given)) return asTool(given);
    const { call, description, input, stopsClock } = given as Record<string, unknown>;
    // Fields of an instance of a class beside these are its own.
    const own = isPlain(given) ? given : { description, input, stopsClock };
    return { ...own, call: asTool(call, given) };
  };
  return {
    ...given,
    tools: isPlain(tools) ? Object.fromEntries(Object.entries(tools).map(([name, given]) => [name, tool(given)])) : tools,
    llm:
      typeof llm !== 'function'
        ? llm
        : (prompt: string, options: object, number: number) => calls.call(number, (signal) => llm(prompt, { ...options, signal })),
    agent:
      typeof agent !== 'function'
        ? agent
        : (prompt: string, { notebook, ...options }: { notebook: string }, number: number) =>
            calls.call(number, (signal) => agent(prompt, withNotebook({ ...options, signal }, notebook))),
    $abort: calls.abort,
  };
}

/** The options of a call of `agent` with its notebook, which is opened when somebody reads it first. */
function withNotebook(options: object, key: string): object {
  let notebook: Notebook | undefined;
  const open = (): Notebook => (notebook ??= withPath(() => new Notebook(new Door('notebook', { $same: key }))));
  return Object.defineProperty(options, 'notebook', { get: open, enumerable: true, configurable: true });
}

/** Whether a value is an object of no class. Other values are refused by the native side, where they must be one. */
function isPlain(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype || Object.getPrototypeOf(prototype) === null;
}
