// The promises that cross between the host and a session.
//
// In and out: as of `run/promises.ts`. The promises that came from a cell which was rolled back, and all from before a reset,
// reject here: the core settles them no more. A pending promise of the host holds the session weakly: nobody can run a
// cell there once the caller has dropped it.

import { named } from '../crossing/refusals.js';
import { keyed } from '../run/keyed.js';
import { Promises } from '../run/promises.js';

/** A completion that came before the promise that it settles. */
interface Early {
  readonly ok: boolean;
  readonly value: unknown;
}

export class SessionPromises extends Promises {
  private readonly weak = new WeakRef<Promises>(this);
  /** By the numbers of their promises. Two cells have two queues of events, so the second may be read first. */
  private readonly early = new Map<number, Early>();
  /** Cells up to that place were reset. */
  private resetUpTo = 0;
  /** The number of cells whose results have not been read. */
  inFlight = 0;

  override sandboxPromise(number: number, cell: number): Promise<unknown> {
    const promise = super.sandboxPromise(number, cell);
    const early = this.early.get(keyed(number));
    if (early !== undefined) {
      this.early.delete(keyed(number));
      this.settle(number, early.ok, early.value);
    } else if (cell <= this.resetUpTo) this.settle(number, false, sessionReset());
    return promise;
  }

  override settle(number: number, ok: boolean, value: unknown): void {
    if (this.inFlight > 1 && !this.isPending(number)) this.early.set(keyed(number), { ok, value });
    else super.settle(number, ok, value);
  }

  /** One cell more is in flight. */
  begins(): void {
    this.inFlight += 1;
  }

  /** The result of one cell has been read. */
  settles(): void {
    this.inFlight -= 1;
    if (this.inFlight === 0) this.early.clear();
  }

  /** Promises that are read from now on and came from cells up to that one reject, because the session was reset. */
  resets(cell: number): void {
    this.resetUpTo = Math.max(this.resetUpTo, cell);
  }

  /** The promises of the host whose completions have not been sent, by number. */
  pending(): Map<number, Promise<unknown>> {
    return new Map([...this.numbers].map(([promise, number]) => [number, promise]));
  }

  /** Has the numbers of another sandbox, of which this one is a copy, and watches the promises that were pending there. */
  continues(other: SessionPromises, pending: Map<number, Promise<unknown>>): void {
    this.given = other.given;
    for (const [number, promise] of pending) {
      this.numbers.set(promise, number);
      this.watch(number, promise);
    }
  }

  protected override reference(): WeakRef<Promises> {
    return this.weak;
  }
}

/** The error of functions and promises of a cell that was rolled back. */
export function rolledBack(): Error {
  return named('SessionRolledBack', 'the cell that gave this was rolled back');
}

/** The error of functions and promises of a session from before its reset. */
export function sessionReset(): Error {
  return named('SessionReset', 'the session was reset');
}
