// The functions and promises that cross between the host and one sandbox: the one of a run, or the one of a session.
//
// In: functions and promises of the host, and numbers that the sandbox gave out. Out: numbers for the former, and
// functions and promises of the host for the latter.

import type { NativeFunction, Owner, NativeTable } from '../addon/native.js';
import { NO_FUNCTION } from '../crossing/encode.js';
import type { RunContext } from './current.js';
import { HostFunctions } from './host-functions.js';
import { Promises } from './promises.js';
import { SandboxFunctions } from './sandbox-functions.js';
import type { SandboxState } from './sandbox-state.js';
import { Throws } from './throws.js';

export class Sandbox implements SandboxState {
  number = 0;
  running = true;
  private hasStarted = false;
  /** Kept while it is running. */
  owner: Owner | null;
  // Most runs need few of these, so each is made at its first use.
  protected madeHostFunctions: HostFunctions | undefined;
  protected madePromises: Promises | undefined;
  protected madeSandboxFunctions: SandboxFunctions | undefined;
  private madeThrows: Throws | undefined;

  constructor(owner: Owner | null) {
    this.owner = owner;
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

  /** Whether code of the host may run for it: a function of the host, or a getter of a value that a promise settles with. */
  get hasHostCode(): boolean {
    return this.madeHostFunctions?.hasFunctions === true || this.madePromises !== undefined;
  }

  /** Records that it has started under that number. */
  started(number: number): void {
    this.number = number;
    this.hasStarted = true;
  }

  /** The host function with that number whose calls reach JavaScript. */
  called(fn: number): Function | undefined {
    return this.madeHostFunctions?.fn(fn);
  }

  /** The function with that number, which has come back from the sandbox. */
  returned(fn: number): Function {
    return this.hostFunctions.known(fn);
  }

  // Numbering, for the encoder.

  hostFunction(fn: Function, name: string): number {
    return this.hostFunctions.number(fn, name, this.receiver);
  }

  get receiver(): number {
    return 0;
  }

  gives<T>(_place: number, act: () => T): T {
    return act();
  }

  answerOf(fn: number): string {
    return fn === NO_FUNCTION ? 'result' : `the answer of ${this.hostFunctions.nameOf(fn)}`;
  }

  /** The number of a function that is answered in Rust. */
  nativeFunction(fn: NativeFunction): number {
    return this.hostFunctions.nativeNumber(fn, this.hasStarted ? this.number : undefined);
  }

  sandboxFunction(fn: Function): number | undefined {
    return this.sandboxFunctions.numberOf(fn);
  }

  hostPromise(promise: Promise<unknown>, fn: number): number {
    return this.promises.number(promise, fn);
  }

  holdForCall(): RunContext | undefined {
    return undefined;
  }

  releaseCall(_context: RunContext): void {}

  ended(): Error {
    return withoutStackObjects(new Error('the run has settled; nothing in its sandbox can be called any more'));
  }

  /** Rejects everything that waits for the sandbox, and lets go of everything. */
  end(): void {
    this.running = false;
    this.madeSandboxFunctions?.end();
    this.madePromises?.end();
    this.letGo();
  }

  /** As {@link end}, before it has started. */
  abandon(): void {
    this.running = false;
    this.madePromises?.end();
    this.letGo();
  }

  /** Functions and promises of the sandbox, which the caller may keep, hold this. So it must hold nothing more. */
  private letGo(): void {
    this.owner = null;
    this.madeThrows = undefined;
    this.madeHostFunctions = undefined;
  }
}

/** Until its stack is text, an error holds the objects on the stack, such as the reader of an outcome. */
export function withoutStackObjects(error: Error): Error {
  void error.stack;
  return error;
}
