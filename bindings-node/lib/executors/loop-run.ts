// A run of the loop.
//
// In: the native side's events, questions and end. Out: events for one reader, and a result. `questions.ts` answers the
// questions.

import type { AbortSignalLike } from '../../index.js';
import type { LoopEvent, LoopResult } from '../../executors.js';
import { bridge, native } from '../bridge.js';
import { clearTimeout, setTimeout } from '../event-loop.js';
import { misuse } from '../misuse.js';
import type { Misuse, NativeLoopRun } from '../native.js';
import { NewsKind } from '../wire.js';
import { type FileOut, filesOf, resultOf } from './data.js';
import { type InputOut, type Parties, Questions } from './questions.js';
import { unwatch, watch } from '../signals.js';
import { Work } from './work.js';

/** A result in JSON, without its files. */
interface ResultJson {
  stdout: string;
  stderr: string;
  exit_code: number | null;
}

/** A reader that waits for an event. It keeps its stream, whose run would end with it. */
interface Reader {
  resolve(next: Next): void;
  reject(error: unknown): void;
  readonly stream: object;
}

type Next = IteratorResult<LoopEvent, undefined>;

const DONE: Next = Object.freeze({ done: true, value: undefined });

/** How long the end of a stream waits for what is left of its run. */
const MOST_WAIT_MS = 1000;

export class LoopRun extends Work {
  readonly #prepared: NativeLoopRun;
  readonly #questions: Questions;
  readonly #signal: AbortSignalLike | undefined;
  #hasBegun = false;
  /** Whether the whole run is awaited, not its events. */
  #isAwaited = false;
  #isStopped = false;
  /** Nobody reads the events any more. */
  #isLeft = false;
  /** The events that wait, each with the number of those that it counts as. */
  readonly #events: [event: LoopEvent, count: number][] = [];
  readonly #readers: Reader[] = [];
  #result: LoopResult | undefined;
  /** The end of the events: their error, once, if there is one. */
  #end: { error?: { thrown: unknown } } | undefined;
  readonly #ended: Promise<LoopResult | undefined>;
  #settle!: { resolve(result: LoopResult | undefined): void; reject(error: unknown): void };
  readonly #abort = (): void => this.stop();

  constructor(prepared: NativeLoopRun, parties: Parties, signal: AbortSignalLike | undefined) {
    super();
    this.#prepared = prepared;
    this.#questions = new Questions(parties);
    this.#signal = signal;
    this.#ended = new Promise((resolve, reject) => {
      this.#settle = { resolve, reject };
    });
    // A stream has another place for its error.
    this.#ended.catch(() => undefined);
  }

  /** Throws as the signal does. Nothing has begun then. */
  begin(): void {
    if (this.#hasBegun) return;
    const signal = this.#signal;
    if (signal?.aborted === true) this.#isStopped = true;
    else if (signal !== undefined) watch(signal, this.#abort);
    this.#hasBegun = true;
    const number = native.beginLoop(bridge, this.#prepared, this.#isStopped);
    this.#questions.run = number;
    this.began(number);
  }

  /** The result of a run without events. */
  awaited(): Promise<LoopResult> {
    this.#isAwaited = true;
    this.hold(true);
    // Another promise: this one's rejection is handled.
    return this.#ended.then((result) => result as LoopResult);
  }

  /** Ends the run, with the reason `cancelled`. */
  stop(): void {
    this.#isStopped = true;
    this.cancel();
  }

  /** The result, when the last event was read. */
  get resultRead(): LoopResult | undefined {
    return this.#events.length === 0 ? this.#result : undefined;
  }

  /** The next event, for that stream. */
  next(stream: object): Promise<Next> {
    return new Promise((resolve, reject) => {
      if (!this.#isLeft) this.begin();
      this.#readers.push({ resolve, reject, stream });
      this.#serve();
    });
  }

  /** Ends the run and its events, and waits for a moment until nothing of it is left. */
  async close(): Promise<void> {
    const isRunning = this.#hasBegun && this.#end === undefined;
    this.leave();
    this.#questions.dropAll();
    if (!isRunning) return;
    let timer;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, MOST_WAIT_MS);
    });
    // There is nobody to tell of an error any more.
    await Promise.race([this.#ended.catch(() => undefined), late]);
    clearTimeout(timer);
  }

  /** Ends the run, whose events nobody reads any more. */
  leave(): void {
    this.#isLeft = true;
    this.stop();
    for (const [, count] of this.#events.splice(0)) this.#forget(count);
    if (!this.#hasBegun) this.#finish({});
    this.#end = {};
    this.#serve();
  }

  protected heard(kind: NewsKind, number: number, message: unknown): void {
    switch (kind) {
      case NewsKind.Event:
        this.#event(message as [LoopEvent, FileOut[]], number);
        return;
      case NewsKind.Generate:
        this.#questions.generate(number, (message as [object])[0]);
        return;
      case NewsKind.Next:
        this.#questions.next(number);
        return;
      case NewsKind.Execute:
        this.#questions.execute(number, message as InputOut);
        return;
      case NewsKind.Dropped:
        this.#questions.drop(number);
        return;
      case NewsKind.Ended: {
        const [fields, files] = message as [LoopResult, FileOut[]];
        this.#result = { ...fields, files: filesOf(files) };
        this.#finish({});
        return;
      }
      case NewsKind.Raised:
        this.#finish({ error: { thrown: this.#questions.thrown(number) } });
        return;
      default: {
        const [kind, text] = message as [Misuse['kind'], string];
        this.#finish({ error: { thrown: misuse({ kind, message: text }) } });
      }
    }
  }

  protected broke(failure: unknown): void {
    this.#finish({ error: { thrown: failure } });
  }

  #event([event, files]: [LoopEvent, FileOut[]], count: number): void {
    if (event.type === 'result') {
      const { stdout, stderr, exit_code: exitCode } = event.result as unknown as ResultJson;
      event.result = resultOf({ stdout, stderr, exitCode }, files);
    }
    if (this.#isLeft) {
      this.#forget(count);
      return;
    }
    this.#events.push([event, count]);
    this.#serve();
  }

  /** Events that count as so many are out of the way. */
  #forget(count: number): void {
    if (this.number !== 0) native.readLoopEvents(bridge, this.number, count);
  }

  /** Serves the readers that wait. The event loop waits with them. */
  #serve(): void {
    while (this.#readers.length > 0) {
      const next = this.#events.shift();
      if (next === undefined && this.#end === undefined) break;
      const reader = this.#readers.shift();
      if (next !== undefined) {
        const [event, count] = next;
        this.#forget(count);
        reader?.resolve({ done: false, value: event });
      } else {
        const error = this.#end?.error;
        this.#end = {};
        if (error === undefined) reader?.resolve(DONE);
        else reader?.reject(error.thrown);
      }
    }
    if (!this.#isAwaited) this.hold(this.#readers.length > 0);
  }

  #finish(end: { error?: { thrown: unknown } }): void {
    if (this.#signal !== undefined) unwatch(this.#signal, this.#abort);
    this.#questions.end();
    if (this.#end === undefined) this.#end = end;
    if (end.error === undefined) this.#settle.resolve(this.#result);
    else this.#settle.reject(end.error.thrown);
    this.#serve();
  }
}
