// Sessions.
//
// In: options, and sources of cells. Out: an object that runs cells one after another, each with a handle as of a run.
// Misuse throws before a cell is queued. The core has the queue; it decides the order and the effect of each cell.

import type { CellExecution, CellExecutionResult, SessionName } from '../../index.js';
import { bridge, native } from '../addon/connection.js';
import type { Misuse, NativeRuntime, NativeSystem, NativeTable, Owner } from '../addon/native.js';
import { NameFlag } from '../addon/wire.js';
import type { Encoder } from '../crossing/encode.js';
import { borrowEncoder, returnEncoder } from '../crossing/encoders.js';
import type { MessageReader } from '../crossing/message-reader.js';
import { misuse } from '../crossing/misuse.js';
import { wrongType } from '../crossing/options.js';
import { attach, onAnswer } from '../run/events.js';
import { Execution } from '../run/execution.js';
import { Reports } from '../run/reports.js';
import type { Resolve } from '../run/run.js';
import { Cell } from './cell.js';
import {
  type CellOptions,
  readCallOptions,
  readCellOptions,
  readSessionOptions,
  readUpdate,
  writeCall,
  writeCell,
  writeSession,
  writeUpdate,
} from './options.js';
import { SessionSandbox } from './sandbox.js';

export class Session {
  readonly #sandbox: SessionSandbox;
  #closed: Promise<void> | undefined;

  /** A session in the default runtime, or one that has been opened. */
  constructor(options?: unknown) {
    this.#sandbox = options instanceof SessionSandbox ? options : open(null, options);
  }

  run(source: unknown, options?: unknown): CellExecution {
    if (typeof source !== 'string') wrongType('source', 'a string', source);
    const read = readCellOptions(options);
    return this.#start(read, native.runCell, (encoder) => writeCell(encoder, source, read));
  }

  call(what: unknown, ...args: unknown[]): CellExecution {
    const read = readCallOptions(what);
    const sandbox = this.#sandbox;
    const write = (encoder: Encoder): void => sandbox.gives(sandbox.latest + 1, () => writeCall(encoder, read, args, sandbox));
    return this.#start(read, native.callCell, write);
  }

  update(what: unknown): void {
    const update = readUpdate(what);
    const sandbox = this.#sandbox;
    this.#refuseClosed();
    const encoder = borrowEncoder();
    try {
      sandbox.gives(0, () => writeUpdate(encoder, update, sandbox));
      const refused = native.updateSession(bridge(), sandbox.number, encoder.bytes, encoder.at, encoder.blobs);
      if (refused !== null) throw misuse(refused);
    } finally {
      returnEncoder(encoder);
    }
  }

  names(): Promise<SessionName[]> {
    return this.#ask((request) => native.sessionNames(bridge(), this.#sandbox.number, request), readNames);
  }

  reset(): Promise<void> {
    const cell = this.#sandbox.latest;
    return this.#ask(
      (request) => native.resetSession(bridge(), this.#sandbox.number, request),
      () => this.#sandbox.reset(cell),
    );
  }

  fork(): Promise<Session> {
    const sandbox = this.#sandbox;
    const pending = sandbox.promises.pending();
    let number: number;
    return this.#ask(
      (request) => {
        number = native.forkSession(bridge(), sandbox.number, request);
      },
      () => new Session(sandbox.copied(number, pending)),
    );
  }

  close(): Promise<void> {
    const sandbox = this.#sandbox;
    this.#closed ??= new Promise((resolve) => {
      if (!sandbox.running) {
        resolve();
        return;
      }
      const request = onAnswer(() => {
        sandbox.end();
        resolve();
      });
      native.closeSession(bridge(), sandbox.number, request);
    });
    return this.#closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  get [Symbol.toStringTag](): string {
    return 'Session';
  }

  #start(options: CellOptions, begin: Begin, write: (encoder: Encoder) => void): CellExecution {
    const sandbox = this.#sandbox;
    this.#refuseClosed();
    let resolve!: Resolve;
    const result = new Promise<CellExecutionResult>((settle) => {
      // The core gives each cell the rest of its result.
      resolve = settle as Resolve;
    });
    const reports = new Reports();
    const cell = new Cell(sandbox, options.report, reports, resolve);
    const encoder = borrowEncoder();
    try {
      write(encoder);
      const started = begin(bridge(), sandbox.number, encoder.bytes, encoder.at, encoder.blobs);
      if (typeof started !== 'number') throw misuse(started);
      cell.started(started);
      attach(started, cell);
    } catch (failure) {
      cell.abandon();
      throw failure;
    } finally {
      returnEncoder(encoder);
    }
    if (options.signal !== undefined) cell.endsWith(options.signal);
    return new Execution(cell, result, reports, 'CellExecution');
  }

  /** Sends a request, and reads its answer. */
  #ask<T>(send: (request: number) => void, read: (reader: MessageReader) => T): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#refuseClosed();
      const request = onAnswer((reader) => {
        try {
          if (reader.u8() === 0) throw misuse({ kind: reader.text() as Misuse['kind'], message: reader.text() });
          resolve(read(reader));
        } catch (failure) {
          reject(failure);
        }
      });
      send(request);
    });
  }

  #refuseClosed(): void {
    if (this.#closed !== undefined || !this.#sandbox.running) throw closed();
  }
}

/** Starts a cell from its request. */
type Begin = typeof native.runCell;

/** Opens a session in `runtime`, or in the default runtime of the process. */
export function openSession(runtime: NativeRuntime | null, options: unknown): Session {
  return new Session(open(runtime, options));
}

/** Opens a session whose request a system amends. */
export function openSessionIn(system: NativeSystem, options: unknown): Session {
  const begin: Opening = (encoder, natives) =>
    native.openSessionInSystem(bridge(), system, encoder.bytes, encoder.at, encoder.blobs, natives);
  return new Session(openWith(system, options, begin));
}

/** Opens a session from its request. */
type Opening = (encoder: Encoder, natives: NativeTable | undefined) => number | Misuse;

function open(runtime: NativeRuntime | null, options: unknown): SessionSandbox {
  const begin: Opening = (encoder, natives) =>
    native.openSession(bridge(), runtime, encoder.bytes, encoder.at, encoder.blobs, natives);
  return openWith(runtime, options, begin);
}

function openWith(owner: Owner | null, options: unknown, begin: Opening): SessionSandbox {
  const read = readSessionOptions(options);
  const sandbox = new SessionSandbox(owner, read.report, read.interleave);
  const encoder = borrowEncoder();
  try {
    writeSession(encoder, read, sandbox);
    const opened = begin(encoder, sandbox.natives);
    if (typeof opened !== 'number') throw misuse(opened);
    sandbox.started(opened);
  } catch (failure) {
    sandbox.abandon();
    throw failure;
  } finally {
    returnEncoder(encoder);
  }
  return sandbox;
}

function readNames(reader: MessageReader): SessionName[] {
  const names: SessionName[] = [];
  for (let left = reader.u32(); left > 0; left -= 1) {
    const has = reader.u8();
    const name = { name: reader.text(), kind: reader.text(), type: reader.text() } as SessionName;
    if (has & NameFlag.Size) name.size = reader.f64();
    names.push(name);
  }
  return names;
}

/** The error of a request to a session that was closed, with the core's message. */
function closed(): Error {
  return new Error('the session is closed');
}
