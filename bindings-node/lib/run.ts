// One run, from this thread's side.
//
// In: what its sandbox asks for, event by event. Out: answers, the reports so far, and in the end
// its result. Host functions run here, in the asynchronous context of the `runCode` call; none
// starts once the run has been told to end.

import { AsyncResource } from 'node:async_hooks';
import { types } from 'node:util';

import type { CodeExecutionResult } from '../index.js';
import { Mail, bridge, native } from './bridge.js';
import { complete } from './completion.js';
import type { Owners } from './decode.js';
import type { Numbering } from './encode.js';
import { failedOutcome, readOutcome } from './outcome.js';
import { Promises } from './promises.js';
import { Reports } from './reports.js';
import { SandboxFunctions, ended } from './sandbox-functions.js';

/** The number of the sink under the option `report`. */
const REPORT_SINK = 0xffff_ffff;

/** In the number of a function that crosses: the sandbox need not wait to hear that it answers with a promise. */
const ASYNC_FUNCTION = 0x8000_0000;

export class Run implements Numbering, Owners {
  /** The number under which the native side knows this run; set when it has started. */
  number = 0;
  running = true;
  readonly sandboxFunctions = new SandboxFunctions(this);
  private readonly promises = new Promises(this);
  private readonly sink: Function | undefined;
  private readonly resolve: (result: CodeExecutionResult) => void;
  private readonly numbers = new Map<Function, number>();
  private readonly functions: Function[] = [];
  private readonly reports = new Reports();
  private reportsDelivered = 0;
  private terminating = false;
  private context: AsyncResource | undefined;

  constructor(sink: Function | undefined, resolve: (result: CodeExecutionResult) => void) {
    this.sink = sink;
    this.resolve = resolve;
  }

  /** The run has started under that number. */
  started(number: number): void {
    this.number = number;
    // Without a function of the host nothing will ever be called, and the context is not needed.
    if (this.functions.length > 0 || this.sink !== undefined) {
      this.context = new AsyncResource('isolane.run', { requireManualDestroy: true });
    }
  }

  terminate(reason: string | undefined): void {
    if (!this.running) return;
    this.terminating = true;
    native.terminate(bridge, this.number, reason);
  }

  /** All reports so far, in call order, each the very value that the sink got. */
  reportsSoFar(): unknown[] {
    if (this.running && this.sink !== undefined) {
      const mail = new Mail(native.reportsSince(bridge, this.number, this.reports.count));
      this.reports.read(mail, this, mail.u32());
    }
    return this.reports.all();
  }

  // What the codec asks for.

  hostFunction(what: Function): number;
  hostFunction(what: number): Function;
  hostFunction(what: Function | number): Function | number {
    if (typeof what === 'number') return this.functions[what] as Function;
    const known = this.numbers.get(what);
    if (known !== undefined) return known;
    const place = this.functions.push(what) - 1;
    const number = isAsync(what) ? place + ASYNC_FUNCTION : place;
    this.numbers.set(what, number);
    return number;
  }

  sandboxFunction(fn: Function): number | undefined;
  sandboxFunction(number: number, name: string): unknown;
  sandboxFunction(what: Function | number, name = ''): unknown {
    return typeof what === 'number' ? this.sandboxFunctions.fn(what, name) : this.sandboxFunctions.numberOf(what);
  }

  hostPromise(promise: PromiseLike<unknown>): number;
  hostPromise(number: number): unknown;
  hostPromise(what: PromiseLike<unknown> | number): unknown {
    return typeof what === 'number' ? this.promises.ownPromise(what) : this.promises.number(what);
  }

  sandboxPromise(number: number): unknown {
    return this.promises.sandboxPromise(number);
  }

  // Events.

  /** The sandbox called a function of the host, and waits. */
  called(fn: number, call: number, mail: Mail): void {
    let ok = true;
    let value: unknown;
    try {
      if (fn === REPORT_SINK) value = this.report(mail);
      else value = this.invoke(this.functions[fn], mail.next(this, 'arguments') as unknown[]);
      if (isThenable(value)) value = Promise.resolve(value);
    } catch (thrown) {
      ok = false;
      value = thrown;
    }
    complete(this, ok, value, (...message) => native.reply(bridge, call, ...message));
  }

  /** The sandbox called an asynchronous function of the host, and goes on. */
  asyncCalled(fn: number, promise: number, mail: Mail): void {
    let answer: Promise<unknown>;
    try {
      // A worker that was taken over may start one that is none, which answers with anything.
      answer = Promise.resolve(this.invoke(this.functions[fn], mail.next(this, 'arguments') as unknown[]));
    } catch (thrown) {
      answer = Promise.reject(thrown);
    }
    this.promises.watch(promise, answer);
  }

  functionSettled(call: number, ok: boolean, mail: Mail): void {
    this.sandboxFunctions.settle(call, ok, () => mail.next(this, ok ? 'result' : 'error'));
  }

  promiseSettled(promise: number, ok: boolean, mail: Mail): void {
    this.promises.settle(promise, ok, () => mail.next(this, ok ? 'result' : 'error'));
  }

  settled(mail: Mail): void {
    let result: CodeExecutionResult;
    try {
      result = readOutcome(mail, this, this.reports);
    } catch (failure) {
      result = failedOutcome(failure, this.reports.all());
    }
    this.running = false;
    this.sandboxFunctions.end();
    this.promises.end();
    this.functions.length = 0;
    this.numbers.clear();
    this.context?.emitDestroy();
    this.resolve(result);
  }

  private invoke(fn: Function | undefined, args: unknown[]): unknown {
    if (this.terminating || fn === undefined) throw ended();
    // In one step: on the way through another call tens of thousands of arguments take up the stack.
    return this.context?.runInAsyncScope(() => Reflect.apply(fn, undefined, args));
  }

  /** The value may have been read before, by a look at the handle. */
  private report(mail: Mail): unknown {
    const index = this.reportsDelivered;
    this.reportsDelivered += 1;
    if (index < this.reports.count) mail.skip();
    else this.reports.read(mail, this, 1);
    return this.invoke(this.sink, [this.reports.get(index)]);
  }
}

/** Whether a function answers with a promise, whatever it does. */
function isAsync(fn: Function): boolean {
  return types.isAsyncFunction(fn) && !types.isGeneratorFunction(fn);
}

/** Whether a returned value is to be awaited. Looks at no Proxy: that one is refused later. */
function isThenable(value: unknown): boolean {
  if (value === null || (typeof value !== 'object' && typeof value !== 'function')) return false;
  if (types.isPromise(value)) return false;
  return !types.isProxy(value) && typeof (value as { then?: unknown }).then === 'function';
}
