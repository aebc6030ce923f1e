// A cell of a session, and the code that runs between cells.
//
// In: the events of a cell, or those of functions of the sandbox that the host calls between cells. Out: as of a run,
// with the functions and promises of the session.

import type { CellExecutionResult, CodeExecutionResult } from '../../index.js';
import { bridge, native } from '../addon/connection.js';
import { REPORT_SINK } from '../addon/wire.js';
import type { MessageReader } from '../crossing/message-reader.js';
import { named } from '../crossing/refusals.js';
import type { RunContext } from '../run/current.js';
import { Reports } from '../run/reports.js';
import { type Resolve, Run } from '../run/run.js';
import { Sandbox } from '../run/sandbox.js';
import { CellThrows, type Throws } from '../run/throws.js';

/** The sandbox of the session of a cell. */
export interface CellSandbox extends Sandbox {
  /** The sink for reports of all cells. */
  readonly sink: Function | undefined;
  /** The place of the latest cell in the order of their calls. */
  readonly latest: number;
  /** Whether a cell has not settled. */
  readonly isBusy: boolean;
  /** The context of the call between cells that runs. */
  readonly context: RunContext | undefined;
  /** Takes a cell that has started, and returns its place in the order of cells. */
  begins(): number;
  /** The cell at that place has settled. */
  settles(cell: number, result: CellExecutionResult): void;
  /** Takes the context of a cell at that place, which is done, or of a call between cells. */
  keeps(context: RunContext, place: number): void;
}

/** In place of the sandbox of a cell that has settled, whose caller may keep it without the session. */
const NONE = new Sandbox(null);
NONE.abandon();

export class Cell extends Run {
  declare sandbox: CellSandbox;
  private cell = 0;
  private madeThrows: Throws | undefined;
  /** Starts of host functions that came after `terminate`. Whether the cell is undone shows at its end. */
  private late: (() => void)[] = [];

  constructor(sandbox: CellSandbox, sink: Function | undefined, reports: Reports, resolve: Resolve) {
    super(sandbox, sink ?? sandbox.sink, reports, resolve);
  }

  override get throws(): Throws {
    return (this.madeThrows ??= new CellThrows(this.sandbox.throws));
  }

  override started(number: number): void {
    super.started(number);
    // An update may hand over functions before it starts.
    if (this.sandbox.isBusy) this.enterContext();
    this.cell = this.sandbox.begins();
  }

  protected override get place(): number {
    return this.cell;
  }

  protected override get receiver(): number {
    return this.cell;
  }

  override ended(): Error {
    return named('Error', 'the cell has settled');
  }

  protected override start(fn: number, promise: number, ok: boolean, args: unknown): void {
    const start = (): void => super.start(fn, promise, ok, args);
    if (this.isTerminated && this.running && native.running(bridge(), this.number)) this.late.push(start);
    else start();
  }

  /** A call for which a cell does not wait is a call of the session. */
  protected override get refusesStarts(): boolean {
    return false;
  }

  protected override endSandbox(result?: CodeExecutionResult): void {
    if (result === undefined) return;
    const { session } = result as CellExecutionResult;
    this.sandbox.settles(this.cell, result as CellExecutionResult);
    const { late } = this;
    this.late = [];
    if (session === 'kept') for (const start of late) start();
  }

  /** Its calls belong to the session, unless the session is as if the cell had not been. */
  protected override leave(context: RunContext, result: CodeExecutionResult, sandbox: CellSandbox): void {
    const { session, error } = result as CellExecutionResult;
    if (session !== 'kept') context.abort(`the cell was ended: ${error?.message ?? session}`);
    else sandbox.keeps(context, this.cell);
  }

  protected override letGo(): void {
    super.letGo();
    this.late = [];
    this.madeThrows = undefined;
    (this as Run).sandbox = NONE;
  }
}

/** Receives the events of a session outside of its caller's cells. */
export class SessionEvents extends Run {
  declare sandbox: CellSandbox;
  private readonly sessionSink: Function | undefined;

  constructor(sandbox: CellSandbox) {
    super(sandbox, undefined, new Reports(), undefined);
    this.sessionSink = sandbox.sink;
  }

  override started(number: number): void {
    super.started(number);
    this.enterContext();
  }

  /** The session has ended. */
  ends(): void {
    const context = super.callContext;
    this.running = false;
    this.letGo();
    context?.abort('the session was closed');
  }

  protected override get place(): number {
    return this.sandbox.latest;
  }

  protected override get callContext(): RunContext | undefined {
    return this.sandbox.context ?? super.callContext;
  }

  /** Nobody reads these reports later, so they are not kept. */
  protected override reported(call: number, number: number, reader: MessageReader): void {
    reader.read(this, 'report', (ok, value) => {
      this.throws.isCalled();
      this.answer(call, REPORT_SINK, number, ok, value, () => this.invoke(this.sessionSink, [value]));
    });
  }
}
