// The state of a sandbox that its functions and promises depend on.
//
// In: functions and promises, whose numbers the encoder asks for. Out: whether the sandbox runs, its number, the cell that
// receives a value, and the error after its end.

import type { Numbering } from '../crossing/encode.js';
import type { RunContext } from './current.js';

export interface SandboxState extends Numbering {
  /** The native side's number of the run or the session; 0 until that has started. */
  readonly number: number;
  /** Whether anything in it can be called. */
  readonly running: boolean;
  /** The place of the cell that receives the values that cross now; 0 for a run, or for the whole session. */
  readonly receiver: number;
  /** The values that were thrown into it. */
  readonly throws: { keepOfPromise(promise: number, thrown: unknown): void };
  /** Gives the values that cross in `act` to the cell at that place. */
  gives<T>(place: number, act: () => T): T;
  /** Has the event loop wait for a call of one of its functions, if nothing else does, and returns the call's context. */
  holdForCall(): RunContext | undefined;
  /** The event loop need not wait for that call any more. */
  releaseCall(context: RunContext): void;
  /** The error for anything that needs a running sandbox after its end. */
  ended(): Error;
}
