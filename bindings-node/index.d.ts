/**
 * Runs JavaScript and TypeScript that a model wrote, in an isolate that has exactly the
 * capabilities handed to it.
 */

/** What a run may be given. Every option is optional; an unknown key is a `TypeError`. */
export interface CodeExecutionOptions {
  /** Which export is the result, and what it is called with if it is a function. */
  execute?: {
    /** The name of the export. Default `'default'`. */
    fn?: string;
    /** The arguments; they are cloned. Default none. */
    args?: unknown[];
  };
  /**
   * Bridged modules: bare specifier → named exports. Values are cloned, functions become callable
   * from inside and run out here.
   */
  imports?: Record<string, Record<string, unknown>>;
  /** Further source modules, by a relative specifier such as `'./math.js'`. */
  modules?: Record<string, string>;
  /** Names that every module sees, though they are not on `globalThis`. Values as in `imports`. */
  globals?: Record<string, unknown>;
  /** The language of the sources. Types are erased, not checked. Default `'typescript'`. */
  language?: 'javascript' | 'typescript';
  /** Limit on all that the run holds, in bytes. A safe integer of at least 1. Default 128 MiB. */
  memoryLimitBytes?: number;
  /** The label of the source in stacks and errors; imports of the source start from it. Default `'<runCode>'`. */
  filename?: string;
  /**
   * Gives the sandbox a function `report`, and is called with each value given to it. What the sink
   * returns, or throws, is what `report` returns or throws inside.
   */
  report?: (value: unknown) => void;
}

/** A run: awaitable, and never rejecting. Whatever happens inside is a result with a status. */
export interface CodeExecution extends PromiseLike<CodeExecutionResult> {
  /**
   * Ends the run; it settles with status `'terminated'` and the reason as `error.message`. The first
   * reason wins. Never throws; does nothing once the run has settled. Not awaited: settling takes up
   * to 50 ms, in code that the engine cannot interrupt up to 250 ms.
   */
  terminate(reason?: string): void;
  /** Whether the run has not settled yet. */
  readonly running: boolean;
  /** What was reported so far, in call order: a new array at each read, holding the same values. */
  readonly reports: readonly unknown[];
  /** As `Promise.prototype.catch`; there is nothing to catch. */
  catch<T = never>(onRejected?: ((reason: unknown) => T | PromiseLike<T>) | null): Promise<CodeExecutionResult | T>;
  /** As `Promise.prototype.finally`. */
  finally(onFinally?: (() => void) | null): Promise<CodeExecutionResult>;
}

/** What a run came to. */
export interface CodeExecutionResult {
  /**
   * `'success'`: the export resolved. `'error'`: the code threw. `'memory'`: the limit was hit.
   * `'terminated'`: by the caller or by a cap of the runtime. `'link_error'`: the modules do not fit
   * together, or a source does not parse; or the selected export is missing.
   */
  status: 'success' | 'error' | 'memory' | 'terminated' | 'link_error';
  /** The value of the export. An own key on success only, where it may be `undefined`. */
  result?: unknown;
  /** What went through the built-in `report`, in call order. */
  reports: unknown[];
  /** Calls of the built-in console; empty when `globals` has a `console`. */
  logs: CodeExecutionLog[];
  /** Why the run did not succeed. An own key unless the status is `'success'`. */
  error?: CodeExecutionError;
  /** Milliseconds from the call of `runCode` to settlement, with fractions. */
  durationMs: number;
  /** The peak of all bytes that counted against the limit. */
  memoryUsedBytes?: number;
}

/** One call of the sandbox's console. */
export interface CodeExecutionLog {
  level: 'log' | 'info' | 'warn' | 'error' | 'debug';
  /** The arguments, cloned; what cannot be cloned is there as text. */
  args: unknown[];
  /** Epoch milliseconds. */
  timestamp: number;
}

/** Why a run did not succeed. Positions are those of the original source, TypeScript included. */
export interface CodeExecutionError {
  name: string;
  message: string;
  /** Frames of the sandbox only. */
  stack?: string;
  /** The specifier that could not be linked. */
  specifier?: string;
  /** The file that `line` and `column` belong to. */
  filename?: string;
  /** From 1. */
  line?: number;
  /** From 1, in UTF-16 code units. */
  column?: number;
  /**
   * What the error was made out of, on this side: the very object that a host function or promise threw, if the
   * sandbox did not catch it, or threw the same one again; an error of the system where no worker could be started.
   * Absent for primitives. Not enumerable, so that no copy of the result has it. Objects thrown by the last few calls
   * are told apart, earlier ones are not.
   */
  cause?: unknown;
}

/**
 * Runs `source` as an ECMAScript module in a fresh isolate of the process's default runtime.
 *
 * Throws before anything starts: a `TypeError` (a `RangeError` for a number out of range) for an
 * option that is not valid, a `SerializationError` for a value that cannot be cloned. Host functions
 * run on the calling thread, in the asynchronous context of this call.
 */
export function runCode(source: string, options?: CodeExecutionOptions): CodeExecution;

/** What a {@link Runtime} is made with. An unknown key is a `TypeError`. */
export interface RuntimeOptions {
  /**
   * Isolates on threads of this process, or in worker processes that hold nothing and can be killed, on
   * Linux, macOS and Windows. Default `'thread'`.
   */
  isolation?: 'thread' | 'process';
  /** CPU time of one run, in milliseconds; waiting for the host does not count. Default 300,000. */
  safetyCapMs?: number;
  /** Runs that compute at once; those that wait for the host do not count. Default 4 per core, at least 8. */
  maxConcurrentRuns?: number;
  /** Runs that may wait for their turn; beyond that `runCode` throws. Default: any number. */
  maxQueuedRuns?: number;
  /**
   * Threads that may be lost to builtins that do not return when their run has ended. At that number each new
   * run is `terminated`, by a `SafetyCap`, until one returns; at twice that number so is each run that resumes.
   * Default 32.
   */
  maxStuckThreads?: number;
  /** Isolates kept ready ahead of need, each in a worker of its own under `'process'`. Each costs some hundred KiB. */
  readyIsolates?: number;
  /** Bytes of compiled code kept for sources that come again. Workers keep none. */
  compileCacheBytes?: number;
  /**
   * Under `'process'`: the path of the executable `isolane-worker`. Default: what the environment
   * variable `ISOLANE_WORKER` names, or else the one that came with this package.
   */
  worker?: string;
  /** Runs that a worker serves, one after another, before it ends. Default 1: none ever sees two. */
  runsPerWorker?: number;
  /** For how long workers are kept ready while there are no runs, in milliseconds. Default 60,000. */
  workerIdleMs?: number;
}

/** A place to run code in, with caps of its own. */
export class Runtime {
  /** Throws a `TypeError` or a `RangeError` for options that are not valid. */
  constructor(options?: RuntimeOptions);
  /** As the free {@link runCode}; needs no `this`. Throws once the runtime is closed, or its queue full. */
  readonly runCode: (source: string, options?: CodeExecutionOptions) => CodeExecution;
  /**
   * Refuses new runs, ends live ones with the reason `runtime closed`, and resolves when everything
   * is freed. A second call gives the same promise.
   */
  close(): Promise<void>;
  /** Counts as of now. */
  stats(): Stats;
}

/** Counts of a runtime. */
export interface Stats {
  /** Runs that compute now. */
  readonly computing: number;
  /** Runs that wait for their host; they hold no thread. */
  readonly parked: number;
  /** Runs that wait for their turn. */
  readonly queued: number;
  /** Runs that have settled since the runtime was made, by status. */
  readonly settled: Readonly<Record<CodeExecutionResult['status'], number>>;
  /** Isolates that are pristine and wait for a run. */
  readonly readyIsolates: number;
  /** Threads of the runtime in this process. */
  readonly threads: number;
  /** Threads that do not return from a builtin, although their run has settled. They have the lowest priority. */
  readonly stuckThreads: number;
  /** Bytes of compiled modules that are kept. */
  readonly compileCacheBytes: number;
  /** Processes that run isolates or wait for a run, under isolation by process. */
  readonly workers: number;
  /** What workers are kept from on this machine. Absent until the first is on its way, and without isolation by process. */
  readonly confinement?: Confinement;
}

/**
 * What workers are kept from. An item that is `false` could not be had on this machine: what it is for is
 * then possible as far as the other items leave it. What is said here of each is how Linux keeps it;
 * `SECURITY.md` says what macOS and Windows have in its place, and which they never have.
 */
export interface Confinement {
  /** No variable of the host's environment; the time zone was read before. */
  readonly environment: boolean;
  /** No descriptor but the worker's own socket. */
  readonly descriptors: boolean;
  /** No program that it might start has more privileges than it has (`no_new_privs`). */
  readonly privileges: boolean;
  /** A user namespace of its own: what it may do as a user ends there. */
  readonly user: boolean;
  /** No capability, and not root. */
  readonly capabilities: boolean;
  /** A network namespace of its own, with nothing in it. */
  readonly network: boolean;
  /** Its root is an empty directory. */
  readonly fileSystem: boolean;
  /** A process namespace of its own: it can name no process but those that it was forked beside. */
  readonly processes: boolean;
  /** No System V object and no message queue of others. */
  readonly ipc: boolean;
  /** No right that Landlock knows of, whatever else fails: files, TCP, abstract sockets, signals. */
  readonly landlock: boolean;
  /** The few system calls that computing takes; any other one ends the process. */
  readonly systemCalls: boolean;
  /** Limits of the system on its memory, its time, and on all that it might make. */
  readonly resources: boolean;
}

/**
 * A value cannot be cloned. The message names the place and the kind:
 * `globals.db.pool: an instance of Pool cannot be cloned`.
 */
export class SerializationError extends TypeError {}

/**
 * For callers who want exceptions: the value of a result whose status is `'success'`; otherwise
 * throws the {@link StatusError} of its status. A copy of a result will do as well, such as one that
 * came from a worker. Throws a `TypeError` for what is no result, such as a run not awaited yet.
 */
export function unwrap<T = unknown>(result: CodeExecutionResult): T;

/**
 * A run that did not succeed. The message is the error's name and message, and its place if it is
 * known: `TypeError: x is not a function (code.ts:4:7)`. Its `cause` is that of the result's error, if there is one.
 */
export class StatusError extends Error {
  constructor(result: CodeExecutionResult);
  /** What the run came to, all of it. Not enumerable. */
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
