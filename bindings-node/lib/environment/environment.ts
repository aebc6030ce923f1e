// Environments that run code of clients, and the service that keeps their processes.
//
// In: options, code, environments and tools of the caller. Out: records, streams and events. The native side checks
// everything, keeps all state and words all messages; this module moves values, and has the objects that only JavaScript
// has: iterators, abort signals, bindings.

import { types } from 'node:util';

import type {
  EnvironmentBindings,
  EnvironmentModule,
  ExecutionExitState,
  ExecutionInput,
  ProcessEvent,
  ProcessList,
  ProcessRecord,
  ToolHandler,
  ToolInfo,
} from '../../environment.js';
import { type Bag, object, option } from '../crossing/options.js';
import { Door, type DoorCall } from '../door/door.js';

export const EXECUTION_STATES = Object.freeze(['queued', 'running'] as const);
export const EXECUTION_EXIT_STATES = Object.freeze(['failed', 'success', 'timeout', 'canceled'] as const);

type Callable = (...args: never[]) => unknown;

/** The doors of environments of this module, which a service uses without a way through JavaScript. */
const doors = new WeakMap<TypeScriptEnvironment, Door>();

/** The environments of services, whose functions work as long as they are not collected. */
const kept = new WeakMap<ProcessService, unknown>();

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
    return promise(call);
  }

  kill(eid: unknown): Promise<void> {
    return promise(this.#door.call<void>('kill', [eid]));
  }

  generateDocs(): Promise<string> {
    return promise(this.#door.call<string>('docs', []));
  }

  generateToolDocs(tool: unknown): Promise<string> {
    return promise(this.#door.call<string>('toolDocs', [tool]));
  }

  shutdown(): Promise<void> {
    return promise(this.#door.call<void>('shutdown', []));
  }

  get [Symbol.toStringTag](): string {
    return 'TypeScriptEnvironment';
  }
}

/** A call that the process service refused. */
export class ProcessError extends Error {
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }

  static {
    Object.defineProperty(this.prototype, 'name', { value: 'ProcessError', configurable: true, writable: true });
  }
}

export class ProcessService {
  readonly #door: Door;

  constructor(options?: unknown) {
    const bag = options === undefined ? ({} as Bag) : object(options, 'options');
    const given = option(bag, 'environment');
    if (given === undefined || given === null) {
      this.#door = new Door('process-service', bag);
      return;
    }
    const ours = given instanceof TypeScriptEnvironment ? doors.get(given) : undefined;
    let door: WeakRef<Door> | undefined;
    // Functions among the options live as long as the service. They must not keep it.
    const environment = ours?.ask<number>('number') ?? foreign(given, () => door?.deref());
    this.#door = new Door('process-service', { ...bag, environment });
    door = new WeakRef(this.#door);
    kept.set(this, given);
  }

  create(process: unknown): Promise<ProcessRecord> {
    return this.#call('create', [process]);
  }

  get(pid: unknown): Promise<ProcessRecord> {
    return this.#call('get', [pid]);
  }

  list(query?: unknown): Promise<ProcessList> {
    return this.#call('list', [query]);
  }

  wait(pid: unknown, longestMs?: unknown): Promise<ProcessRecord> {
    return this.#call('wait', [pid, longestMs]);
  }

  run(pid: unknown, options?: unknown): Promise<ProcessRecord> {
    return this.#call('run', [pid, options]);
  }

  kill(pid: unknown): Promise<ProcessRecord> {
    return this.#call('kill', [pid]);
  }

  delete(pid: unknown): Promise<void> {
    return this.#call('delete', [pid]);
  }

  code(pid: unknown): Promise<string> {
    return this.#call('code', [pid]);
  }

  stdout(pid: unknown): Promise<string> {
    return this.#call('stdout', [pid]);
  }

  stderr(pid: unknown): Promise<string> {
    return this.#call('stderr', [pid]);
  }

  output(pid: unknown): Promise<Record<string, unknown>> {
    return this.#call('output', [pid]);
  }

  events(pid?: unknown, options?: unknown): AsyncIterableIterator<ProcessEvent> {
    const after = options === undefined ? undefined : option(object(options, 'options'), 'after');
    const next = (reader: number) => this.#call<ProcessEvent | null>('nextEvent', [reader]);
    const close = (reader: number) => this.#door.ask('closeEvents', [reader]);
    return new Events(this.#call<number>('events', [pid, after]), next, close);
  }

  tool(service: unknown, name: unknown, description: unknown, handler: unknown): void {
    const calls = new Map<number, AbortController>();
    const call = async (args: unknown, eid: number, number: number): Promise<unknown> => {
      const controller = new AbortController();
      calls.set(number, controller);
      try {
        return await (handler as ToolHandler)(args as never, { eid, signal: controller.signal });
      } finally {
        calls.delete(number);
      }
    };
    // Errors about its answer have this name.
    if (typeof service === 'string' && typeof name === 'string') Object.defineProperty(call, 'name', { value: `${service}.${name}` });
    const abort = (number: number): void => calls.get(number)?.abort();
    const given = typeof handler === 'function' ? call : handler;
    this.#door.call('tool', [service, name, description, given, abort]);
  }

  tools(): ToolInfo[] {
    return this.#door.ask<ToolInfo[]>('tools');
  }

  toolTypes(): string {
    return this.#door.ask<string>('toolTypes');
  }

  toolDocs(service: unknown, name: unknown): Promise<string> {
    return this.#call('toolDocs', [service, name]);
  }

  environmentDocs(): Promise<string> {
    return this.#call('environmentDocs', []);
  }

  async listen(options?: unknown): Promise<ProcessServer> {
    const bag = options === undefined ? ({} as Bag) : object(options, 'options');
    const door = new Door('http-server', { ...bag, service: this.#door.ask<number>('number') });
    const { url } = await door.call<{ url: string }>('listen', []);
    return new ProcessServer(door, url);
  }

  shutdown(): Promise<void> {
    return this.#call('shutdown', []);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.shutdown();
  }

  get [Symbol.toStringTag](): string {
    return 'ProcessService';
  }

  #call<Value>(method: string, args: readonly unknown[]): Promise<Value> {
    return this.#door.call<Value>(method, args).catch(asProblem);
  }
}

/** A service that answers over HTTP. */
export class ProcessServer {
  readonly url: string;
  readonly #door: Door;
  /** The event loop waits for it: the program does not end while the server listens. */
  readonly #closed: Promise<void>;

  constructor(door: Door, url: string) {
    this.#door = door;
    this.url = url;
    this.#closed = promise(door.call<void>('closed', []));
  }

  async close(): Promise<void> {
    await this.#door.call('close', []);
    await this.#closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  get [Symbol.toStringTag](): string {
    return 'ProcessServer';
  }
}

type NextEvent = (reader: number) => Promise<ProcessEvent | null>;

/** The events of a reader, until the last one or until its consumer leaves. */
class Events implements AsyncIterableIterator<ProcessEvent> {
  readonly #reader: Promise<number>;
  readonly #next: NextEvent;
  readonly #close: (reader: number) => unknown;
  #over = false;

  constructor(reader: Promise<number>, next: NextEvent, close: (reader: number) => unknown) {
    this.#reader = reader;
    this.#next = next;
    this.#close = close;
    // An iteration gets the error.
    reader.catch(() => undefined);
  }

  async next(): Promise<IteratorResult<ProcessEvent, undefined>> {
    const event = this.#over ? null : await this.#next(await this.#reader);
    if (event !== null) return { done: false, value: event };
    this.#over = true;
    return { done: true, value: undefined };
  }

  async return(): Promise<IteratorResult<ProcessEvent, undefined>> {
    this.#over = true;
    this.#close(await this.#reader);
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}

/** An environment of the caller, as functions of the native side: `execute` gets the number of its bindings. */
function foreign(given: unknown, door: () => Door | undefined): unknown {
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

/** A method of an object as a function, or what the object has in its place. */
function method(bag: Bag, name: string): unknown {
  const value = option(bag, name);
  return typeof value === 'function' ? (...args: unknown[]) => Reflect.apply(value as Callable, bag, args) : value;
}

function promise<Value>(call: DoorCall<Value>): Promise<Value> {
  return call.then((value) => value);
}

/** Throws what a call rejected with: a problem as an error of this module. */
function asProblem(thrown: unknown): never {
  if (typeof thrown === 'object' && thrown !== null && !(thrown instanceof Error)) {
    const { code, message } = thrown as { code: string; message: string };
    throw new ProcessError(code, message);
  }
  throw thrown;
}
