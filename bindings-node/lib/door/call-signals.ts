// The signals of the calls that a system makes.
//
// In: the numbers of calls of the caller's functions, and of those whose caller has ended. Out: a signal for each call,
// which is aborted in that case.

export class CallSignals {
  readonly #calls = new Map<number, AbortController>();

  /** Aborts the signal of the call with that number, if it has not settled. */
  readonly abort = (number: number): void => this.#calls.get(number)?.abort();

  /** Makes the call with that number, with its signal. */
  async call(number: number, act: (signal: AbortSignal) => unknown): Promise<unknown> {
    const controller = new AbortController();
    this.#calls.set(number, controller);
    try {
      return await act(controller.signal);
    } finally {
      this.#calls.delete(number);
    }
  }
}
