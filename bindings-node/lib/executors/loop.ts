// The loop: a model writes programs, an executor runs them, and the model sees their outcomes, until it answers.
//
// In: a model, an executor and options; then a text or contents. Out: events as they happen, and one result. The loop
// itself is native; `loop-run.ts` calls the model and the executor for it.

import type { LoopEvent, LoopResult } from '../../executors.js';
import type { AbortSignalLike } from '../../index.js';
import { native } from '../addon/connection.js';
import { misuse } from '../crossing/misuse.js';
import { type Bag, EMPTY, object, option, optional, readSignal, refuseUnknownNames, wrongType } from '../crossing/options.js';
import { Door } from '../door/door.js';
import { fileIn, readFiles, wellFormed } from './data.js';
import { json } from './json.js';
import { LibraryExecutor, type Traits } from './library.js';
import { LoopRun } from './loop-run.js';
import type { Callbacks } from './questions.js';

const IN_JSON = {
  instruction: 'string',
  maxTurns: 'number',
  executionId: 'string',
  codeBlocks: undefined,
  resultDelimiters: undefined,
  asText: undefined,
  maxOutputBytes: 'number',
} as const;
const NAMES = ['model', 'executor', 'files', ...Object.keys(IN_JSON)];

/** The delimiters of an executor that has none of its own. */
const DELIMITERS = [
  ['```tool_code\n', '\n```'],
  ['```python\n', '\n```'],
];

/** Streams whose reader has gone end their runs. */
const left = new FinalizationRegistry<LoopRun>((run) => run.leave());

export class CodeLoop {
  readonly #door: Door;
  readonly #callbacks: Callbacks;

  constructor(options: unknown) {
    const bag = object(options, 'options');
    refuseUnknownNames(bag, NAMES);
    const model = party(option(bag, 'model'), 'model', 'generate', 'an object with a method generate');
    const executor = option(bag, 'executor');
    const execute = party(executor, 'executor', 'executeCode', 'an object with a method executeCode, or a function');
    this.#callbacks = { generate: model, execute };
    const files = option(bag, 'files');
    if (files === null) wrongType('files', 'an array of files', files);
    this.#door = new Door('code-loop', {
      options: readOptions(bag),
      files: files === undefined ? undefined : readFiles(files, 'files').map(fileIn),
      traits: readTraits(executor),
    });
  }

  run(input: unknown, options?: unknown): Promise<LoopResult> {
    const signal = readRunOptions(options);
    const run = this.#prepared(input, false, signal);
    run.begin();
    return run.awaited();
  }

  stream(input: unknown, options?: unknown): LoopStream {
    const signal = readRunOptions(options);
    return new LoopStream(this.#prepared(input, true, signal));
  }

  get [Symbol.toStringTag](): string {
    return 'CodeLoop';
  }

  #prepared(input: unknown, streams: boolean, signal: AbortSignalLike | undefined): LoopRun {
    const text = json(input, 'the input');
    // A run checks its input itself, and begins with the first event that is read.
    if (streams) this.#door.ask('check', [text]);
    return new LoopRun(this.#door, text, streams, this.#callbacks, signal);
  }
}

/** The events of a run: an asynchronous iterator. The run goes on while it is read, and ends with it. */
export class LoopStream {
  readonly #run: LoopRun;

  constructor(run: LoopRun) {
    this.#run = run;
    left.register(this, run, this);
  }

  get result(): LoopResult | undefined {
    return this.#run.resultRead;
  }

  cancel(): void {
    this.#run.stop();
  }

  next(): Promise<IteratorResult<LoopEvent, undefined>> {
    return this.#run.next(this);
  }

  async return(): Promise<IteratorResult<LoopEvent, undefined>> {
    left.unregister(this);
    await this.#run.close();
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.return();
  }

  get [Symbol.toStringTag](): string {
    return 'LoopStream';
  }
}

/** The method of a model or an executor, bound to it; or else an executor that is a function. */
function party(given: unknown, name: string, method: string, expected: string): Function {
  if ((typeof given !== 'object' && typeof given !== 'function') || given === null) wrongType(name, expected, given);
  const found = option(given as Bag, method);
  if (typeof found === 'function') return (...args: unknown[]) => Reflect.apply(found, given, args) as unknown;
  if (typeof given !== 'function' || name !== 'executor') return wrongType(name, expected, given);
  if (isClass(given)) throw misuse({ kind: 'type', message: native.wrongType(name, expected, 'a class') });
  return given;
}

/** Whether a function can only be called with `new`. */
function isClass(given: Function): boolean {
  return Object.getOwnPropertyDescriptor(given, 'prototype')?.writable === false;
}

/** Whether an executor is one of the library, which ends its calls when their time is over. */
function keepsTime(executor: unknown): boolean {
  if (!(executor instanceof LibraryExecutor)) return false;
  return ['executeCode', 'timeoutMs'].every((name) => {
    let owner: object | null = executor;
    while (owner !== null && !Object.hasOwn(owner, name)) owner = Object.getPrototypeOf(owner) as object | null;
    return owner === LibraryExecutor.prototype;
  });
}

/** The properties of an executor of the caller's that the loop asks for. */
function readTraits(executor: unknown): Traits {
  const read = (name: string): unknown => option(executor as Bag, name);
  const [stateful, attempts, time] = [read('stateful') ?? false, read('errorRetryAttempts') ?? 2, read('timeoutMs')];
  if (typeof stateful !== 'boolean') wrongType('executor.stateful', 'a boolean', stateful);
  if (typeof attempts !== 'number') wrongType('executor.errorRetryAttempts', 'a number', attempts);
  if (!Number.isInteger(attempts) || attempts < 0) {
    throw misuse({ kind: 'range', message: `executor.errorRetryAttempts must be a whole number of at least 0, got ${attempts}` });
  }
  if (time !== undefined && time !== null && typeof time !== 'number') return wrongType('executor.timeoutMs', 'a number or null', time);
  const delimiters = readPairs(read('codeBlockDelimiters') ?? DELIMITERS, 'executor.codeBlockDelimiters');
  return [stateful, Math.min(attempts, 0xffff_ffff), time === undefined ? 30_000 : time, keepsTime(executor), delimiters];
}

function readPairs(given: unknown, place: string): [string, string][] {
  if (!Array.isArray(given)) wrongType(place, 'an array of pairs of strings', given);
  return Array.from(given as unknown[], (pair) => {
    if (!Array.isArray(pair) || pair.length !== 2) wrongType(place, 'an array of pairs of strings', given);
    return (pair as unknown[]).map((text) => (typeof text === 'string' ? wellFormed(text, place) : wrongType(place, 'an array of pairs of strings', given))) as [string, string];
  });
}

/** The options that the native side reads, as JSON. It checks those that have no type here. */
function readOptions(bag: Bag): string {
  const given: string[] = [];
  for (const [name, type] of Object.entries(IN_JSON)) {
    const value = option(bag, name);
    if (value === undefined) continue;
    if (type !== undefined) optional(value, type, name);
    if (typeof value === 'number' && !Number.isFinite(value)) {
      throw misuse({ kind: 'range', message: `${name} must be a whole number of at least 1, got ${value}` });
    }
    // One pair is a list of one.
    given.push(`"${name}":${json(name === 'resultDelimiters' && isPair(value) ? [value] : value, name)}`);
  }
  return `{${given.join(',')}}`;
}

function isPair(value: unknown): boolean {
  return Array.isArray(value) && value.length === 2 && value.every((text) => typeof text === 'string');
}

function readRunOptions(options: unknown): AbortSignalLike | undefined {
  const bag = options === undefined ? EMPTY : object(options, 'options');
  refuseUnknownNames(bag, ['signal']);
  return readSignal(option(bag, 'signal'));
}
