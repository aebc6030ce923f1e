// The service that keeps processes of clients.
//
// In: options, code, environments and tools of the caller. Out: records, streams and events. The native side checks
// everything, keeps all state and words all messages; this module moves values.

import type { ProcessEvent, ProcessList, ProcessRecord, ToolHandler, ToolInfo } from '../../environment.js';
import { type Bag, object, option } from '../crossing/options.js';
import { CallSignals } from '../door/call-signals.js';
import { Door } from '../door/door.js';
import { Events } from './events.js';
import { foreign } from './foreign.js';
import { asProblem } from './problem.js';
import { ProcessServer } from './server.js';
import { doorOf } from './typescript.js';

/** The environments of services, whose functions work as long as they are not collected. */
const kept = new WeakMap<ProcessService, unknown>();

export class ProcessService {
  readonly #door: Door;

  constructor(options?: unknown) {
    const bag = options === undefined ? ({} as Bag) : object(options, 'options');
    const given = option(bag, 'environment');
    if (given === undefined || given === null) {
      this.#door = new Door('process-service', bag);
      return;
    }
    const ours = doorOf(given);
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
    const calls = new CallSignals();
    // Asynchronous inside, so that the service goes on meanwhile.
    const call = async (args: unknown, eid: number, number: number): Promise<unknown> =>
      calls.call(number, (signal) => (handler as ToolHandler)(args as never, { eid, signal }));
    // Errors about its answer have this name.
    if (typeof service === 'string' && typeof name === 'string') Object.defineProperty(call, 'name', { value: `${service}.${name}` });
    const given = typeof handler === 'function' ? call : handler;
    this.#door.call('tool', [service, name, description, given, calls.abort]);
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
