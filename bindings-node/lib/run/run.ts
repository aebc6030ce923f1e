// One run, on the thread that started it.
//
// In: the events of its sandbox. Out: answers, the reports so far and the result. Host functions run here, in the
// asynchronous context of the `runCode` call. No host function of a run starts after a call of `terminate`. Calls for
// which a cell does not wait are calls of its session: they start unless the cell is undone.

import { types } from 'node:util';

import type { AbortSignalLike, CellExecutionResult, CodeExecutionResult } from '../../index.js';
import { bridge, native } from '../addon/connection.js';
import { REPORT_SINK } from '../addon/wire.js';
import { complete } from '../crossing/completion.js';
import { MessageReader, type Recipient } from '../crossing/message-reader.js';
import { endOfSlice, start } from '../crossing/slices.js';
import { RunContext } from './current.js';
import type { EventHandler } from './events.js';
import { OutcomeReading } from './outcome.js';
import { reasonText } from './reason.js';
import { Reports } from './reports.js';
import type { Sandbox } from './sandbox.js';
import { unwatch, watch } from './signals.js';
import type { Throws } from './throws.js';

/** In place of the reports of a run that has settled. */
const NO_REPORTS = new Reports();

/** Receives the result of a run. */
export type Resolve = (result: CodeExecutionResult) => void;

export class Run implements EventHandler, Recipient {
  /** The native side's number of this run; 0 until the run has started. */
  number = 0;
  running = true;
  sandbox: Sandbox;
  private sink: Function | undefined;
  private resolve: Resolve | undefined;
  private reports: Reports;
  private reportsDelivered = 0;
  private terminating = false;
  private context: RunContext | undefined;
  private signal: AbortSignalLike | undefined;
  private readonly abort = (): void => this.terminate(reasonText(this.signal?.reason));

  constructor(sandbox: Sandbox, sink: Function | undefined, reports: Reports, resolve: Resolve | undefined) {
    this.sandbox = sandbox;
    this.sink = sink;
    this.reports = reports;
    this.resolve = resolve;
  }

  /** Its place in the order of cells, if it is a cell. */
  protected get place(): number {
    return 0;
  }

  /** The place of the cell that receives answers; 0 if the whole session does. */
  protected get receiver(): number {
    return 0;
  }

  get throws(): Throws {
    return this.sandbox.throws;
  }

  /** Records that the run has started under that number. */
  started(number: number): void {
    this.number = number;
    // Without a host function nothing runs in the context. A promise may settle with one later.
    if (this.sink !== undefined || this.sandbox.hasHostCode) this.enterContext();
  }

  /** Has host functions run in the asynchronous context of this call. */
  protected enterContext(): void {
    this.context ??= new RunContext('isolane.run');
  }

  get isTerminated(): boolean {
    return this.terminating;
  }

  ended(): Error {
    return this.sandbox.ended();
  }

  terminate(reason: string | undefined): void {
    if (!this.running) return;
    this.terminating = true;
    native.terminate(bridge(), this.number, reason);
  }

  /** Ends it when the signal is aborted, which may have happened since the request was written. */
  endsWith(signal: AbortSignalLike): void {
    this.signal = signal;
    if (signal.aborted) {
      this.abort();
      return;
    }
    try {
      watch(signal, this.abort);
    } catch (thrown) {
      // Nobody gets to know the run.
      this.terminate(undefined);
      throw thrown;
    }
  }

  /** Reads the reports that have been made meanwhile. */
  readReports(): void {
    if (!this.running || this.sink === undefined) return;
    const reader = new MessageReader(native.reportsSince(bridge(), this.number, this.reports.count));
    for (let left = reader.u32(); left > 0; left -= 1) this.reports.read(reader, this);
  }

  // Owners, for the decoder.

  hostFunction(number: number): Function {
    return this.sandbox.returned(number);
  }

  sandboxFunction(number: number, name: string): unknown {
    return this.sandbox.sandboxFunctions.fn(number, name, this.place);
  }

  sandboxPromise(number: number): unknown {
    return this.sandbox.promises.sandboxPromise(number, this.place);
  }

  // Events.

  called(fn: number, call: number, reader: MessageReader, isOld: boolean): void {
    const number = this.throws.numberCall();
    if (fn === REPORT_SINK) {
      this.reported(call, number, reader);
      return;
    }
    const isLate = isOld || reader.isLarge;
    reader.read(this, 'arguments', (ok, args) => {
      this.throws.isCalled();
      this.answer(call, fn, number, ok, args, () => {
        // The run may have settled while the arguments were read.
        if (isLate && !native.running(bridge(), this.number)) throw this.ended();
        return this.invoke(this.sandbox.called(fn), args as unknown[]);
      });
    });
  }

  asyncCalled(fn: number, promise: number, reader: MessageReader, isOld: boolean): void {
    if ((isOld || this.terminating) && !this.startsCalls()) {
      reader.skip(this);
      return;
    }
    const { isLarge } = reader;
    reader.read(this, 'arguments', (ok, args) => {
      // The same for the time in which the arguments were read.
      if (!this.sandbox.running || ((isLarge || this.terminating) && !this.startsCalls())) return;
      this.start(fn, promise, ok, args);
    });
  }

  /** Starts an asynchronous host function. If not `ok`, the arguments could not be read, and `args` says why. */
  protected start(fn: number, promise: number, ok: boolean, args: unknown): void {
    this.throws.isCalled();
    this.inContext(() => {
      let answer: Promise<unknown>;
      try {
        if (!ok) throw args;
        // A compromised worker may start a function that is not asynchronous and returns any value.
        answer = Promise.resolve(this.invoke(this.sandbox.called(fn), args as unknown[], this.refusesStarts));
      } catch (thrown) {
        answer = Promise.reject(thrown);
      }
      this.sandbox.gives(this.receiver, () => this.sandbox.promises.watchAnswer(promise, answer, fn));
    });
  }

  /** Whether calls for which the sandbox does not wait are refused. */
  protected get refusesStarts(): boolean {
    return this.terminating;
  }

  /** Whether calls start for which the sandbox does not wait. Nobody waits for their answers once the run was ended. */
  private startsCalls(): boolean {
    return native.startsCalls(bridge(), this.number);
  }

  functionSettled(call: number, ok: boolean, reader: MessageReader): void {
    reader.read(this, ok ? 'result' : 'error', (read, value) => this.sandbox.sandboxFunctions.settle(call, ok && read, value));
  }

  promiseSettled(promise: number, ok: boolean, reader: MessageReader): void {
    reader.read(this, ok ? 'result' : 'error', (read, value) => this.sandbox.promises.settle(promise, ok && read, value));
  }

  settled(reader: MessageReader): void {
    const reading = new OutcomeReading(reader, this, this.reports, this.reportsDelivered, (result) => this.finish(result));
    // The bytes of the reader are valid in this turn only; a reading that takes longer copies them.
    if (!reading.step(endOfSlice())) start(reading);
  }

  executed(session: CellExecutionResult['session']): void {
    // Of the result, a cell needs the effect on its session alone.
    this.finish({ session } as CellExecutionResult);
  }

  sessionEnded(): void {
    this.sandbox.end();
  }

  /** Lets go of everything, because the run has not started. */
  abandon(): void {
    this.running = false;
    this.endSandbox();
    this.letGo();
  }

  private finish(result: CodeExecutionResult): void {
    const { resolve, context, sandbox } = this;
    this.running = false;
    this.endSandbox(result);
    this.letGo();
    resolve?.(result);
    // Last, because it calls code of the host.
    if (context !== undefined) this.leave(context, result, sandbox);
  }

  /** Aborts the signal of the host's calls if the run was ended: a run that ends by itself lets them go on. */
  protected leave(context: RunContext, { status, error }: CodeExecutionResult, _: Sandbox): void {
    if (status === 'terminated' || status === 'memory') context.abort(`the run was ended: ${error.message}`);
  }

  /** Ends the sandbox, or the part of it that is of this run, which has settled, or has not started if there is no result. */
  protected endSandbox(result?: CodeExecutionResult): void {
    if (result === undefined) this.sandbox.abandon();
    else this.sandbox.end();
  }

  /** The caller may keep the run, so it must hold nothing more. */
  protected letGo(): void {
    this.context?.emitDestroy();
    if (this.signal !== undefined) unwatch(this.signal, this.abort);
    this.signal = undefined;
    this.sink = undefined;
    this.resolve = undefined;
    this.reports = NO_REPORTS;
    this.context = undefined;
  }

  /** The sandbox reported a value. `reportsSoFar` may have read the value before. */
  protected reported(call: number, number: number, reader: MessageReader): void {
    const index = this.reportsDelivered;
    this.reportsDelivered += 1;
    const deliver = (): void => {
      this.throws.isCalled();
      this.answer(call, REPORT_SINK, number, true, undefined, () => this.invoke(this.sink, [this.reports.get(index)]));
    };
    if (index < this.reports.count) {
      reader.skip(this);
      deliver();
    } else {
      reader.read(this, 'report', (ok, value) => {
        this.reports.add(ok, value);
        deliver();
      });
    }
  }

  /**
   * Answers the `number`-th call, one of the function `fn`, with the completion of `act`. If not `ok`, the arguments could not be read, and the
   * sandbox throws `failure`.
   */
  protected answer(call: number, fn: number, number: number, ok: boolean, failure: unknown, act: () => unknown): void {
    this.inContext(() => {
      let answered = ok;
      let value = failure;
      if (ok) {
        try {
          value = awaitable(act());
        } catch (thrown) {
          answered = false;
          value = thrown;
        }
      }
      const reply = (): unknown => complete(this.sandbox, fn, answered, value, (...message) => native.reply(bridge(), call, ...message));
      this.throws.keepOfCall(number, this.sandbox.gives(this.receiver, reply));
    });
  }

  /**
   * Runs `act` in the asynchronous context of the `runCode` call: host functions, and the code of their values, such as
   * getters.
   */
  private inContext(act: () => void): void {
    const context = this.callContext;
    if (context === undefined) act();
    else context.runInAsyncScope(act);
  }

  protected get callContext(): RunContext | undefined {
    return this.context;
  }

  protected invoke(fn: Function | undefined, args: unknown[], refuses = this.terminating): unknown {
    if (refuses || fn === undefined) throw this.ended();
    // With `Reflect.apply`: spreading tens of thousands of arguments through another call would overflow the stack.
    return Reflect.apply(fn, undefined, args);
  }
}

/**
 * A promise for a thenable; any other value as it is. The `then` of the thenable is read once, and called on a later
 * turn. A Proxy is not read here; the encoder refuses it later.
 */
function awaitable(value: unknown): unknown {
  if (value === null || (typeof value !== 'object' && typeof value !== 'function')) return value;
  if (types.isPromise(value) || types.isProxy(value)) return value;
  const { then } = value as { then?: unknown };
  if (typeof then !== 'function') return value;
  return Promise.resolve().then(() => new Promise((...settlers) => { Reflect.apply(then, value, settlers); }));
}
