// A run of the loop.
//
// In: events and questions of the native side, and its end. Out: events for one reader, and a result.
// `questions.ts` answers the questions.

import type { LoopEvent, LoopResult } from '../../executors.js';
import type { AbortSignalLike } from '../../index.js';
import { bridge, native } from '../addon/connection.js';
import { clearTimeout, setTimeout } from '../addon/event-loop.js';
import type { Door } from '../door/door.js';
import { unwatch, watch } from '../run/signals.js';
import { type FileOut, filesOf, resultOf } from './data.js';
import { type InputOut, type Callbacks, Questions } from './questions.js';

/** A result or an event as the native side gives it: JSON, and files. */
type Out = [json: string, files: FileOut[]];

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

/** How long the end of a stream waits for the rest of its run. */
const MOST_WAIT_MS = 1000;

/** The number of the last run. */
let last = 0;

export class LoopRun {
  readonly #door: Door;
  readonly #input: string;
  readonly #streams: boolean;
  readonly #number = (last += 1);
  readonly #questions: Questions;
  readonly #signal: AbortSignalLike | undefined;
  #hasBegun = false;
  /** Whether the whole run is awaited, not its events. */
  #isAwaited = false;
  #isStopped = false;
  #isOver = false;
  /** Whether the event loop waits for a reader. */
  #holds = false;
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

  /** A run with that input, which is JSON. `streams`: its events are wanted. */
  constructor(door: Door, input: string, streams: boolean, callbacks: Callbacks, signal: AbortSignalLike | undefined) {
    this.#door = door;
    this.#input = input;
    this.#streams = streams;
    this.#questions = new Questions(callbacks, (...answer) => door.ask('answer', [this.#number, ...answer]), (...output) => door.ask('output', [this.#number, ...output]));
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
    const received = (kind: string, number: number, message: unknown): void => {
      try {
        this.#received(kind, number, message);
      } catch (failure) {
        this.#finish({ error: { thrown: failure } });
      }
    };
    const call = this.#door.call<Out>('run', [this.#number, this.#input, this.#isStopped, this.#streams, received]);
    void call.then(
      ([json, files]) => {
        this.#result = { ...(JSON.parse(json) as LoopResult), files: filesOf(files) };
        this.#finish({});
      },
      (refused: unknown) => this.#finish({ error: { thrown: typeof refused === 'number' ? this.#questions.thrown(refused) : refused } }),
    );
  }

  /** The result of a run without events. */
  awaited(): Promise<LoopResult> {
    this.#isAwaited = true;
    // Another promise: this one's rejection is handled.
    return this.#ended.then((result) => result as LoopResult);
  }

  /** Ends the run, with the reason `cancelled`. */
  stop(): void {
    this.#isStopped = true;
    if (this.#hasBegun && !this.#isOver) this.#door.ask('cancel', [this.#number]);
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

  #received(kind: string, number: number, message: unknown): void {
    switch (kind) {
      case 'event':
        this.#event(message as Out, number);
        return;
      case 'generate':
        this.#questions.generate(number, JSON.parse(message as string) as object);
        return;
      case 'next':
        this.#questions.next(number);
        return;
      case 'execute':
        this.#questions.execute(number, message as InputOut);
        return;
      default:
        this.#questions.drop(number);
    }
  }

  #event([json, files]: Out, count: number): void {
    const event = JSON.parse(json) as LoopEvent;
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
    this.#door.ask('read', [this.#number, count]);
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
    if (!this.#isAwaited) this.#hold(this.#readers.length > 0);
  }

  /** Has the event loop wait for a reader, or not. */
  #hold(holds: boolean): void {
    if (this.#holds === holds) return;
    this.#holds = holds;
    native.holdEventLoop(bridge(), holds);
  }

  #finish(end: { error?: { thrown: unknown } }): void {
    if (this.#isOver) return;
    this.stop();
    this.#isOver = true;
    if (this.#signal !== undefined) unwatch(this.#signal, this.#abort);
    this.#questions.end();
    if (this.#end === undefined) this.#end = end;
    if (end.error === undefined) this.#settle.resolve(this.#result);
    else this.#settle.reject(end.error.thrown);
    this.#serve();
  }
}
