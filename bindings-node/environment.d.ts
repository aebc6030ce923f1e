/**
 * Environments that run code of clients, and the process service: it gives an environment work and keeps records, streams,
 * output and events of each process.
 */

import type { Runtime } from './index.js';

/** The states that an environment reports. */
export const EXECUTION_STATES: readonly ['queued', 'running'];
export type ExecutionState = (typeof EXECUTION_STATES)[number];

/** The ends of an execution. */
export const EXECUTION_EXIT_STATES: readonly ['failed', 'success', 'timeout', 'canceled'];
export type ExecutionExitState = (typeof EXECUTION_EXIT_STATES)[number];

/** The work of an environment: one piece of code. */
export interface ExecutionInput {
  /** The number of the execution, which is the pid of its process. */
  eid: number;
  /** The code as it was posted. */
  code: string;
  /** Absent where no default is configured; the environment's own default counts then. */
  options?: ExecutionOptions;
}

export interface ExecutionOptions {
  /** The milliseconds after which the environment ends the execution, as `timeout`. */
  timeoutMs: number;
}

/** The reason of a failure. */
export interface ErrorDetails {
  name?: string;
  message: string;
  stack?: string;
  filename?: string;
  /** From 1. */
  line?: number;
  /** From 1, in UTF-16 code units. */
  column?: number;
}

/**
 * How an environment reports to its host. The bindings are of one execution: another `eid` throws a `TypeError`. After the
 * execution has settled, calls do nothing.
 */
export interface EnvironmentBindings {
  /** A state that the table of states has not at this moment is ignored. */
  setState(eid: number, state: ExecutionState): void;
  /** At most 4 MiB in a call, else a `RangeError`. */
  stdout(eid: number, bytes: Uint8Array | string): void;
  /** As `stdout`. */
  stderr(eid: number, bytes: Uint8Array | string): void;
  /** Merges fields into the output: a plain object of JSON values. */
  output(eid: number, fields: Record<string, any>): void;
  /** Why the execution fails; the last one counts. */
  error(eid: number, error: string | ErrorDetails | Error): void;
  /** Calls a tool by its name, `service.tool`. */
  invokeTool(eid: number, name: string, args?: Record<string, any>): Promise<unknown>;
}

/** Runs code. */
export interface EnvironmentModule {
  /**
   * Runs code to its end. Says `running` when the code starts, keeps to `options.timeoutMs`, and settles promptly as
   * `canceled` after `kill`.
   */
  execute(input: ExecutionInput, bindings: EnvironmentBindings): Promise<ExecutionExitState>;
  /** Ends an execution. One that it does not know is no mistake. */
  kill(eid: number): Promise<void>;
  /** A description in Markdown, for a model that writes code. */
  generateDocs?(): Promise<string> | string;
  /** The description of a tool, with how the code calls it. */
  generateToolDocs?(tool: ToolInfo): Promise<string> | string;
  /** Ends everything. From then on each execution settles as `canceled`. */
  shutdown?(): Promise<void>;
}

export interface TypeScriptEnvironmentOptions {
  /** Where the isolates live: `'thread'` by default. */
  isolation?: 'thread' | 'process' | undefined;
  /** Executions at once; 4 per core, at least 8, by default. Further ones wait, as `queued`. */
  concurrency?: number | undefined;
  /** The most memory of an execution; 128 MiB by default. */
  memoryLimitBytes?: number | undefined;
  /** The time limit of an execution that has none; 30,000 by default. */
  defaultTimeoutMs?: number | undefined;
  /** Names that all code sees. */
  globals?: Record<string, any> | undefined;
  /** Bridged modules, by their specifiers. */
  imports?: Record<string, Record<string, any>> | undefined;
  /** Modules that code may import, by their relative specifiers. */
  modules?: Record<string, string> | undefined;
  /** The runtime of the isolates, in place of the process's own. Not together with `isolation`. */
  runtime?: Runtime | undefined;
}

/** Runs TypeScript and JavaScript: each execution is one cell in an isolate that nothing else ever uses. */
export class TypeScriptEnvironment implements EnvironmentModule {
  constructor(options?: TypeScriptEnvironmentOptions);
  execute(input: ExecutionInput, bindings: EnvironmentBindings & { tools?: readonly ToolInfo[] }): Promise<ExecutionExitState>;
  kill(eid: number): Promise<void>;
  generateDocs(): Promise<string>;
  generateToolDocs(tool: ToolInfo): Promise<string>;
  shutdown(): Promise<void>;
}

export type ProcessState = 'idle' | 'queued' | 'running' | 'terminating';

export interface StreamInfo {
  /** The bytes of the text that is kept, in UTF-8. */
  bytes: number;
  /** Whether more came than is kept. */
  truncated: boolean;
}

/** The record of a process. A field that is not known is `null`. */
export interface ProcessRecord {
  pid: number;
  state: ProcessState;
  exitState: ExecutionExitState | null;
  error: string | null;
  errorDetails: ErrorDetails | null;
  timeoutMs: number | null;
  /** ISO text in UTC, as all times. */
  createdAt: string;
  startedAt: string | null;
  finishedAt: string | null;
  stdout: StreamInfo;
  stderr: StreamInfo;
  /** Not in lists and events. */
  output?: Record<string, unknown>;
}

export interface ProcessList {
  /** Newest first, each without its output. */
  items: ProcessRecord[];
  /** For `before`: where the next page begins; `null` after the last one. */
  next: number | null;
}

/** An event of a process. */
export type ProcessEvent =
  | { id: number; event: 'state'; data: { state: ProcessState } }
  | { id: number; event: 'stdout' | 'stderr'; data: { text: string } }
  | { id: number; event: 'output'; data: Record<string, unknown> }
  | { id: number; event: 'exit'; data: ProcessRecord };

/** A process has changed. */
export interface ProcessChange {
  id: number;
  event: 'process';
  data: ProcessRecord;
}

export interface ToolDescription {
  description: string;
  /** The JSON schema of the arguments, which are checked against it. */
  inputSchema?: Record<string, any> | undefined;
  /** The JSON schema of the answer, for its type. */
  outputSchema?: Record<string, any> | undefined;
}

/** A tool that is known. */
export interface ToolInfo extends ToolDescription {
  /** The specifier of its import. */
  service: string;
  /** Its name as it was given. */
  name: string;
  /** The name that code calls it by. */
  identifier: string;
}

export interface ToolContext {
  /** The execution that calls. */
  eid: number;
  /** Aborted when the execution has ended before the answer. */
  signal: AbortSignal;
}

/** Answers calls. The arguments fit the input schema; the answer is JSON. */
export type ToolHandler = (args: any, context: ToolContext) => unknown;

/** Times are in milliseconds. */
export interface ProcessServiceOptions {
  /** Runs the code; a `TypeScriptEnvironment` by default. */
  environment?: EnvironmentModule | undefined;
  /** Executions at once; 4 per core, at least 8, by default. */
  concurrency?: number | undefined;
  /** Processes that wait for a place; 1,000 by default. */
  maxQueued?: number | undefined;
  /** The time limit of processes that ask for none; 30,000 by default, `null` for none. */
  defaultTimeoutMs?: number | null | undefined;
  /** The longest time limit that may be asked for; 3,600,000 by default. */
  maxTimeoutMs?: number | undefined;
  /** The time that a kill may take; 10,000 by default. */
  killGraceMs?: number | undefined;
  /** The time that an environment may take beyond the time limit; 60,000 by default, `null` for any. */
  backstopMs?: number | null | undefined;
  /** The bytes that are kept of each stream; 8 MiB by default. */
  maxStreamBytes?: number | undefined;
  /** The bytes of an output's JSON; 8 MiB by default. */
  maxOutputBytes?: number | undefined;
  /** Finished processes that are kept; 10,000 by default. */
  retainCount?: number | undefined;
  /** How long finished processes are kept; 7 days by default. */
  retainMs?: number | undefined;
  /**
   * A file that keeps the processes, so that they outlive the service; it is made if there is none. One service has it at
   * a time, until its `shutdown`. `null`, the default: they are in memory.
   */
  database?: string | null | undefined;
}

/** A call that the process service refused. */
export class ProcessError extends Error {
  constructor(code: string, message: string);
  /** The type of the problem: `not-found`, `not-idle`, `already-idle`, `has-results`, `queue-full`, … */
  readonly code: string;
}

/** The options of {@link ProcessService.listen}. */
export interface ListenOptions {
  /** The address: 127.0.0.1 by default. One that is not loopback needs a `token`. */
  host?: string | undefined;
  /** 4765 by default; 0 for a free one. */
  port?: number | undefined;
  /** At least 16 characters, which clients send as `Authorization: Bearer`. */
  token?: string | undefined;
  /** The bytes of a request's body: 1 MiB by default. */
  maxBodyBytes?: number | undefined;
  /** The POST requests of a token or an address: 50 a second, 200 at once by default; `null` for any number. */
  rateLimit?: { perSecond?: number | undefined; burst?: number | undefined } | null | undefined;
}

/** A service that answers over HTTP. */
export class ProcessServer {
  private constructor();
  /** The address, such as `http://127.0.0.1:4765`. */
  readonly url: string;
  /** Ends streams, waits for open requests up to 5 seconds, and resolves when nothing listens any more. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Gives an environment work and keeps the records. Calls reject with a {@link ProcessError}. */
export class ProcessService {
  constructor(options?: ProcessServiceOptions);
  /**
   * Creates a process, and queues it unless `autorun` is false. With a database the process is saved when this resolves,
   * and outlives a crash.
   */
  create(process: { code: string; timeoutMs?: number | undefined; autorun?: boolean | undefined }): Promise<ProcessRecord>;
  get(pid: number): Promise<ProcessRecord>;
  list(query?: {
    state?: ProcessState | undefined;
    exitState?: ExecutionExitState | undefined;
    limit?: number | undefined;
    before?: number | undefined;
  }): Promise<ProcessList>;
  /** The record when the process is idle, or when that time is over. */
  wait(pid: number, longestMs?: number): Promise<ProcessRecord>;
  /** Queues an idle process. `force` clears the results of an earlier execution. */
  run(pid: number, options?: { force?: boolean | undefined }): Promise<ProcessRecord>;
  kill(pid: number): Promise<ProcessRecord>;
  /** Forgets an idle process. */
  delete(pid: number): Promise<void>;
  code(pid: number): Promise<string>;
  stdout(pid: number): Promise<string>;
  stderr(pid: number): Promise<string>;
  output(pid: number): Promise<Record<string, unknown>>;
  /** The events of a process, those after an id or all, up to the end of its execution. */
  events(pid: number, options?: { after?: number | undefined }): AsyncIterableIterator<ProcessEvent>;
  /** The changes of all processes. */
  events(pid?: undefined, options?: { after?: number | undefined }): AsyncIterableIterator<ProcessChange>;
  /** Adds a tool. Processes that start from now on have it. */
  tool(service: string, name: string, description: ToolDescription, handler: ToolHandler): void;
  tools(): ToolInfo[];
  /** The declarations of all tools in TypeScript. */
  toolTypes(): string;
  toolDocs(service: string, name: string): Promise<string>;
  environmentDocs(): Promise<string>;
  /**
   * Answers clients over HTTP, with a page for people at `/`. The program does not end while the server listens. Without
   * a `token` only programs of this machine can reach it. Rejects with a `TypeError` or a `RangeError` for options that
   * are not valid, and with an `Error` for an address that is taken.
   */
  listen(options?: ListenOptions): Promise<ProcessServer>;
  /** Refuses new work, cancels the queue, kills what runs, and shuts the environment down. */
  shutdown(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}
