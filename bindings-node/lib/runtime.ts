// What outlives a run.
//
// In: caps and sizes. Out: a place to run code in, apart from the default one. Checks of values are
// the core's.

import type { CodeExecution, CodeExecutionOptions, Stats } from '../index.js';
import { bridge, folder, native, onClosed } from './bridge.js';
import { misuse } from './misuse.js';
import type { Misuse, NativeRuntime } from './native.js';
import { object, option, optional, refuseUnknown, wrongType } from './options.js';
import { start } from './run-code.js';

const NUMBERS = [
  'safetyCapMs', 'maxConcurrentRuns', 'maxQueuedRuns', 'maxStuckThreads', 'readyIsolates', 'compileCacheBytes',
  'runsPerWorker', 'workerIdleMs',
] as const;
const RUNTIME_OPTIONS = new Set<string>(['isolation', 'worker', ...NUMBERS]);

export class Runtime {
  readonly #native: NativeRuntime;
  #closed: Promise<void> | undefined;
  readonly runCode: (source: string, options?: CodeExecutionOptions) => CodeExecution;

  constructor(options?: unknown) {
    const opened = native.openRuntime(readRuntimeOptions(options));
    if ('message' in opened) throw misuse(opened as Misuse);
    this.#native = opened as NativeRuntime;
    // Own and bound: it works when taken off the object, as the free function does.
    this.runCode = (source, runOptions) => start(this.#native, source, runOptions);
  }

  close(): Promise<void> {
    this.#closed ??= new Promise((resolve) => {
      native.close(bridge, this.#native, onClosed(resolve));
    });
    return this.#closed;
  }

  stats(): Stats {
    return this.#native.stats() as unknown as Stats;
  }
}

function readRuntimeOptions(options: unknown): Record<string, unknown> {
  if (options === undefined) return {};
  const bag = object(options, 'options');
  refuseUnknown('runtime', RUNTIME_OPTIONS, bag);
  const read = { __proto__: null, workerFolder: folder } as unknown as Record<string, unknown>;
  const isolation = option(bag, 'isolation');
  const worker = option(bag, 'worker');
  if (isolation !== undefined && isolation !== 'thread' && isolation !== 'process') {
    wrongType('isolation', "'thread' or 'process'", isolation);
  }
  if (isolation !== undefined) read['isolation'] = isolation;
  if (optional(worker, 'string', 'worker') !== undefined) read['worker'] = worker;
  for (const name of NUMBERS) {
    const value = optional(option(bag, name), 'number', name);
    if (value !== undefined) read[name] = value;
  }
  return read;
}
