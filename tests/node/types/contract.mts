// The contract's interfaces and the package's are assignable in both directions; public values have the promised types.

import {
  LinkError,
  MemoryLimitError,
  QueueFullError,
  Runtime,
  RuntimeClosedError,
  SerializationError,
  Session,
  StatusError,
  TerminatedError,
  UncaughtError,
  current,
  runCode,
  unwrap,
  type CallOptions,
  type CellExecution,
  type CellExecutionResult,
  type CellOptions,
  type CodeExecution,
  type CodeExecutionError,
  type CodeExecutionLog,
  type CodeExecutionOptions,
  type CodeExecutionResult,
  type Confinement,
  type RuntimeOptions,
  type SessionName,
  type SessionOptions,
  type SessionUpdate,
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
  Same<Log, CodeExecutionLog>,
  Same<Failure, CodeExecutionError>,
] = [true, true, true];
void same;

// A handle is a contract's handle with two more methods.
const handle: Execution = runCode('export default 1');
const caught: Promise<CodeExecutionResult> = runCode('').catch(() => { throw new Error(); });
const last: Promise<CodeExecutionResult> = runCode('').finally(() => {});
interface Tools {
  search(word: string): Promise<string[]>;
}
const tools: Tools = { search: async (word) => [word] };
await runCode('', { globals: tools, imports: { tools } });
const awaited: CodeExecutionResult = await runCode('', { globals: { n: 1 } } satisfies CodeExecutionOptions);
const state: { runCode(source: string, options?: Options): Execution } = { runCode };
void [handle, caught, last, awaited, state];

// A result is one of the contract, and its status tells which field it has.
const result: Result = awaited;
const message: string = awaited.status === 'success' ? String(awaited.result) : awaited.error.message;
const failed: string = 'error' in result && awaited.error !== undefined ? awaited.error.name : awaited.status;
// @ts-expect-error A run that succeeded has no error.
awaited.error.message;
void [result, message, failed];

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
const codes: ['QUEUE_FULL', 'RUNTIME_CLOSED'] = [new QueueFullError().code, new RuntimeClosedError().code];
const fetched: () => Promise<Response> = () => fetch('http://127.0.0.1/', { signal: current().signal });
const signal: AbortSignal = current().signal;
void [run, settled, workers, missing, closed, refused, codes, fetched, signal];

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

const sessionOptions: SessionOptions = { imports: { a: { b: 1 } }, modules: { './a.ts': '' }, globals: { n: 1 }, language: 'javascript', memoryLimitBytes: 1, report: () => {}, cells: 'queue', checkpointBytes: 0 };
const session: Session = new Session(sessionOptions);
const other: Session = runtime.session();
const cellOptions: CellOptions = { filename: 'a.ts', language: 'typescript', report: () => {}, timeoutMs: 1, signal: AbortSignal.abort() };
const cell: CellExecution = session.run('1', cellOptions);
const asRun: CodeExecution = cell;
const cellResult: CellExecutionResult = await cell;
const asResult: CodeExecutionResult = cellResult;
const number: number = unwrap<number>(cellResult);
const callOptions: CallOptions = { name: 'f', timeoutMs: 1, report: () => {}, signal: AbortSignal.abort() };
const calls: CellExecution[] = [session.call('f', 1, 2), session.call(callOptions, 1)];
const update: SessionUpdate = { globals: { a: null, b: 1 }, imports: { c: null, d: { e: 1 } }, modules: { './f.ts': null } };
const updated: void = session.update(update);
const names: SessionName[] = await session.names();
const fork: Session = await session.fork();
const ends: Promise<void>[] = [session.reset(), fork.close(), fork[Symbol.asyncDispose]()];
const kept: 'kept' | 'rolledBack' | 'reset' = cellResult.session;
const shown: (string | number | undefined)[] = [cellResult.text, cellResult.uncloned, cellResult.valueFrom, names[0]?.type, names[0]?.size];
void [other, asRun, asResult, number, calls, updated, ends, kept, shown];

// @ts-expect-error an option that does not exist
session.run('1', { timeout: 1 });
// @ts-expect-error a way to run cells that does not exist
new Session({ cells: 'parallel' });
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
