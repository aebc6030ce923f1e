// The sandbox of a session, for all of its cells.
//
// In: the session's number, and the results of its cells. Out: functions and promises that stay valid between cells,
// and the end of those that a rollback, a reset or the close takes away. Functions of the sandbox hold this object, and
// nothing else does for long: when it is collected, the core frees the session.

import type { CellExecutionResult } from '../../index.js';
import { bridge, native } from '../addon/connection.js';
import type { Owner } from '../addon/native.js';
import { named } from '../crossing/refusals.js';
import { KeptContexts, RunContext } from '../run/current.js';
import { attachSession, detachSession } from '../run/events.js';
import { HostFunctions } from '../run/host-functions.js';
import { SandboxFunctions } from '../run/sandbox-functions.js';
import { Sandbox } from '../run/sandbox.js';
import { SessionEvents, type CellSandbox } from './cell.js';
import { SessionPromises, rolledBack, sessionReset } from './promises.js';

/** Sessions for whose functions the event loop waits. Their callers may hold nothing but the promise of a call. */
const awaited = new Set<SessionSandbox>();

const registry = new FinalizationRegistry<number>((number) => {
  detachSession(number);
  native.dropSession(bridge(), number);
});

export class SessionSandbox extends Sandbox implements CellSandbox {
  readonly sink: Function | undefined;
  /** Receives the events outside of the caller's cells. */
  private events: SessionEvents | undefined;
  /** The contexts of calls between cells that have not settled, from the oldest on: they run in that order. */
  private readonly calls = new Set<RunContext>();
  /** The contexts of cells that are done. */
  private readonly contexts = new KeptContexts();
  /** The place of the latest cell in the order of their calls. */
  private cells = 0;
  private receiving = 0;
  private readonly interleaves: boolean;

  constructor(owner: Owner | null, sink: Function | undefined, interleaves: boolean) {
    super(owner);
    this.sink = sink;
    this.interleaves = interleaves;
  }

  override get receiver(): number {
    return this.receiving;
  }

  override gives<T>(place: number, act: () => T): T {
    // A getter of a value may give others something meanwhile.
    const outer = this.receiving;
    this.receiving = place;
    try {
      return act();
    } finally {
      this.receiving = outer;
    }
  }

  override get promises(): SessionPromises {
    return (this.madePromises ??= new SessionPromises(this)) as SessionPromises;
  }

  override started(number: number): void {
    super.started(number);
    this.events = new SessionEvents(this);
    this.events.started(number);
    attachSession(number, this.events);
    registry.register(this, number, this);
  }

  get isBusy(): boolean {
    return this.promises.inFlight > 0;
  }

  begins(): number {
    this.promises.begins();
    this.cells += 1;
    return this.cells;
  }

  settles(cell: number, { session }: CellExecutionResult): void {
    if (session === 'rolledBack') {
      const isLost = (place: number): boolean => place === cell;
      this.madePromises?.lose(isLost, rolledBack);
      // Where cells interleave, a later one may have completed, and have given the same functions, and have the functions and
      // promises that this one was given.
      if (!this.interleaves) {
        this.madeSandboxFunctions?.lose(isLost, rolledBack);
        this.takeBack(isLost);
      }
    } else if (session === 'reset') this.reset(cell);
    this.promises.settles();
  }

  get latest(): number {
    return this.cells;
  }

  /** The session has been reset, on a request from when that cell was the latest. */
  reset(cell: number): void {
    this.promises.resets(cell);
    this.madePromises?.lose((place) => place <= cell, sessionReset);
    this.madeSandboxFunctions?.lose((place) => place <= cell, sessionReset);
    this.takeBack((place) => place <= cell);
    this.contexts.abort(cell, 'the session was reset');
  }

  /** The session with that number, a copy of this one; `pending` are the promises from when it was asked for. */
  copied(number: number, pending: Map<number, Promise<unknown>>): SessionSandbox {
    const copy = new SessionSandbox(this.owner, this.sink, this.interleaves);
    copy.madeHostFunctions = new HostFunctions();
    copy.madeHostFunctions.continues(this.hostFunctions);
    copy.started(number);
    copy.promises.continues(this.promises, new Map([...pending, ...this.promises.pending()]));
    copy.madeSandboxFunctions = new SandboxFunctions(copy);
    copy.madeSandboxFunctions.continues(this.sandboxFunctions);
    // The copy's sandbox counts them as received, but its host has none of them.
    for (const [fn, times] of this.sandboxFunctions.received()) native.releaseFunction(bridge(), number, fn, times);
    return copy;
  }

  get context(): RunContext | undefined {
    for (const oldest of this.calls) return oldest;
    return undefined;
  }

  override holdForCall(): RunContext | undefined {
    // Also during a cell, for which the event loop waits: the call may outlive it.
    if (this.calls.size === 0) {
      native.holdEventLoop(bridge(), true);
      awaited.add(this);
    }
    const context = new RunContext('isolane.call');
    this.calls.add(context);
    return context;
  }

  override releaseCall(context: RunContext): void {
    context.emitDestroy();
    this.calls.delete(context);
    this.keeps(context, this.cells);
    if (this.calls.size > 0) return;
    awaited.delete(this);
    native.holdEventLoop(bridge(), false);
  }

  keeps(context: RunContext, place: number): void {
    if (this.running) this.contexts.keep(context, place);
    else context.abort('the session was closed');
  }

  override ended(): Error {
    return named('SessionClosed', 'the session was closed');
  }

  /** Forgets the functions and promises that the host has given to such cells alone. */
  private takeBack(isLost: (cell: number) => boolean): void {
    this.madeHostFunctions?.lose(isLost);
    this.madePromises?.takeBack(isLost);
  }

  override end(): void {
    if (!this.running) return;
    registry.unregister(this);
    detachSession(this.number);
    native.dropSession(bridge(), this.number);
    super.end();
    this.events?.ends();
    this.events = undefined;
    this.contexts.abort(Infinity, 'the session was closed');
  }
}
