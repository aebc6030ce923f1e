// The questions of a run of the loop to the caller's model and executor.
//
// In: questions of the native side. Out: answers. The model and the executor are called in the asynchronous context of the
// call that made the run.

import { AsyncResource } from 'node:async_hooks';

import { type FileOut, fileIn, filesOf, outputBytes, readResult } from './data.js';
import { json } from './json.js';
import { Pieces } from './pieces.js';
import { refusal, messageOf } from './refusal.js';

/** The caller's model and executor. */
export interface Callbacks {
  readonly generate: Function;
  readonly execute: Function;
}

/** The work for a question that has no answer yet, or whose answer is a stream. */
interface Task {
  readonly controller: AbortController;
  stream: Iterator | undefined;
  /** The pieces of the stream. */
  readonly pieces: Pieces;
}

interface Iterator {
  next(): unknown;
  return?(): unknown;
}

/** An input as the native side gives it, with the place of its call. */
export type InputOut = [code: string, language: string, files: FileOut[], executionId: string | null, invocationId: string, turn: number, attempt: number];

/** Tells the native side something, which begins with the number of a question. */
type Tell = (number: number, ...rest: unknown[]) => unknown;

export class Questions {
  readonly #callbacks: Callbacks;
  readonly #answer: Tell;
  readonly #output: Tell;
  readonly #async = new AsyncResource('isolane.loop', { requireManualDestroy: true });
  readonly #tasks = new Map<number, Task>();
  /** The exceptions of the model, by the numbers of questions. */
  readonly #thrown = new Map<number, unknown>();

  constructor(callbacks: Callbacks, answer: Tell, output: Tell) {
    this.#callbacks = callbacks;
    this.#answer = answer;
    this.#output = output;
  }

  /** Asks the model. */
  generate(number: number, request: object): void {
    this.#start(number, (task) => this.#generate(number, task, request));
  }

  /** Asks for the next part of a stream. */
  next(number: number): void {
    this.#start(number, (task) => this.#nextPart(number, task));
  }

  /** Asks the executor. */
  execute(number: number, input: InputOut): void {
    this.#start(number, (task) => this.#execute(number, task, input));
  }

  /** The exception of the model in answer to that question. */
  thrown(number: number): unknown {
    return this.#thrown.get(number);
  }

  /** Ends the work for a question. */
  drop(number: number): void {
    const task = this.#tasks.get(number);
    this.#tasks.delete(number);
    task?.controller.abort();
    const stream = task?.stream;
    if (stream !== undefined) void this.#async.runInAsyncScope(closed, undefined, stream);
  }

  /** Ends the work for all questions. */
  dropAll(): void {
    for (const number of [...this.#tasks.keys()]) this.drop(number);
  }

  /** The run is over. */
  end(): void {
    this.dropAll();
    this.#thrown.clear();
    this.#async.emitDestroy();
  }

  /** Works on a question in the context of the run. */
  #start(number: number, work: (task: Task) => Promise<void>): void {
    const task = this.#tasks.get(number) ?? { controller: new AbortController(), stream: undefined, pieces: new Pieces() };
    this.#tasks.set(number, task);
    // No work rejects.
    void this.#async.runInAsyncScope(work, undefined, task);
  }

  async #generate(number: number, task: Task, request: object): Promise<void> {
    try {
      const reply: unknown = await this.#callbacks.generate({ ...request, signal: task.controller.signal });
      if (this.#tasks.get(number) !== task) {
        if (isStream(reply)) void closed(iteratorOf(reply));
        return;
      }
      if (isStream(reply)) {
        task.stream = iteratorOf(reply);
        this.#answer(number, 'stream');
      } else {
        this.#tasks.delete(number);
        this.#answer(number, 'parts', json(reply, 'the reply of the model'));
      }
    } catch (thrown) {
      this.#modelThrew(number, thrown);
    }
  }

  async #nextPart(number: number, task: Task): Promise<void> {
    let next: IteratorResult<unknown>;
    try {
      next = (await task.stream?.next()) as IteratorResult<unknown>;
      if (typeof next !== 'object' || next === null) throw new TypeError('an iterator of the model gave no object');
    } catch (thrown) {
      // As in a `for await`, a stream that fails is not closed.
      task.stream = undefined;
      this.#modelThrew(number, thrown);
      return;
    }
    if (this.#tasks.get(number) !== task) return;
    try {
      if (next.done === true) {
        task.stream = undefined;
        task.pieces.end();
        this.#answer(number, 'end');
      } else this.#answer(number, 'parts', task.pieces.next(await next.value));
    } catch (thrown) {
      this.#modelThrew(number, thrown);
    }
  }

  #modelThrew(number: number, thrown: unknown): void {
    this.#thrown.set(number, thrown);
    this.#answer(number, 'raised');
  }

  async #execute(number: number, task: Task, input: InputOut): Promise<void> {
    const [code, language, files, executionId, invocationId, turn, attempt] = input;
    const output = (isStdout: boolean) => (bytes: unknown) => {
      this.#output(number, isStdout, outputBytes(bytes, 'output'));
    };
    const { signal } = task.controller;
    const context = { invocationId, turn, attempt, signal, stdout: output(true), stderr: output(false) };
    try {
      const given = { code, language, inputFiles: filesOf(files), executionId };
      this.#executed(number, await this.#callbacks.execute(context, given));
    } catch (thrown) {
      this.#answer(number, 'refused', ...refusal(thrown));
    } finally {
      if (this.#tasks.get(number) === task) this.#tasks.delete(number);
    }
  }

  /** Answers with what an executor returned. The program has run: if it is no result, there is no other attempt. */
  #executed(number: number, returned: unknown): void {
    try {
      const { stdout, stderr, files, exitCode } = readResult(returned, 'the result of an executor');
      this.#answer(number, 'executed', [stdout, stderr, files.map(fileIn), exitCode ?? null]);
    } catch (thrown) {
      this.#answer(number, 'refused', 'bad_input', `the executor failed: ${messageOf(thrown)}`);
    }
  }
}

/** Whether a reply is a stream: asynchronously iterable, or iterable, but for arrays and texts. */
function isStream(reply: unknown): reply is object {
  if (typeof reply !== 'object' || reply === null || Array.isArray(reply)) return false;
  const found = reply as { [Symbol.asyncIterator]?: unknown; [Symbol.iterator]?: unknown };
  return typeof found[Symbol.asyncIterator] === 'function' || typeof found[Symbol.iterator] === 'function';
}

function iteratorOf(stream: object): Iterator {
  const found = stream as Partial<AsyncIterable<unknown>> & Partial<Iterable<unknown>>;
  return (found[Symbol.asyncIterator]?.() ?? found[Symbol.iterator]?.()) as Iterator;
}

/** Closes a stream that nobody reads any more. There is nobody to tell of an error of its end. */
async function closed(stream: Iterator): Promise<void> {
  try {
    await stream.return?.();
  } catch {}
}
