// Runtimes of the caller's own.
//
// In: options. Out: a runtime beside the default one. The core checks the values of the options.

import type { CodeExecution, CodeExecutionOptions, Stats } from '../../index.js';
import { bridge, folder, native } from '../addon/connection.js';
import type { Misuse, NativeRuntime } from '../addon/native.js';
import { misuse } from '../crossing/misuse.js';
import { readDeclared } from '../crossing/options.js';
import { onAnswer } from '../run/events.js';
import { start } from '../run/run-code.js';
import { type Session, openSession } from './session.js';

/** The native side of a runtime, for a kit. */
export let nativeRuntime: (runtime: Runtime) => NativeRuntime;

export class Runtime {
  readonly #native: NativeRuntime;

  static {
    nativeRuntime = (runtime) => runtime.#native;
  }

  #closed: Promise<void> | undefined;
  readonly session: (options?: unknown) => Session;
  readonly runCode: (source: string, options?: CodeExecutionOptions) => CodeExecution;

  constructor(options?: unknown) {
    const opened = native.openRuntime(readDeclared('runtime', options), folder);
    if (Object.hasOwn(opened, 'message')) throw misuse(opened as Misuse);
    this.#native = opened as NativeRuntime;
    // Own, bound functions: the caller may detach them and call them as free functions.
    this.session = (sessionOptions) => openSession(this.#native, sessionOptions);
    this.runCode = (source, runOptions) => start(this.#native, source, runOptions);
  }

  close(): Promise<void> {
    this.#closed ??= new Promise((resolve) => {
      native.close(bridge(), this.#native, onAnswer(() => resolve()));
    });
    return this.#closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  stats(): Stats {
    return this.#native.stats() as unknown as Stats;
  }
}
