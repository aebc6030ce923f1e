// The interface of the compiled half of the package; `platform.ts` finds the file.

import { loadAddon } from './platform.js';

/** The refusal of a call, to be thrown as an exception of the right class. */
export interface Misuse {
  readonly kind:
    | 'type'
    | 'range'
    | 'serialization'
    | 'queueFull'
    | 'runtimeClosed'
    | 'sessionReset'
    | 'sessionClosed'
    | 'unavailable'
    | 'internal';
  readonly message: string;
  /** The error that led to it; `number` is that of a system error, and 0 for any other error. */
  readonly cause?: { readonly message: string; readonly number: number };
}

/** A set of options. */
export type OptionSet = 'run' | 'execute' | 'runtime' | 'session' | 'cell' | 'call' | 'update';

/** An option, as the core declares it. */
export interface NativeOption {
  readonly name: string;
  /** Its type; empty if the reader of the option checks that itself. */
  readonly type: 'number' | 'string' | '';
  /** The permitted texts; empty if any text is permitted. */
  readonly choices: readonly string[];
  /** A description of the choices, for an error message. */
  readonly expected: string;
}

/** The core's counts of a runtime. */
export type NativeStats = Readonly<Record<string, unknown>>;

/** A runtime of the core. */
export interface NativeRuntime {
  stats(): NativeStats;
}

/** A system that is open. */
export interface NativeSystem {
  /** The number of the run to which functions among its options belong. */
  readonly run: number;
}

export interface NativeFile {
  name: string;
  content: Uint8Array;
  mimeType: string | undefined;
}

export interface NativeInput {
  code: string;
  language: string;
  files: NativeFile[];
  executionId: string | undefined;
}

export interface NativeOutput {
  stdout: string;
  stderr: string;
  files: NativeFile[];
  exitCode: number | undefined;
}

/** The request for the sessions of a system. */
export interface NativeHostSessions {
  readonly sessions?: never;
}

/** A call of a system: the number of its run; of the session that was opened for it, of its cell and of its session. */
export interface BegunCall {
  run: number;
  isBackground: boolean;
  opened?: number | null;
  cell?: number | null;
  session?: number | null;
}

/** Kept by runs and sessions while they are running: a runtime that is collected ends its processes, a system its runs. */
export type Owner = NativeRuntime | NativeSystem;

/** A function that is answered in Rust; only the addon makes such objects. */
export interface NativeFunction {
  readonly name: string;
}

/** The functions of a run that are answered in Rust, before the run starts. */
export interface NativeTable {
  number(fn: NativeFunction): number;
}

/** A completion: whether it is a value or a thrown value, and its message in the first `length` bytes of `frame`. */
type Completion = [ok: boolean, frame: Uint8Array, length: number, blobs: Uint8Array[] | undefined];

type Blobs = Uint8Array[] | undefined;

/**
 * The exports of the addon. `bridge` is the number of this environment's bridge. A frame is in the
 * first `length` bytes of its array.
 */
export interface Native {
  /** Opens this environment's bridge; `receive` is called once for all events until the next drain. */
  openBridge(receive: () => void): number;
  /**
   * Writes the next events into `inbox` and returns the number of bytes; returns the bytes themselves if they do not
   * fit. Without events it returns 0, or -1 if polling does not pay off any more. `expected` announces an event, as
   * `start` and `reply` do themselves.
   */
  drain(bridge: number, inbox: Uint8Array, expected: boolean): number | Uint8Array;
  /** Starts or stops polling: a polled bridge does not wake this thread. Returns whether events are waiting. */
  poll(bridge: number, polls: boolean): boolean;
  /** The blobs of the last frame, in order. */
  blobs(bridge: number): Uint8Array[];
  /** The nodes of a large message; they can be taken once. */
  largeNodes(bridge: number, large: number): Uint8Array<ArrayBuffer>;
  /** The next blobs of a large message, in order; none after the last. */
  largeBlobs(bridge: number, large: number): Uint8Array[];
  dropLarge(bridge: number, large: number): void;
  /** Resumes the events of a run after a large message. */
  resume(bridge: number, run: number): void;
  /** Whether a run has not settled in the core, or a session is open; the last event may not have been delivered yet. */
  running(bridge: number, run: number): boolean;
  /** Whether host functions start that the sandbox has called and does not wait for: not once the run was ended. */
  startsCalls(bridge: number, run: number): boolean;
  /** The next part of the reports and logs of a run that has settled. */
  outputPart(bridge: number, run: number): Uint8Array;
  start(bridge: number, runtime: NativeRuntime | null, frame: Uint8Array, length: number, blobs: Blobs, natives: NativeTable | undefined): number | Misuse;
  reply(bridge: number, call: number, ...completion: Completion): void;
  settlePromise(bridge: number, run: number, promise: number, ...completion: Completion): void;
  callFunction(bridge: number, run: number, fn: number, call: number, frame: Uint8Array, length: number, blobs: Blobs): void;
  releaseFunction(bridge: number, run: number, fn: number, times: number): void;
  terminate(bridge: number, run: number, reason: string | undefined): void;
  /**
   * The reports from `index` on, up to the first one that is too large to be read at once: their count, then
   * their messages. `blobs()` has their blobs.
   */
  reportsSince(bridge: number, run: number, index: number): Uint8Array;
  close(bridge: number, runtime: NativeRuntime, number: number): void;
  /** Opens a session in `runtime`, or in the default runtime, and returns its number. */
  openSession(bridge: number, runtime: NativeRuntime | null, frame: Uint8Array, length: number, blobs: Blobs, natives: NativeTable | undefined): number | Misuse;
  /** Queues a cell and returns its number, under which it is a run. */
  runCell(bridge: number, session: number, frame: Uint8Array, length: number, blobs: Blobs): number | Misuse;
  /** Queues a call, as {@link runCell}. */
  callCell(bridge: number, session: number, frame: Uint8Array, length: number, blobs: Blobs): number | Misuse;
  updateSession(bridge: number, session: number, frame: Uint8Array, length: number, blobs: Blobs): Misuse | null;
  // The answers of the next four are events with the number of the request.
  sessionNames(bridge: number, session: number, request: number): void;
  resetSession(bridge: number, session: number, request: number): void;
  /** Returns the number of the copy, which exists if the answer is no error. */
  forkSession(bridge: number, session: number, request: number): number;
  closeSession(bridge: number, session: number, request: number): void;
  /** Drops the handle on a session, which ends as soon as its cells are done. */
  dropSession(bridge: number, session: number): void;
  /** Has the event loop wait for one thing more or less. */
  holdEventLoop(bridge: number, hold: boolean): void;
  NativeTable: new () => NativeTable;
  /** The function of the kit with that name. */
  kitFunction(name: string): NativeFunction;
  /** The number under which such a function crosses into a run or session that has started. */
  nativeNumber(bridge: number, run: number, fn: NativeFunction): number;
  /** A value as a console shows it; the frame is its message. */
  describe(frame: Uint8Array, length: number, blobs: Blobs, limit: number | undefined): string | Misuse;
  /** Opens a system; the frame is the message of its options. */
  openSystem(
    bridge: number,
    name: string,
    runtime: NativeRuntime | null,
    workerFolder: string,
    frame: Uint8Array,
    length: number,
    blobs: Blobs,
    sessions: NativeHostSessions | null,
  ): NativeSystem | Misuse;
  /** Reads the request for the sessions of a system. */
  hostSessions(frame: Uint8Array, length: number, blobs: Blobs, natives: NativeTable | undefined): NativeHostSessions;
  closeSystem(system: NativeSystem): void;
  /** Begins a call, which is a run; the frame is the message of its arguments. */
  callSystem(
    bridge: number,
    system: NativeSystem,
    method: string,
    frame: Uint8Array,
    length: number,
    blobs: Blobs,
  ): BegunCall | Misuse;
  /** Begins a call without functions. The answer has the number `request`. */
  answerOfSystem(bridge: number, system: NativeSystem, request: number, method: string, frame: Uint8Array, length: number, blobs: Blobs): Misuse | null;
  /** The frame of an answer that is there at once. */
  askSystem(bridge: number, system: NativeSystem, method: string, frame: Uint8Array, length: number, blobs: Blobs): Uint8Array | Misuse;
  /** Starts a run of that kind, whose request the system amends, as `start` does. */
  startInSystem(bridge: number, system: NativeSystem, kind: string, frame: Uint8Array, length: number, blobs: Blobs, natives: NativeTable | undefined): number | Misuse;
  /** Opens a session whose request the system amends, as `openSession` does. */
  openSessionInSystem(bridge: number, system: NativeSystem, frame: Uint8Array, length: number, blobs: Blobs, natives: NativeTable | undefined): number | Misuse;
  /** The core's message for a name that is none of these. */
  unknownName(key: string, names: string[]): string;
  /** Runs a command to its end, on this thread, and returns its exit code. */
  runCommand(words: readonly string[], workerFolder: string): number;
  openRuntime(options: Record<string, number | string>, workerFolder: string): NativeRuntime | Misuse;
  /** All options of a set. */
  optionDeclarations(set: OptionSet): NativeOption[];
  /** The core's message for an option of the wrong type. */
  wrongType(option: string, expected: string, got: string): string;
  /** The core's message for an option that does not exist. */
  unknownOption(set: OptionSet, key: string): string;
}

/** Loads the addon and returns it with its folder. If there is none, throws an error that says how to get it. */
export function loadNative(): { native: Native; folder: string } {
  const { addon, folder } = loadAddon();
  return { native: addon as Native, folder };
}
