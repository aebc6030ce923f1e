// The latest values that host functions threw.
//
// In: each value that is thrown into the sandbox, with the number of its call or promise. Out: the value that ended the
// run, by that number. Only objects are kept: the sandbox has an identity for no other value. The core names
// only one of the last such values, so that value is here.
//
// An exception may hold values of the sandbox, which count against no limit any more. So in a run that has sent a large
// message, only the latest exception is kept, and only until the sandbox calls again.

/** The number of values that are kept: `isolane::KEPT_THROWS`. */
const KEPT = 8;

/** The bytes from which on a message is large: `isolane::LARGE_THROW_BYTES`. */
const LARGE_BYTES = 64 * 1024;

export class Throws {
  /** Calls are kept under their numbers, promises under negative numbers. */
  private readonly kept = new Map<number, unknown>();
  private calls = 0;
  private hasLarge = false;

  /** A message of so many bytes came from the sandbox. */
  received(bytes: number): void {
    if (bytes <= LARGE_BYTES) return;
    this.hasLarge = true;
    this.forgetAllBut(1);
  }

  /** The sandbox called a host function, and its message has been received. */
  isCalled(): void {
    if (this.hasLarge) this.kept.clear();
  }

  /** Counts a synchronous call of the sandbox; returns its number, which is also the core's. */
  numberCall(): number {
    this.calls += 1;
    return this.calls;
  }

  keepOfCall(call: number, thrown: unknown): void {
    this.keep(call, thrown);
  }

  keepOfPromise(promise: number, thrown: unknown): void {
    this.keep(-1 - promise, thrown);
  }

  byCall(call: number): unknown {
    return this.kept.get(call);
  }

  byPromise(promise: number): unknown {
    return this.kept.get(-1 - promise);
  }

  clear(): void {
    this.kept.clear();
  }

  private keep(key: number, thrown: unknown): void {
    if ((typeof thrown !== 'object' && typeof thrown !== 'function') || thrown === null) return;
    this.kept.set(key, thrown);
    this.forgetAllBut(this.hasLarge ? 1 : KEPT);
  }

  private forgetAllBut(most: number): void {
    for (const oldest of this.kept.keys()) {
      if (this.kept.size <= most) return;
      this.kept.delete(oldest);
    }
  }
}

/** The throws of a cell: the numbers of calls are its own, those of promises the session's. */
export class CellThrows extends Throws {
  private readonly session: Throws;

  constructor(session: Throws) {
    super();
    this.session = session;
  }

  override received(bytes: number): void {
    super.received(bytes);
    this.session.received(bytes);
  }

  override isCalled(): void {
    super.isCalled();
    this.session.isCalled();
  }

  override byPromise(promise: number): unknown {
    return this.session.byPromise(promise);
  }
}
