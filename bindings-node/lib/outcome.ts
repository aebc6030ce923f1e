// What a run came to, as the caller sees it.
//
// In: the outcome as the native side wrote it; the reports that were read already. Out: a result of
// the contract: `result` is an own key on success alone, `error` only otherwise, and no field is
// there without a value. Words and texts are the core's.

import type { CodeExecutionError, CodeExecutionLog, CodeExecutionResult } from '../index.js';
import type { Mail } from './bridge.js';
import type { Reports } from './reports.js';
import type { Run } from './run.js';

const enum Has {
  Result = 1,
  Error = 2,
  MemoryUsed = 4,
}

const enum HasDetail {
  Stack = 1,
  Specifier = 2,
  Filename = 4,
  Line = 8,
  Column = 16,
}

/** Reads the outcome; `reports` grows to all there were. */
export function readOutcome(mail: Mail, run: Run, reports: Reports): CodeExecutionResult {
  const has = mail.u8();
  const outcome = { status: mail.text() } as CodeExecutionResult;
  const durationMs = mail.f64();
  const memoryUsedBytes = has & Has.MemoryUsed ? mail.f64() : undefined;
  if (has & Has.Result) readResult(mail, run, outcome);
  readReports(mail, run, reports);
  outcome.reports = reports.all();
  outcome.logs = readLogs(mail, run);
  if (has & Has.Error) outcome.error = readError(mail);
  outcome.durationMs = durationMs;
  if (memoryUsedBytes !== undefined) outcome.memoryUsedBytes = memoryUsedBytes;
  return outcome;
}

/** The outcome when the real one cannot be told, such as one that this process has no memory left for. */
export function failedOutcome(failure: unknown, reports: unknown[]): CodeExecutionResult {
  return { status: 'error', reports, logs: [], error: named(failure), durationMs: 0 };
}

/** A result that this host cannot hold is one that cannot be cloned. */
function readResult(mail: Mail, run: Run, outcome: CodeExecutionResult): void {
  try {
    outcome.result = mail.next(run, 'result');
  } catch (failure) {
    outcome.status = 'error';
    outcome.error = named(failure);
  }
}

function named(failure: unknown): CodeExecutionError {
  const { name, message } = failure instanceof Error ? failure : new Error(String(failure));
  return { name, message };
}

function readReports(mail: Mail, run: Run, reports: Reports): void {
  let index = mail.u32();
  for (let left = mail.u32(); left > 0; left -= 1) {
    if (index < reports.count) mail.skip();
    else reports.read(mail, run, 1);
    index += 1;
  }
}

function readLogs(mail: Mail, run: Run): CodeExecutionLog[] {
  const logs: CodeExecutionLog[] = [];
  for (let left = mail.u32(); left > 0; left -= 1) {
    const level = mail.text() as CodeExecutionLog['level'];
    const timestamp = mail.f64();
    logs.push({ level, args: readArgs(mail, run), timestamp });
  }
  return logs;
}

/** A log shows as text what this host cannot hold, all of it where it cannot be told apart. */
function readArgs(mail: Mail, run: Run): unknown[] {
  try {
    return mail.next(run, 'arguments', true) as unknown[];
  } catch (failure) {
    return [`[${named(failure).message}]`];
  }
}

function readError(mail: Mail): CodeExecutionError {
  const error: CodeExecutionError = { name: mail.text(), message: mail.text() };
  const has = mail.u8();
  if (has & HasDetail.Stack) error.stack = mail.text();
  if (has & HasDetail.Specifier) error.specifier = mail.text();
  if (has & HasDetail.Filename) error.filename = mail.text();
  if (has & HasDetail.Line) error.line = mail.u32();
  if (has & HasDetail.Column) error.column = mail.u32();
  return error;
}
