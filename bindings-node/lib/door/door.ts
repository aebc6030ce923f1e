// The way into every system: environments, notebooks, executors and those that follow.
//
// In: options and arguments as the caller wrote them, with functions and promises. Out: a handle on a system, whose calls
// are promises that can be terminated, and whose answers are there at once. The native side checks everything and words
// all messages.

import type { AbortSignalLike, CodeExecution } from '../../index.js';
import { bridge, folder, native } from '../addon/connection.js';
import type { Misuse, NativeSystem } from '../addon/native.js';
import type { Encoder, Numbering } from '../crossing/encode.js';
import { borrowEncoder, returnEncoder } from '../crossing/encoders.js';
import { MessageReader } from '../crossing/message-reader.js';
import { misuse } from '../crossing/misuse.js';
import { readSignal, wrongType } from '../crossing/options.js';
import { attach, onAnswer } from '../run/events.js';
import { Handle } from '../run/handle.js';
import type { RunOptions } from '../run/options.js';
import { Reports } from '../run/reports.js';
import { type Begin, launch } from '../run/run-code.js';
import { Run } from '../run/run.js';
import { ignore } from '../run/sandbox-functions.js';
import { Sandbox } from '../run/sandbox.js';
import { Runtime, nativeRuntime } from '../session/runtime.js';
import { Session, openSessionIn } from '../session/session.js';
import type { HostSessions } from './host-sessions.js';

/** The outcome of a call, as a run's result: the value, or the thrown value, is its `result`. */
interface Outcome {
  readonly status: string;
  readonly result?: unknown;
  readonly error?: { readonly name: string; readonly message: string };
}

/** Numbers functions and promises among arguments that are data. Nothing calls them: in JSON form a function is nothing. */
const NUMBERING: Numbering = {
  hostFunction: () => 0,
  nativeFunction: () => 0,
  sandboxFunction: () => undefined,
  hostPromise: () => 0,
  answerOf: () => 'result',
};

/** The names of the arguments of methods. */
export type ArgumentNames = Readonly<Record<string, readonly string[]>>;

/** A call of a system: a promise of its value, which the caller can end. */
export class DoorCall<Value = unknown> extends Handle<Value> {
  constructor(run: Run, value: Promise<Value>) {
    super(run, value, 'DoorCall');
  }
}

/** An open system. */
export class Door {
  readonly #native: NativeSystem;
  /** The run to which functions among the options belong. */
  readonly #run: Run;
  readonly #sessions: HostSessions | undefined;
  readonly #names: ArgumentNames;

  /**
   * Opens the system with that name. A `Runtime` among the options goes with them, and so do those of the system's
   * sessions; the other options are values. `names` has the names of arguments by methods, for errors.
   */
  constructor(
    system: string,
    options: Readonly<Record<string, unknown>>,
    runtime?: unknown,
    sessions?: HostSessions,
    names: ArgumentNames = {},
  ) {
    if (runtime !== undefined && !(runtime instanceof Runtime)) wrongType('runtime', 'a Runtime', runtime);
    const sandbox = new Sandbox(null);
    const run = new Run(sandbox, undefined, new Reports(), undefined);
    this.#native = started(run, (encoder) => {
      encoder.begin(sandbox);
      encoder.value(options, 'options');
      const opened = native.openSystem(
        bridge(),
        system,
        runtime === undefined ? null : nativeRuntime(runtime as Runtime),
        folder,
        encoder.bytes,
        encoder.at,
        encoder.blobs,
        sessions === undefined ? null : sessions.native,
      );
      if (isMisuse(opened)) throw misuse(opened);
      return [opened.run, opened];
    });
    this.#run = run;
    this.#sessions = sessions;
    this.#names = names;
  }

  /** Begins a call of a method. Misuse throws at once. */
  call<Value = unknown>(method: string, args: readonly unknown[], signal?: unknown): DoorCall<Value> {
    const watched: AbortSignalLike | undefined = readSignal(signal);
    let resolve!: (outcome: Outcome) => void;
    const settled = new Promise<Outcome>((settle) => {
      resolve = settle;
    });
    const sandbox = new Sandbox(this.#native);
    const run = new Run(sandbox, undefined, new Reports(), resolve);
    const isBackground = started(run, (encoder) => {
      encoder.begin(sandbox);
      encoder.value(args, 'arguments');
      const begun = native.callSystem(bridge(), this.#native, method, encoder.bytes, encoder.at, encoder.blobs);
      if (isMisuse(begun)) throw misuse(begun);
      this.#sessions?.began(begun);
      return [begun.run, begun.isBackground];
    });
    // It lasts as long as its system, so it must not keep the system.
    if (isBackground) sandbox.owner = null;
    if (watched !== undefined) run.endsWith(watched);
    const value = settled.then(valueOf<Value>);
    if (isBackground) value.catch(ignore);
    return new DoorCall(run, value);
  }

  /**
   * The answer of a method whose arguments are data. Misuse rejects it, too. `isJson`: values among them are kept as JSON
   * texts.
   */
  answer(method: string, args: readonly unknown[], isJson = false): Promise<unknown> {
    return new Promise((resolve, reject) => {
      // The owner of the values in the answer: no functions and no promises are among them.
      const owner = new Run(new Sandbox(null), undefined, new Reports(), undefined);
      const request = onAnswer((reader) => {
        const isValue = reader.u8() === 1;
        reader.read(owner, 'result', (read, value) => (isValue && read ? resolve : reject)(value));
      });
      owner.number = request;
      const refused = encoded((encoder) => {
        encoder.begin(NUMBERING);
        encoder.arrayOf(args.length);
        args.forEach((arg, index) => encoder.jsonValue(arg, this.#nameOf(method, index), isJson));
        return native.answerOfSystem(bridge(), this.#native, request, method, encoder.bytes, encoder.at, encoder.blobs);
      });
      if (refused !== null) reject(misuse(refused));
    });
  }

  /** The answer of a method that has it at once. Misuse throws. */
  ask<Value = unknown>(method: string, args: readonly unknown[] = []): Value {
    const answer = encoded((encoder) => {
      encoder.begin(this.#run.sandbox);
      encoder.arrayOf(args.length);
      args.forEach((arg, index) => encoder.value(arg, this.#nameOf(method, index)));
      return native.askSystem(bridge(), this.#native, method, encoder.bytes, encoder.at, encoder.blobs);
    });
    if (isMisuse(answer)) throw misuse(answer);
    return new MessageReader(answer as Uint8Array).next(this.#run, 'answer') as Value;
  }

  #nameOf(method: string, index: number): string {
    return this.#names[method]?.[index] ?? `arguments[${index}]`;
  }

  /** Starts a run of that kind, whose request the system amends. */
  start(kind: string, source: unknown, options: RunOptions): CodeExecution {
    const system = this.#native;
    const begin: Begin = (encoder, natives) =>
      native.startInSystem(bridge(), system, kind, encoder.bytes, encoder.at, encoder.blobs, natives);
    return launch(source, options, system, begin, kind === 'tool');
  }

  /** Opens a session whose request the system amends. */
  session(options: unknown): Session {
    return openSessionIn(this.#native, options);
  }

  /** Lets go of the system, which ends once no call of it goes on. */
  close(): void {
    native.closeSystem(this.#native);
  }
}

/** Starts a run by a native call that gives its number. */
function started<T>(run: Run, begin: (encoder: Encoder) => [number: number, rest: T]): T {
  try {
    const [number, rest] = encoded(begin);
    run.sandbox.started(number);
    run.started(number);
    attach(number, run);
    return rest;
  } catch (failure) {
    run.abandon();
    throw failure;
  }
}

function encoded<T>(write: (encoder: Encoder) => T): T {
  const encoder = borrowEncoder();
  try {
    return write(encoder);
  } finally {
    returnEncoder(encoder);
  }
}

function isMisuse(answer: object): answer is Misuse {
  return Object.hasOwn(answer, 'message');
}

function valueOf<Value>(outcome: Outcome): Value {
  if (outcome.status === 'success') return outcome.result as Value;
  if (Object.hasOwn(outcome, 'result')) throw outcome.result;
  // The value could not be read.
  const { name, message } = outcome.error ?? { name: 'Error', message: 'the call failed' };
  throw Object.assign(new Error(message), { name });
}
