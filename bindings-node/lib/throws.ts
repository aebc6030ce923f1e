// The latest values that host functions threw.
//
// In: each value that is thrown into the sandbox, with the number of its call or promise. Out: the value that ended the
// run, by that number. Only objects are kept: the sandbox has an identity for no other value. The core names
// only one of the last such values, so that value is here.

/** The number of values that are kept: `isolane::KEPT_THROWS`. */
const KEPT = 8;

export class Throws {
  /** Calls are kept under their numbers, promises under negative numbers. */
  private readonly kept = new Map<number, unknown>();
  private calls = 0;

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
    if (this.kept.size <= KEPT) return;
    for (const oldest of this.kept.keys()) {
      this.kept.delete(oldest);
      break;
    }
  }
}
