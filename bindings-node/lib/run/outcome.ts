// The outcome of a run, as the caller's result.
//
// In: the outcome that the native side wrote, and the reports that have been read before. Out: a result of the
// contract: `result` is an own key only on success, `error` only otherwise, and a field without a value is
// absent. The core words all messages.

import type { CellExecutionResult, CodeExecutionError, CodeExecutionLog, CodeExecutionResult } from '../../index.js';
import { bridge, native } from '../addon/connection.js';
import { now } from '../addon/event-loop.js';
import { CauseKind, CellOutcomeFlag, ErrorFlag, OutcomeFlag } from '../addon/wire.js';
import { PAUSED } from '../crossing/decode.js';
import { MessageReader, type LargeMessage, type Recipient } from '../crossing/message-reader.js';
import { systemError } from '../crossing/misuse.js';
import type { Work } from '../crossing/slices.js';
import type { Reports } from './reports.js';
import type { Throws } from './throws.js';

/** The run that has settled. */
interface Settled extends Recipient {
  /** The values that its host functions threw, for the cause of an error. */
  readonly throws: Throws;
}

/** Reads an outcome and passes it to `done`: nearly always at once, and in slices if it is long. */
export class OutcomeReading implements Work {
  private readonly run: Settled;
  private readonly reports: Reports;
  private readonly done: (result: CodeExecutionResult) => void;
  private readonly steps: Generator<LargeMessage | undefined, CodeExecutionResult, unknown>;
  private message: LargeMessage | undefined;
  /** The part of a cell's result that a run does not have, once it has been read. */
  private cell: CellPart | undefined;
  /** The part of a system, once it has been read. */
  private extra: object | undefined;
  /** The time at which the slice of this turn ends. */
  private until = 0;

  /** `delivered` is the number of reports that went to the sink. `reports` receives the others. */
  constructor(reader: MessageReader, run: Settled, reports: Reports, delivered: number, done: (result: CodeExecutionResult) => void) {
    this.run = run;
    this.reports = reports;
    this.done = done;
    this.steps = this.read(reader, delivered);
  }

  step(until: number): boolean {
    this.until = until;
    let result: CodeExecutionResult;
    try {
      for (;;) {
        const next = this.message === undefined ? this.steps.next() : this.goOn(this.message, until);
        if (next === undefined) return false;
        if (next.done === true) {
          result = next.value;
          break;
        }
        this.message = next.value;
        if (this.isOver()) return false;
      }
    } catch (failure) {
      result = Object.assign(failedOutcome(failure, this.reports.all()), this.cell, this.extra);
    }
    this.done(result);
    return true;
  }

  /** Continues with a large message; undefined if it pauses. After its end, continues with the outcome. */
  private goOn(message: LargeMessage, until: number): IteratorResult<LargeMessage | undefined, CodeExecutionResult> | undefined {
    let value: unknown;
    try {
      value = message.go(until);
      if (value === PAUSED) return undefined;
    } catch (failure) {
      message.drop();
      return this.steps.throw(failure);
    }
    message.drop();
    return this.steps.next(value);
  }

  /** Yields each large message, and receives its value. Yields undefined when the slice of this turn is over. */
  private *read(shared: MessageReader, delivered: number): Generator<LargeMessage | undefined, CodeExecutionResult, unknown> {
    const has = shared.u8();
    const reader = has & OutcomeFlag.Long ? shared.copy() : shared;
    const outcome = { status: reader.text() } as CodeExecutionResult;
    const durationMs = reader.f64();
    const memoryUsedBytes = has & OutcomeFlag.MemoryUsed ? reader.f64() : undefined;
    const error = has & OutcomeFlag.Error ? readError(reader, this.run) : undefined;
    const cell = has & OutcomeFlag.Cell ? (this.cell = readCell(reader)) : undefined;
    if (has & OutcomeFlag.Extra) {
      this.extra = (reader.isLarge ? yield reader.large(this.run, 'result') : reader.next(this.run, 'result')) as object;
    }
    if (has & OutcomeFlag.Result) {
      try {
        outcome.result = reader.isLarge ? yield reader.large(this.run, 'result') : reader.next(this.run, 'result');
      } catch (failure) {
        if (cell !== undefined) cell.uncloned = named(failure).message;
        else {
          // This host cannot represent the result, so the run ends as if the result could not be cloned.
          outcome.status = 'error';
          outcome.error = named(failure);
          Object.defineProperty(outcome.error, 'cause', { value: failure, configurable: true, writable: true });
        }
      }
    }
    const logs: CodeExecutionLog[] = [];
    let index = delivered;
    for (let part = reader; ; part = new MessageReader(native.outputPart(bridge(), this.run.number))) {
      for (let left = part.u32(); left > 0; left -= 1) {
        if (index < this.reports.count) part.skip(this.run);
        else if (part.isLarge) yield* this.report(part.large(this.run, 'report'));
        else this.reports.read(part, this.run);
        index += 1;
        if (left > 1 && this.isOver()) {
          part = part.copy();
          yield undefined;
        }
      }
      for (let left = part.u32(); left > 0; left -= 1) {
        const level = part.text() as CodeExecutionLog['level'];
        const timestamp = part.f64();
        logs.push({ level, args: yield* this.args(part), timestamp });
        if (left > 1 && this.isOver()) {
          part = part.copy();
          yield undefined;
        }
      }
      if (part.u8() === 0) break;
      yield undefined;
    }
    outcome.reports = this.reports.all();
    outcome.logs = logs;
    if (error !== undefined) outcome.error = error;
    outcome.durationMs = durationMs;
    if (memoryUsedBytes !== undefined) outcome.memoryUsedBytes = memoryUsedBytes;
    return Object.assign(outcome, cell, this.extra);
  }

  private isOver(): boolean {
    return now() >= this.until;
  }

  private *report(message: LargeMessage): Generator<LargeMessage, void, unknown> {
    try {
      this.reports.add(true, yield message);
    } catch (failure) {
      this.reports.add(false, failure);
    }
  }

  /** The arguments of a log. Text replaces a value that this host cannot represent, or all values on another error. */
  private *args(reader: MessageReader): Generator<LargeMessage, unknown[], unknown> {
    try {
      if (reader.isLarge) return (yield reader.large(this.run, 'arguments', true)) as unknown[];
      return reader.next(this.run, 'arguments', true) as unknown[];
    } catch (failure) {
      return [`[${named(failure).message}]`];
    }
  }
}

type CellPart = Pick<CellExecutionResult, 'session' | 'text' | 'uncloned' | 'valueFrom'>;

/** Reads the part of a cell's result that a run does not have. */
function readCell(reader: MessageReader): CellPart {
  const has = reader.u8();
  const cell = { session: reader.text() } as CellPart;
  if (has & CellOutcomeFlag.Text) cell.text = reader.text();
  if (has & CellOutcomeFlag.Uncloned) cell.uncloned = reader.text();
  if (has & CellOutcomeFlag.ValueFrom) cell.valueFrom = reader.text() as NonNullable<CellPart['valueFrom']>;
  return cell;
}

/**
 * Reads the cause into a property that is not enumerable, out of sight of copies, comparisons and printing. It is a
 * value of the host, of any kind.
 */
function readCause(reader: MessageReader, run: Settled, error: CodeExecutionError): void {
  const kind = reader.u8() as CauseKind;
  const number = reader.f64();
  let value: unknown;
  if (kind === CauseKind.System) value = systemError(reader.text(), number);
  else value = kind === CauseKind.Call ? run.throws.byCall(number) : run.throws.byPromise(number);
  if (value !== undefined) Object.defineProperty(error, 'cause', { value, configurable: true, writable: true });
}

/** The outcome if the real one cannot be read, for example because this process has no memory left for it. */
function failedOutcome(failure: unknown, reports: unknown[]): CodeExecutionResult {
  return { status: 'error', reports, logs: [], error: named(failure), durationMs: 0 };
}

function named(failure: unknown): CodeExecutionError {
  const { name, message } = failure instanceof Error ? failure : new Error(String(failure));
  return { name, message };
}

function readError(reader: MessageReader, run: Settled): CodeExecutionError {
  const error: CodeExecutionError = { name: reader.text(), message: reader.text() };
  const has = reader.u8();
  if (has & ErrorFlag.Stack) error.stack = reader.text();
  if (has & ErrorFlag.Specifier) error.specifier = reader.text();
  if (has & ErrorFlag.Filename) error.filename = reader.text();
  if (has & ErrorFlag.Line) error.line = reader.u32();
  if (has & ErrorFlag.Column) error.column = reader.u32();
  if (has & ErrorFlag.Cause) readCause(reader, run, error);
  return error;
}
