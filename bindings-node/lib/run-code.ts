// The start of a run.
//
// In: a source and options. Out: a handle. Misuse throws before the run starts.

import type { CodeExecution, CodeExecutionResult } from '../index.js';
import { attach, borrowEncoder, bridge, native, returnEncoder } from './bridge.js';
import { Execution } from './execution.js';
import { misuse } from './misuse.js';
import type { NativeRuntime } from './native.js';
import { readOptions, wrongType, writeRequest } from './options.js';
import { Reports } from './reports.js';
import { Run } from './run.js';
import { Sandbox } from './sandbox.js';

/** Starts a run in `runtime`, or in the default runtime of the process. */
export function start(runtime: NativeRuntime | null, source: unknown, options: unknown): CodeExecution {
  if (typeof source !== 'string') wrongType('source', 'a string', source);
  const read = readOptions(options);
  let resolve!: (result: CodeExecutionResult) => void;
  const result = new Promise<CodeExecutionResult>((settle) => {
    resolve = settle;
  });
  const reports = new Reports();
  const sandbox = new Sandbox(runtime);
  const run = new Run(sandbox, read.report, reports, resolve);
  const encoder = borrowEncoder();
  try {
    writeRequest(encoder, source, read, sandbox);
    const started = native.start(bridge, runtime, encoder.bytes, encoder.at, encoder.blobs, sandbox.natives);
    if (typeof started !== 'number') throw misuse(started);
    sandbox.started(started);
    run.started(started);
    attach(started, run);
  } catch (failure) {
    run.abandon();
    throw failure;
  } finally {
    returnEncoder(encoder);
  }
  return new Execution(run, result, reports);
}

export function runCode(source: unknown, options?: unknown): CodeExecution {
  return start(null, source, options);
}
