// The run that called a host function, for that function.
//
// In: the asynchronous context of the caller of `current`. Out: a signal that is aborted when the run is ended. A
// function that does not ask costs nothing: each run has its resource anyway, nothing tracks promises before the first
// call of `current`, and a signal is made when somebody reads it.

import { AsyncLocalStorage, AsyncResource, executionAsyncResource } from 'node:async_hooks';

/** Made by the first call of `current`, because Node.js tracks all promises from then on. */
let storage: AsyncLocalStorage<RunContext> | undefined;

/** The contexts of signals that somebody holds: a signal keeps its own. */
const contexts = new WeakMap<AbortSignal, RunContext>();

/** The asynchronous context of a run, in which its host functions run. */
export class RunContext extends AsyncResource {
  private controller: AbortController | undefined;
  private ending: string | undefined;
  private made: { readonly signal: AbortSignal } | undefined;

  constructor(type: string) {
    super(type, { requireManualDestroy: true });
    // In place of the run whose host function starts this one.
    if (storage !== undefined) this.runInAsyncScope(() => storage?.enterWith(this));
  }

  /** The caller's object: one for a run. */
  get call(): { readonly signal: AbortSignal } {
    const signal = (): AbortSignal => this.signal();
    return (this.made ??= Object.freeze({
      get signal(): AbortSignal {
        return signal();
      },
    }));
  }

  /** Whether somebody has the signal. */
  get hasSignal(): boolean {
    return this.controller !== undefined;
  }

  /** Aborts the signal, now or when it is made. Nobody waits for calls of the run any more. */
  abort(reason: string): void {
    if (this.ending !== undefined) return;
    this.ending = reason;
    this.controller?.abort(abortError(reason));
  }

  private signal(): AbortSignal {
    if (this.controller === undefined) {
      this.controller = new AbortController();
      contexts.set(this.controller.signal, this);
      if (this.ending !== undefined) this.controller.abort(abortError(this.ending));
    }
    return this.controller.signal;
  }
}

/** The run that called the host function that asks, or another function that it called. */
export function current(): { readonly signal: AbortSignal } {
  const resource = executionAsyncResource();
  const context = resource instanceof RunContext ? resource : storage?.getStore();
  if (context === undefined) {
    throw new Error(
      'isolane.current() belongs into a host function that a run has called: ' +
        'begin the function with const { signal } = current(), before the first await, and use signal later',
    );
  }
  storage ??= new AsyncLocalStorage();
  // So all that the function does from here on finds it, behind each await, too.
  storage.enterWith(context);
  return context.call;
}

/** The contexts of a session's cells that are done: their calls belong to the session. */
export class KeptContexts {
  private readonly kept = new Map<WeakRef<RunContext>, number>();
  private most = 16;

  /** Keeps the context of a cell at that place, if somebody has its signal and for as long as somebody has. */
  keep(context: RunContext, place: number): void {
    if (!context.hasSignal) return;
    this.kept.set(new WeakRef(context), place);
    if (this.kept.size < this.most) return;
    for (const reference of this.kept.keys()) if (reference.deref() === undefined) this.kept.delete(reference);
    this.most = Math.max(16, this.kept.size * 2);
  }

  /** Aborts the signals of cells up to that place. */
  abort(place: number, reason: string): void {
    for (const [reference, its] of [...this.kept]) {
      if (its > place) continue;
      this.kept.delete(reference);
      reference.deref()?.abort(reason);
    }
  }
}

function abortError(reason: string): DOMException {
  return new DOMException(reason, 'AbortError');
}
