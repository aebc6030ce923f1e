// What host functions threw last.
//
// In: each thing that is thrown into the sandbox, with the call or the promise that it answers. Out: the one that ended
// the run, which the sandbox tells by that number. Only objects: nothing else has an identity there. The core keeps the
// same number of them in sight, so what it names is here.

/** How many are kept: `isolane::KEPT_THROWS`. */
const KEPT = 8;

export class Throws {
  /** Calls have their numbers, and promises theirs below zero. */
  private readonly kept = new Map<number, unknown>();
  private calls = 0;

  /** The sandbox calls its host and waits. Returns the number of the call, as the core counts them. */
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
