// One run, on the thread that started it.
//
// In: the events of its sandbox. Out: answers, the reports so far and the result. Host functions run here, in the
// asynchronous context of the `runCode` call. No host function starts after a call of `terminate`.

import { AsyncResource } from 'node:async_hooks';
import { types } from 'node:util';

import type { CodeExecutionResult } from '../index.js';
import { bridge, native } from './bridge.js';
import { complete } from './completion.js';
import type { Owners } from './decode.js';
import type { Numbering } from './encode.js';
import { HostFunctions } from './host-functions.js';
import { MessageReader } from './message-reader.js';
import type { NativeFunction, NativeRuntime, NativeTable } from './native.js';
import { OutcomeReading } from './outcome.js';
import { Promises } from './promises.js';
import { Reports } from './reports.js';
import { SandboxFunctions, ended } from './sandbox-functions.js';
import { endOfSlice, start } from './slices.js';
import { Throws } from './throws.js';
import { REPORT_SINK } from './wire.js';

/** In place of the reports of a run that has settled. */
const NO_REPORTS = new Reports();

export class Run implements Numbering, Owners {
  /** The native side's number of this run; 0 until the run has started. */
  number = 0;
  running = true;
  private hasStarted = false;
  /** Kept while the run is running: a runtime that is collected ends its processes. */
  runtime: NativeRuntime | null;
  private sink: Function | undefined;
  private resolve: ((result: CodeExecutionResult) => void) | undefined;
  // Most runs need few of these, so each is made at its first use.
  private madeHostFunctions: HostFunctions | undefined;
  private madePromises: Promises | undefined;
  private madeSandboxFunctions: SandboxFunctions | undefined;
  private madeThrows: Throws | undefined;
  private reports: Reports;
  private reportsDelivered = 0;
  private terminating = false;
  private context: AsyncResource | undefined;

  constructor(
    runtime: NativeRuntime | null,
    sink: Function | undefined,
    reports: Reports,
    resolve: (result: CodeExecutionResult) => void,
  ) {
    this.runtime = runtime;
    this.sink = sink;
    this.reports = reports;
    this.resolve = resolve;
  }

  get hostFunctions(): HostFunctions {
    return (this.madeHostFunctions ??= new HostFunctions());
  }

  get promises(): Promises {
    return (this.madePromises ??= new Promises(this));
  }

  get sandboxFunctions(): SandboxFunctions {
    return (this.madeSandboxFunctions ??= new SandboxFunctions(this));
  }

  get throws(): Throws {
    return (this.madeThrows ??= new Throws());
  }

  /** The functions that are answered in Rust, if the options have any. */
  get natives(): NativeTable | undefined {
    return this.madeHostFunctions?.natives;
  }

  /** Records that the run has started under that number. */
  started(number: number): void {
    this.number = number;
    this.hasStarted = true;
    // Without a host function nothing runs in the context. A promise may settle with one later.
    if (this.madeHostFunctions?.hasFunctions === true || this.sink !== undefined || this.madePromises !== undefined) {
      this.context = new AsyncResource('isolane.run', { requireManualDestroy: true });
    }
  }

  /** Whether the caller has called `terminate`. */
  get isTerminated(): boolean {
    return this.terminating;
  }

  terminate(reason: string | undefined): void {
    if (!this.running) return;
    this.terminating = true;
    native.terminate(bridge, this.number, reason);
  }

  /** Reads the reports that have been made meanwhile. */
  readReports(): void {
    if (!this.running || this.sink === undefined) return;
    const reader = new MessageReader(native.reportsSince(bridge, this.number, this.reports.count));
    for (let left = reader.u32(); left > 0; left -= 1) this.reports.read(reader, this);
  }

  // Numbering and Owners, for the encoder and the decoder.

  hostFunction(what: Function): number;
  hostFunction(what: number): Function;
  hostFunction(what: Function | number): Function | number {
    return typeof what === 'number' ? this.hostFunctions.known(what) : this.hostFunctions.number(what);
  }

  /** The number of a function that is answered in Rust. */
  nativeFunction(fn: NativeFunction): number {
    return this.hostFunctions.nativeNumber(fn, this.hasStarted ? this.number : undefined);
  }

  sandboxFunction(fn: Function): number | undefined;
  sandboxFunction(number: number, name: string): unknown;
  sandboxFunction(what: Function | number, name = ''): unknown {
    return typeof what === 'number' ? this.sandboxFunctions.fn(what, name) : this.sandboxFunctions.numberOf(what);
  }

  hostPromise(promise: Promise<unknown>): number {
    return this.promises.number(promise);
  }

  sandboxPromise(number: number): unknown {
    return this.promises.sandboxPromise(number);
  }

  // Events.

  /** The sandbox called a host function and waits for the answer. */
  called(fn: number, call: number, reader: MessageReader): void {
    const number = this.throws.numberCall();
    if (fn === REPORT_SINK) {
      this.reported(call, number, reader);
      return;
    }
    const { isLarge } = reader;
    reader.read(this, 'arguments', (ok, args) => {
      this.throws.isCalled();
      this.answer(call, number, ok, args, () => {
        // The run may have settled while the arguments were read.
        if (isLarge && !native.running(bridge, this.number)) throw ended();
        return this.invoke(this.madeHostFunctions?.fn(fn), args as unknown[]);
      });
    });
  }

  /** The sandbox called an asynchronous host function and continues. */
  asyncCalled(fn: number, promise: number, reader: MessageReader): void {
    reader.read(this, 'arguments', (ok, args) => {
      this.throws.isCalled();
      this.inContext(() => {
        let answer: Promise<unknown>;
        try {
          if (!ok) throw args;
          // A compromised worker may start a function that is not asynchronous and returns any value.
          answer = Promise.resolve(this.invoke(this.madeHostFunctions?.fn(fn), args as unknown[]));
        } catch (thrown) {
          answer = Promise.reject(thrown);
        }
        this.promises.watch(promise, answer);
      });
    });
  }

  functionSettled(call: number, ok: boolean, reader: MessageReader): void {
    reader.read(this, ok ? 'result' : 'error', (read, value) => this.sandboxFunctions.settle(call, ok && read, value));
  }

  promiseSettled(promise: number, ok: boolean, reader: MessageReader): void {
    reader.read(this, ok ? 'result' : 'error', (read, value) => this.promises.settle(promise, ok && read, value));
  }

  settled(reader: MessageReader): void {
    const reading = new OutcomeReading(reader, this, this.reports, this.reportsDelivered, (result) => this.finish(result));
    // The bytes of the reader are valid in this turn only; a reading that takes longer copies them.
    if (!reading.step(endOfSlice())) start(reading);
  }

  /** Lets go of everything, because the run has not started. */
  abandon(): void {
    this.running = false;
    this.madePromises?.end();
    this.letGo();
  }

  private finish(result: CodeExecutionResult): void {
    const { resolve } = this;
    this.running = false;
    this.madeSandboxFunctions?.end();
    this.madePromises?.end();
    this.context?.emitDestroy();
    this.letGo();
    resolve?.(result);
  }

  /** Functions and promises of the sandbox, which the caller may keep, hold the run. So it must hold nothing more. */
  private letGo(): void {
    this.runtime = null;
    this.sink = undefined;
    this.resolve = undefined;
    this.reports = NO_REPORTS;
    this.madeThrows = undefined;
    this.madeHostFunctions = undefined;
    this.context = undefined;
  }

  /** The sandbox reported a value. `reportsSoFar` may have read the value before. */
  private reported(call: number, number: number, reader: MessageReader): void {
    const index = this.reportsDelivered;
    this.reportsDelivered += 1;
    const deliver = (): void => {
      this.throws.isCalled();
      this.answer(call, number, true, undefined, () => this.invoke(this.sink, [this.reports.get(index)]));
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
   * Answers the `number`-th call with the completion of `act`. If not `ok`, the arguments could not be read, and the
   * sandbox throws `failure`.
   */
  private answer(call: number, number: number, ok: boolean, failure: unknown, act: () => unknown): void {
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
      this.throws.keepOfCall(number, complete(this, answered, value, (...message) => native.reply(bridge, call, ...message)));
    });
  }

  /**
   * Runs `act` in the asynchronous context of the `runCode` call: host functions, and the code of their values, such as
   * getters.
   */
  private inContext(act: () => void): void {
    if (this.context === undefined) act();
    else this.context.runInAsyncScope(act);
  }

  private invoke(fn: Function | undefined, args: unknown[]): unknown {
    if (this.terminating || fn === undefined) throw ended();
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
