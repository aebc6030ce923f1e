// The contract's interfaces and the package's are assignable in both directions; public values have the promised types.

import {
  LinkError,
  MemoryLimitError,
  Runtime,
  SerializationError,
  StatusError,
  TerminatedError,
  UncaughtError,
  runCode,
  unwrap,
  type CodeExecution,
  type CodeExecutionError,
  type CodeExecutionLog,
  type CodeExecutionOptions,
  type CodeExecutionResult,
  type Confinement,
  type RuntimeOptions,
  type Stats,
} from 'isolane';

interface Options {
  execute?: { fn?: string; args?: unknown[] };
  imports?: Record<string, Record<string, unknown>>;
  modules?: Record<string, string>;
  globals?: Record<string, unknown>;
  language?: 'javascript' | 'typescript';
  memoryLimitBytes?: number;
  filename?: string;
  report?: (value: unknown) => void;
}

interface Execution extends PromiseLike<Result> {
  terminate(reason?: string): void;
  readonly running: boolean;
  readonly reports: readonly unknown[];
}

interface Result {
  status: 'success' | 'error' | 'memory' | 'terminated' | 'link_error';
  result?: unknown;
  reports: unknown[];
  logs: Log[];
  error?: Failure;
  durationMs: number;
  memoryUsedBytes?: number;
}

interface Log {
  level: 'log' | 'info' | 'warn' | 'error' | 'debug';
  args: unknown[];
  timestamp: number;
}

interface Failure {
  name: string;
  message: string;
  stack?: string;
  specifier?: string;
  filename?: string;
  line?: number;
  column?: number;
}

type Same<A, B> = [A] extends [B] ? ([B] extends [A] ? true : false) : false;
const same: [
  Same<Options, CodeExecutionOptions>,
  Same<Result, CodeExecutionResult>,
  Same<Log, CodeExecutionLog>,
  Same<Failure, CodeExecutionError>,
] = [true, true, true, true];
void same;

// A handle is a contract's handle with two more methods.
const handle: Execution = runCode('export default 1');
const caught: Promise<CodeExecutionResult> = runCode('').catch(() => { throw new Error(); });
const last: Promise<CodeExecutionResult> = runCode('').finally(() => {});
const awaited: CodeExecutionResult = await runCode('', { globals: { n: 1 } } satisfies CodeExecutionOptions);
const state: { runCode(source: string, options?: Options): Execution } = { runCode };
void [handle, caught, last, awaited, state];

const options: RuntimeOptions = { isolation: 'thread', safetyCapMs: 1, maxConcurrentRuns: 1, maxQueuedRuns: 1, maxStuckThreads: 1, readyIsolates: 1, compileCacheBytes: 1, worker: '/isolane-worker', runsPerWorker: 1, workerIdleMs: 1 };
const runtime = new Runtime(options);
const run: CodeExecution = runtime.runCode('');
const stats: Stats = runtime.stats();
const settled: number = stats.settled.link_error + stats.computing;
const workers: number = stats.workers;
const confinement: Confinement | undefined = stats.confinement;
const missing: boolean[] = confinement === undefined ? [] : [!confinement.systemCalls, !confinement.fileSystem];
const closed: Promise<void> = runtime.close();
const refused: TypeError = new SerializationError('x');
void [run, settled, workers, missing, closed, refused];

const unknowing: unknown = unwrap(awaited);
const typed: { total: number } = unwrap<{ total: number }>(awaited);
const statuses: ['error', 'memory', 'terminated', 'link_error'] = [
  new UncaughtError(awaited).status,
  new MemoryLimitError(awaited).status,
  new TerminatedError(awaited).status,
  new LinkError(awaited).status,
];
const failure: StatusError = new LinkError(awaited);
const carried: CodeExecutionResult = failure.result;
void [unknowing, typed, statuses, carried];

// @ts-expect-error a run that was not awaited
unwrap(run);
// @ts-expect-error a type that was not asked for
unwrap(awaited).total;
// @ts-expect-error an option that does not exist
runCode('', { timeout: 1 });
// @ts-expect-error a language that does not exist
runCode('', { language: 'python' });
// @ts-expect-error the result may be absent
awaited.result.length;
// @ts-expect-error reports are the caller's to look at only
handle.reports.push(1);
