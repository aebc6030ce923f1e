/**
 * Runs JavaScript and TypeScript that a model wrote, in an isolate with exactly the capabilities
 * that its host hands over.
 */

declare global {
  interface SymbolConstructor {
    /** As TypeScript's own library has it since 5.2. */
    readonly asyncDispose: unique symbol;
  }
}

/** The options of a run. All are optional; an unknown key is a `TypeError`. */
export interface CodeExecutionOptions {
  /** The export that is the result, and its arguments. */
  execute?: {
    /** The name of the export. Default `'default'`. */
    fn?: string;
    /** The arguments, if the export is a function; they are cloned. Default none. */
    args?: unknown[];
  };
  /**
   * Bridged modules: bare specifier → named exports. Values are cloned. Functions run in the host
   * when the sandbox calls them.
   */
  imports?: Record<string, Record<string, any>>;
  /** Further source modules, by a relative specifier such as `'./math.js'`. */
  modules?: Record<string, string>;
  /** Names that every module sees, though they are not on `globalThis`. Values as in `imports`. */
  globals?: Record<string, any>;
  /** The language of the sources. Types are erased, not checked. Default `'typescript'`. */
  language?: 'javascript' | 'typescript';
  /** Limit on all that the run holds, in bytes. A safe integer of at least 1. Default 128 MiB. */
  memoryLimitBytes?: number;
  /** The label of the source in stacks and errors; imports of the source start from it. Default `'<runCode>'`. */
  filename?: string;
  /**
   * Gives the sandbox a function `report`, and is called with each value passed to it. Its return
   * value or its exception is that of `report` inside.
   */
  report?: (value: unknown) => void;
}

/** A run: awaitable, and never rejecting. The outcome of any run is a result with a status. */
export interface CodeExecution extends PromiseLike<CodeExecutionResult> {
  /**
   * Ends the run. It settles with status `'terminated'` and the reason as `error.message`. The first
   * reason wins. Returns at once, never throws, and does nothing after the run has settled. Settling
   * takes up to 50 ms, or up to 250 ms in code that the engine cannot interrupt.
   */
  terminate(reason?: string): void;
  /** Whether the run has not settled yet. */
  readonly running: boolean;
  /** The reports so far, in the order of the calls: at each read a new array of the same values. */
  readonly reports: readonly unknown[];
  /** As `Promise.prototype.catch`; there is nothing to catch. */
  catch<T = never>(onRejected?: ((reason: unknown) => T | PromiseLike<T>) | null): Promise<CodeExecutionResult | T>;
  /** As `Promise.prototype.finally`. */
  finally(onFinally?: (() => void) | null): Promise<CodeExecutionResult>;
  /** The name of the class. */
  readonly [Symbol.toStringTag]: string;
}

/** The result of a run: its `status` tells whether it has a `result` or an `error`. */
export type CodeExecutionResult = CodeExecutionSuccess | CodeExecutionFailure;

/** The result of a run that succeeded. */
export interface CodeExecutionSuccess extends CodeExecutionFields {
  /** The export resolved. */
  status: 'success';
  /** The value of the export, which may be `undefined`. */
  result: unknown;
  error?: never;
}

/** The result of a run that did not succeed. */
export interface CodeExecutionFailure extends CodeExecutionFields {
  /**
   * `'error'`: the code threw. `'memory'`: the run hit its limit. `'terminated'`: the caller or a cap of the runtime
   * ended it. `'link_error'`: an import does not resolve, a source does not parse, or the selected export is missing.
   */
  status: 'error' | 'memory' | 'terminated' | 'link_error';
  error: CodeExecutionError;
  result?: never;
}

/** The fields of every result. */
export interface CodeExecutionFields {
  /** The values that the sandbox passed to `report`, in the order of the calls. */
  reports: unknown[];
  /** Calls of the built-in console; empty when `globals` has a `console`. */
  logs: CodeExecutionLog[];
  /** Milliseconds from the call of `runCode` to settlement, with fractions. */
  durationMs: number;
  /** The peak of all bytes that counted against the limit. */
  memoryUsedBytes?: number;
}

/** One call of the sandbox's console. */
export interface CodeExecutionLog {
  level: 'log' | 'info' | 'warn' | 'error' | 'debug';
  /** The arguments, cloned; text replaces those that cannot be cloned. */
  args: unknown[];
  /** Epoch milliseconds. */
  timestamp: number;
}

/** The error of a run that did not succeed. Positions are those of the original source, TypeScript included. */
export interface CodeExecutionError {
  name: string;
  message: string;
  /**
   * `Name: message`, below it the frames of the sandbox, one `    at name (file:line:col)` a line, and below them the
   * errors that it was made from (`cause`, `errors`).
   */
  stack?: string;
  /** The specifier that could not be linked. */
  specifier?: string;
  /** The file of `line` and `column`. */
  filename?: string;
  /** From 1. */
  line?: number;
  /** From 1, in UTF-16 code units. */
  column?: number;
  /**
   * The object of the host that caused the error: the same object that a host function or a promise threw, if the
   * sandbox did not catch it or threw it again; an error of the system if no worker could be started. Absent for
   * primitives. It is not enumerable, so no copy of the result has it. Only the objects that the last few calls threw
   * are recognized.
   */
  cause?: unknown;
}

/**
 * A value as one line of text, as Node's console shows it: `{ ids: Set(1) { 1 }, when: 1970-01-01T00:00:00.000Z }`. Any
 * value has one, also a result that `JSON.stringify` does not take. A string is bare. At most 100 items of each container
 * are shown, and three levels of containers.
 *
 * @param options `limit`: the most bytes of UTF-8, an ellipsis included. Default 10,000.
 * @throws TypeError or RangeError for a limit that is not valid.
 */
export function describe(value: unknown, options?: { limit?: number }): string;

/**
 * Runs `source` as an ECMAScript module in a fresh isolate of the process's default runtime.
 *
 * Throws before anything starts: a `TypeError` (a `RangeError` for a number out of range) for an
 * option that is not valid, a `SerializationError` for a value that cannot be cloned. Host functions
 * run on the calling thread, in the asynchronous context of this call.
 */
export function runCode(source: string, options?: CodeExecutionOptions): CodeExecution;

/** The signal of a run: an `AbortSignal`, where the program's types have that class. */
export type CallSignal = typeof globalThis extends { AbortSignal: { prototype: infer Signal } } ? Signal : AbortSignalLike;

/**
 * For a host function: the run or the cell that has called it. Call it before the first `await` of the function; from
 * then on it works in everything that the function does. Elsewhere it throws an `Error`.
 *
 * The signal is aborted when the run is ended: by `terminate`, a cap, its memory limit or the close of its runtime. A
 * run that ends by itself lets its calls go on. The call of a cell that was `kept` belongs to the session: its signal is
 * aborted when the session is reset or closed.
 */
export function current(): { readonly signal: CallSignal };

/** The options of a {@link Session}. All are optional; an unknown key is a `TypeError`. */
export interface SessionOptions {
  /** As in {@link CodeExecutionOptions}, for all cells. A module of `modules` is evaluated once. */
  imports?: Record<string, Record<string, any>>;
  /** As in {@link CodeExecutionOptions}, for all cells. A module is evaluated once, whichever cell imports it. */
  modules?: Record<string, string>;
  /** As in {@link CodeExecutionOptions}, for all cells. A name that a cell declares shadows a global of that name. */
  globals?: Record<string, any>;
  /** The language of cells that have none of their own, and of modules. Default `'typescript'`. */
  language?: 'javascript' | 'typescript';
  /** Limit on all that the session holds, in bytes. A safe integer of at least 1. Default 128 MiB. */
  memoryLimitBytes?: number;
  /** The sink for reports of cells that have none of their own. As in {@link CodeExecutionOptions}. */
  report?: (value: unknown) => void;
  /**
   * `'queue'`: cells run one at a time, in the order of their calls. A host function that waits for a cell of the
   * session that called it waits for ever. `'interleave'`: a cell starts as soon as the ones before wait for the host.
   * Default `'queue'`.
   */
  cells?: 'queue' | 'interleave';
  /**
   * The bytes of the largest state that the session keeps a checkpoint of. A safe integer of at least 0. A cell that is
   * ended in a larger state resets the session. Default 64 MiB.
   */
  checkpointBytes?: number;
}

/** The parts of an `AbortSignal` that a cell uses. */
export interface AbortSignalLike {
  /** Whether it has been aborted. */
  readonly aborted: boolean;
  /** Why it has been aborted. */
  readonly reason: unknown;
  /** As that of `EventTarget`. */
  addEventListener(type: 'abort', listener: () => void, options?: { once?: boolean }): void;
  /** As that of `EventTarget`. */
  removeEventListener(type: 'abort', listener: () => void): void;
}

/** The options of a cell. All are optional; an unknown key is a `TypeError`. */
export interface CellOptions {
  /** The name of the cell in stacks and errors. Names may repeat. Default `'<cell N>'`, N counting from 1. */
  filename?: string;
  /** The language of the cell. Default: that of the session. */
  language?: 'javascript' | 'typescript';
  /** The sink for reports of the cell, in place of that of the session. */
  report?: (value: unknown) => void;
  /**
   * The milliseconds after which the cell ends as `'terminated'`, with the name `Timeout`. They count from its start,
   * not while it waits in the queue. A safe integer of at least 1. Default: none.
   */
  timeoutMs?: number;
  /** Ends the cell when it is aborted. Its reason becomes the reason of the termination. */
  signal?: AbortSignalLike;
}

/** The first argument of {@link Session.call}, if it is more than a name. An unknown key is a `TypeError`. */
export interface CallOptions {
  /** The name of a function that a cell declared or imported. */
  name: string;
  /** As in {@link CellOptions}. */
  timeoutMs?: number;
  /** As in {@link CellOptions}. */
  signal?: AbortSignalLike;
  /** As in {@link CellOptions}. */
  report?: (value: unknown) => void;
}

/** The parts of an update. A name with the value `null` is taken away. An unknown key is a `TypeError`. */
export interface SessionUpdate {
  /** Globals that are added or replaced, or taken away. */
  globals?: Record<string, any>;
  /** Bridged modules that are added or replaced as a whole, or taken away. */
  imports?: Record<string, Record<string, any> | null>;
  /** Source modules that are added or replaced, or taken away. The next cell that imports a new one evaluates it. */
  modules?: Record<string, string | null>;
}

/** A cell: awaitable, and never rejecting, as any run. */
export interface CellExecution extends PromiseLike<CellExecutionResult> {
  /** As {@link CodeExecution.terminate}. A cell that waits in the queue ends at once. */
  terminate(reason?: string): void;
  /** Whether the cell has not settled yet. */
  readonly running: boolean;
  /** The reports so far, in the order of the calls: at each read a new array of the same values. */
  readonly reports: readonly unknown[];
  /** As `Promise.prototype.catch`; there is nothing to catch. */
  catch<T = never>(onRejected?: ((reason: unknown) => T | PromiseLike<T>) | null): Promise<CellExecutionResult | T>;
  /** As `Promise.prototype.finally`. */
  finally(onFinally?: (() => void) | null): Promise<CellExecutionResult>;
  /** The name of the class. */
  readonly [Symbol.toStringTag]: string;
}

/** The result of a cell. Of one whose value cannot be cloned `result` is absent, and `uncloned` says why. */
export type CellExecutionResult = CodeExecutionResult & CellFields;

/** The fields of a result that only a cell has. */
export interface CellFields {
  /**
   * The effect of the cell on the state of the session. `'kept'`: everything that it did is there. `'rolledBack'`: the
   * state is that from before the cell. `'reset'`: the state is that of a new session.
   */
  session: 'kept' | 'rolledBack' | 'reset';
  /** On success, the text that a console would show of the value, at most 16 KiB. Absent for `undefined`. */
  text?: string;
  /**
   * On success with a value that cannot be cloned: the message of the `SerializationError`. `result` is absent then,
   * and `text` shows the value.
   */
  uncloned?: string;
  /**
   * On success, the part of the cell that the value is from; absent if the cell has no value. `'return'`: a top-level
   * `return`. `'default'`: `export default`. `'expression'`: the last statement. `'completion'`: the last value within
   * another statement.
   */
  valueFrom?: 'return' | 'default' | 'expression' | 'completion';
}

/** A name that cells of a session have declared. */
export interface SessionName {
  /** The name itself. */
  name: string;
  /** The kind of its latest declaration. */
  kind: 'const' | 'let' | 'var' | 'function' | 'class' | 'import' | 'enum' | 'namespace';
  /** The `typeof` of its value, or the class of an object; `'uninitialized'` if it has no value. */
  type: string;
  /** The length of an array or a string, or the size of a Map or Set. */
  size?: number;
}

/**
 * An isolate that stays: cells run in it one after another, and find what earlier ones left. Nothing runs between
 * cells. A session keeps no thread and does not keep the process alive; a cell in flight does. A session that is
 * dropped without `close()` is freed when it is collected. Functions of the sandbox that the host holds stay valid
 * between cells, and keep the session; called between cells, each call is a cell of its own.
 */
export class Session {
  /**
   * Opens a session in the process's default runtime. Throws as {@link runCode}, for options that are not valid and
   * values that cannot be cloned.
   */
  constructor(options?: SessionOptions);
  /**
   * Queues a cell. Throws for misuse as {@link runCode}, and an `Error` if the session is closed. Host functions run in
   * the asynchronous context of this call.
   */
  run(source: string, options?: CellOptions): CellExecution;
  /** Queues a call of something that a cell declared or imported; arguments are cloned. It is a cell of its own. */
  call(name: string | CallOptions, ...args: unknown[]): CellExecution;
  /**
   * Hands more over, replaces it or takes it away, from the next cell on that starts. Throws as {@link Session.run}, and
   * for values that cannot be cloned.
   */
  update(update: SessionUpdate): void;
  /**
   * The names that cells have declared, in the order of their first declarations, when the cells before are done. Rejects
   * with the name `SessionReset` or `SessionClosed` if the session is reset or closed before that.
   */
  names(): Promise<SessionName[]>;
  /**
   * Ends what runs and what waits in the queue, as `'terminated'` with the name `SessionReset`, and forgets all state.
   * Everything that was handed over stays.
   */
  reset(): Promise<void>;
  /**
   * Makes a second session with the same state, when the cells before are done. Rejects while calls to the host are
   * unanswered, and as {@link Session.names}.
   */
  fork(): Promise<Session>;
  /**
   * Ends what runs and what waits in the queue, as `'terminated'` with the name `SessionClosed`, and resolves when
   * everything is freed. A second call gives the same promise.
   */
  close(): Promise<void>;
  /** As {@link Session.close}, for `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
}

/** The options of a {@link Runtime}. An unknown key is a `TypeError`. */
export interface RuntimeOptions {
  /**
   * Isolates on threads of this process, or in worker processes on Linux, macOS and Windows. A worker holds no secrets
   * and can be killed. Default `'thread'`.
   */
  isolation?: 'thread' | 'process';
  /** CPU time of one run, in milliseconds; waiting for the host does not count. Default 300,000. */
  safetyCapMs?: number;
  /** Runs that compute at once; those that wait for the host do not count. Default 4 per core, at least 8. */
  maxConcurrentRuns?: number;
  /** Runs that may wait to compute; `runCode` throws a {@link QueueFullError} beyond that. Default: any number. */
  maxQueuedRuns?: number;
  /**
   * Threads that may be stuck in builtins after their run has ended. At that number each new run is `terminated`, by a
   * `SafetyCap`, until one returns; at twice that number so is each run that resumes. Default 32.
   */
  maxStuckThreads?: number;
  /**
   * Isolates that are made ahead of need, each in a worker of its own under `'process'`. Each takes some hundred
   * KiB.
   */
  readyIsolates?: number;
  /** Bytes of compiled code kept for repeated sources. Workers keep none. */
  compileCacheBytes?: number;
  /**
   * Under `'process'`: the path of the executable `isolane-worker`. Default: the value of the
   * environment variable `ISOLANE_WORKER`, or else the executable of this package.
   */
  worker?: string;
  /** Runs that a worker serves, one after another, before it ends. Default 1: no worker serves two runs. */
  runsPerWorker?: number;
  /** The time for which workers are kept ready without runs, in milliseconds. Default 60,000. */
  workerIdleMs?: number;
}

/** A place to run code in, with caps of its own. */
export class Runtime {
  /** Throws a `TypeError` or a `RangeError` for options that are not valid. */
  constructor(options?: RuntimeOptions);
  /** As the free {@link runCode}; needs no `this`. Also throws a {@link RuntimeClosedError} or a {@link QueueFullError}. */
  readonly runCode: (source: string, options?: CodeExecutionOptions) => CodeExecution;
  /** Opens a session in this runtime, as `new Session(options)` does in the default one; needs no `this`. */
  readonly session: (options?: SessionOptions) => Session;
  /**
   * Refuses new runs, ends live ones with the reason `runtime closed`, closes its sessions, and resolves when everything
   * is freed. A second call gives the same promise.
   */
  close(): Promise<void>;
  /** As {@link close}. */
  [Symbol.asyncDispose](): Promise<void>;
  /** Counts as of now. */
  stats(): Stats;
}

/** Counts of a runtime. */
export interface Stats {
  /** Runs that compute now. */
  readonly computing: number;
  /** Runs that wait for their host; they hold no thread. */
  readonly parked: number;
  /** Runs that wait for a permit to compute. */
  readonly queued: number;
  /** Sessions that are open. */
  readonly sessions: number;
  /** Runs that have settled since the runtime was made, by status. */
  readonly settled: Readonly<Record<CodeExecutionResult['status'], number>>;
  /** Pristine isolates that wait for a run. */
  readonly readyIsolates: number;
  /** Threads of the runtime in this process. */
  readonly threads: number;
  /** Threads that do not return from a builtin, although their run has settled. They have the lowest priority. */
  readonly stuckThreads: number;
  /** Bytes of compiled modules in the cache. */
  readonly compileCacheBytes: number;
  /**
   * Modules that were compiled and not kept, because each takes more than half of the option `compileCacheBytes`. Each
   * run compiles them again.
   */
  readonly uncachedModules: number;
  /** Processes that run isolates or wait for a run, under isolation by process. */
  readonly workers: number;
  /**
   * The protections of workers on this machine. Absent before the first worker has started, and without isolation by
   * process.
   */
  readonly confinement?: Confinement;
}

/**
 * The protections of workers. An item is `false` if this machine does not support it. Then only the other items
 * restrict the acts that it would prevent. The descriptions are those of Linux; `SECURITY.md` describes macOS and
 * Windows, and the items that they never have.
 */
export interface Confinement {
  /** No variable of the host's environment; the worker has read the time zone before. */
  readonly environment: boolean;
  /** No descriptor but the worker's own socket. */
  readonly descriptors: boolean;
  /** A program that the worker starts cannot gain privileges (`no_new_privs`). */
  readonly privileges: boolean;
  /** A user namespace of its own: the worker's rights as a user end there. */
  readonly user: boolean;
  /** No capability, and not root. */
  readonly capabilities: boolean;
  /** An empty network namespace of its own. */
  readonly network: boolean;
  /** The worker's root is an empty directory. */
  readonly fileSystem: boolean;
  /** A process namespace of its own: the worker can name no process outside of it. */
  readonly processes: boolean;
  /** No System V object and no message queue of other processes. */
  readonly ipc: boolean;
  /** No right that Landlock controls, even if other items fail: files, TCP, abstract sockets, signals. */
  readonly landlock: boolean;
  /** Only the few system calls that computing needs; any other one ends the process. */
  readonly systemCalls: boolean;
  /** Limits of the system on the worker's memory, time and new objects. */
  readonly resources: boolean;
}

/**
 * A value cannot be cloned. The message names its path and its kind:
 * `globals.db.pool: an instance of Pool cannot be cloned`.
 */
export class SerializationError extends TypeError {}

/** As many runs are queued as the option `maxQueuedRuns` of the runtime allows. The same call may succeed later. */
export class QueueFullError extends Error {
  readonly code: 'QUEUE_FULL';
}

/** The runtime is closed, and starts nothing any more. */
export class RuntimeClosedError extends Error {
  readonly code: 'RUNTIME_CLOSED';
}

/**
 * For callers who want exceptions: the value of a result whose status is `'success'`; otherwise
 * throws the {@link StatusError} of its status. A copy of a result is accepted as well, such as one
 * from another thread. Throws a `TypeError` for a value that is no result, such as a run that was
 * not awaited.
 */
export function unwrap<T = unknown>(result: CodeExecutionResult): T;

/**
 * A run that did not succeed. The message is the error's name and message, and its place if it is
 * known: `TypeError: x is not a function (code.ts:4:7)`. Its `cause` is that of the result's error, if there is one.
 */
export class StatusError extends Error {
  constructor(result: CodeExecutionResult);
  /** The whole result of the run. Not enumerable. */
  readonly result: CodeExecutionResult;
  /** The status of that result. */
  readonly status: Exclude<CodeExecutionResult['status'], 'success'>;
}

/** Thrown for the status `'error'`. */
export class UncaughtError extends StatusError {
  readonly status: 'error';
}

/** Thrown for the status `'memory'`. */
export class MemoryLimitError extends StatusError {
  readonly status: 'memory';
}

/** Thrown for the status `'terminated'`. */
export class TerminatedError extends StatusError {
  readonly status: 'terminated';
}

/** Thrown for the status `'link_error'`. */
export class LinkError extends StatusError {
  readonly status: 'link_error';
}
