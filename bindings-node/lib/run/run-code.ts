// The start of a run.
//
// In: a source and options. Out: a handle. Misuse throws before the run starts.

import type { CodeExecution, CodeExecutionResult } from '../../index.js';
import { bridge, native } from '../addon/connection.js';
import type { Misuse, NativeRuntime, NativeTable, Owner } from '../addon/native.js';
import type { Encoder } from '../crossing/encode.js';
import { borrowEncoder, returnEncoder } from '../crossing/encoders.js';
import { misuse } from '../crossing/misuse.js';
import { wrongType } from '../crossing/options.js';
import { attach } from './events.js';
import { Execution } from './execution.js';
import { type RunOptions, readOptions, writeRequest } from './options.js';
import { Reports } from './reports.js';
import { Run } from './run.js';
import { Sandbox } from './sandbox.js';

/** Starts a run from its request. */
export type Begin = (encoder: Encoder, natives: NativeTable | undefined) => number | Misuse;

/** Starts a run in `runtime`, or in the default runtime of the process. */
export function start(runtime: NativeRuntime | null, source: unknown, options: unknown): CodeExecution {
  const begin: Begin = (encoder, natives) =>
    native.start(bridge(), runtime, encoder.bytes, encoder.at, encoder.blobs, natives);
  return launch(source, readOptions(options), runtime, begin);
}

/** In place of the source of a run that was ended before its start: nothing of the source runs, and this does not end. */
const ENDED = 'for (;;) ;';

/** Starts a run with a native call. The run keeps `owner` while it is running. A tool has one argument. */
export function launch(source: unknown, read: RunOptions, owner: Owner | null, begin: Begin, isTool = false): CodeExecution {
  if (typeof source !== 'string') wrongType('source', 'a string', source);
  let resolve!: (result: CodeExecutionResult) => void;
  const result = new Promise<CodeExecutionResult>((settle) => {
    resolve = settle;
  });
  const reports = new Reports();
  const sandbox = new Sandbox(owner);
  const run = new Run(sandbox, read.report, reports, resolve);
  const encoder = borrowEncoder();
  try {
    writeRequest(encoder, read.signal?.aborted === true ? ENDED : source, read, sandbox, isTool);
    const started = begin(encoder, sandbox.natives);
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
  if (read.signal !== undefined) run.endsWith(read.signal);
  return new Execution(run, result, reports, isTool ? 'ToolExecution' : 'CodeExecution');
}

export function runCode(source: unknown, options?: unknown): CodeExecution {
  return start(null, source, options);
}
