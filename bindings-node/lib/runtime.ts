// What outlives a run.
//
// In: caps and sizes. Out: a place to run code in, apart from the default one. Checks of values are
// the core's.

import type { CodeExecution, CodeExecutionOptions, Stats } from '../index.js';
import { bridge, folder, native, onClosed } from './bridge.js';
import { misuse } from './misuse.js';
import type { Misuse, NativeRuntime } from './native.js';
import { readRuntimeOptions } from './options.js';
import { start } from './run-code.js';

export class Runtime {
  readonly #native: NativeRuntime;
  #closed: Promise<void> | undefined;
  readonly runCode: (source: string, options?: CodeExecutionOptions) => CodeExecution;

  constructor(options?: unknown) {
    const opened = native.openRuntime(readRuntimeOptions(options), folder);
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
