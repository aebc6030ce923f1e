// Executors of the library: subprocesses, containers, confined subprocesses.
//
// In: options as the caller wrote them, and inputs of calls. Out: promises of results. The native side checks the values
// of the options; this module checks their JavaScript types.

import { join } from 'node:path';

import type { ProgramConfinement as Confinement } from '../../executors.js';
import { bridge, folder, native } from '../bridge.js';
import { misuse } from '../misuse.js';
import type { Misuse, NativeExecutor, NativeTraits, ProgramOptions } from '../native.js';
import { type Bag, EMPTY, object, option, optional, refuseUnknownNames, wrongType } from '../options.js';
import { call } from './call.js';
import { type CodeExecutionResult, type Context, ExecutorError, type FileOut, readContext, readInput, resultOf, wellFormed } from './data.js';

/** A result as the native side gives it. */
type ResultOut = [stdout: string, stderr: string, files: FileOut[], exitCode: number | null];

let isExecutor: (value: unknown) => boolean;

/** The native side of an executor. */
export let nativeExecutor: (executor: LibraryExecutor) => NativeExecutor;

/** An executor of the library. */
export abstract class LibraryExecutor {
  readonly #native: NativeExecutor;

  static {
    isExecutor = (value) => typeof value === 'object' && value !== null && #native in value;
    nativeExecutor = (executor) => executor.#native;
  }

  constructor(made: NativeExecutor | Misuse) {
    if (Object.hasOwn(made, 'message')) throw misuse(made as Misuse);
    this.#native = made as NativeExecutor;
  }

  executeCode(ctx: unknown, input: unknown): Promise<CodeExecutionResult> {
    if (!isExecutor(this)) throw misuse({ kind: 'type', message: 'executeCode must be called as a method of an executor of the library' });
    const context = readContext(ctx);
    let read;
    try {
      read = readInput(input);
    } catch (error) {
      if (error instanceof ExecutorError) return Promise.reject(error);
      throw error;
    }
    const given = {
      invocationId: context.invocationId,
      turn: context.turn,
      attempt: context.attempt,
      wantsStdout: context.stdout !== undefined,
      wantsStderr: context.stderr !== undefined,
      isCancelled: context.signal?.aborted === true,
    };
    return call(() => this.began(native.startExecution(bridge, this.#native, given, read)), readOut, context);
  }

  /** Takes note of a call that has begun, and returns its number. */
  protected began(begun: Begun): number {
    return begun.work;
  }

  get stateful(): boolean {
    return this.#traits.stateful;
  }

  get errorRetryAttempts(): number {
    return this.#traits.attempts;
  }

  get timeoutMs(): number | null {
    return (option(this.#traits as unknown as Bag, 'timeoutMs') as number | undefined) ?? null;
  }

  get codeBlockDelimiters(): [string, string][] {
    return this.#traits.delimiters as [string, string][];
  }

  get #traits(): NativeTraits {
    return native.executorTraits(this.#native);
  }
}

type Begun = ReturnType<typeof native.startExecution>;

export class LocalCodeExecutor extends LibraryExecutor {
  constructor(options?: unknown) {
    super(native.openLocalExecutor(read(options, OF_LOCAL)));
  }

  get [Symbol.toStringTag](): string {
    return 'LocalCodeExecutor';
  }
}

export class ContainerCodeExecutor extends LibraryExecutor {
  constructor(options?: unknown) {
    super(native.openContainerExecutor(read(typeof options === 'string' ? { image: options } : options, OF_CONTAINER)));
  }

  buildRunArgs(name: unknown): string[] {
    return native.buildRunArgs(nativeExecutor(this), text(name, 'name'), null);
  }

  buildRunArgsStaged(name: unknown, folder: unknown): string[] {
    return native.buildRunArgs(nativeExecutor(this), text(name, 'name'), text(folder, 'folder'));
  }

  prepare(options?: unknown): Promise<void> {
    return call(() => native.prepareExecutor(bridge, nativeExecutor(this)), ignore, onlySignal(options));
  }

  get [Symbol.toStringTag](): string {
    return 'ContainerCodeExecutor';
  }
}

export class ConfinedCodeExecutor extends LibraryExecutor {
  constructor(options?: unknown) {
    const worker = process.env['ISOLANE_WORKER'] || join(folder, 'isolane-worker');
    super(native.openConfinedExecutor(worker, read(options, OF_CONFINED)));
  }

  confinement(options?: unknown): Promise<Confinement> {
    return call(() => native.executorConfinement(bridge, nativeExecutor(this)), (had: Confinement) => had, onlySignal(options));
  }

  get [Symbol.toStringTag](): string {
    return 'ConfinedCodeExecutor';
  }
}

/** The options of a call that has a signal and nothing else. */
function onlySignal(options: unknown): Context {
  const bag = options === undefined ? EMPTY : object(options, 'options');
  refuseUnknownNames(bag, ['signal']);
  return readContext({ signal: option(bag, 'signal') });
}

/** For calls that have no result. */
export function ignore(_: unknown): void {}

function readOut([stdout, stderr, files, exitCode]: ResultOut): CodeExecutionResult {
  return resultOf({ stdout, stderr, exitCode }, files);
}

type Reader = (value: unknown, name: string) => unknown;

const number: Reader = (value, name) => optional(value, 'number', name);
const line: Reader = (value, name) => text(value, name);
const flag: Reader = (value, name) => (typeof value === 'boolean' ? value : wrongType(name, 'a boolean', value));

const lines: Reader = (value, name) => {
  if (!Array.isArray(value)) wrongType(name, 'an array of strings', value);
  return Array.from(value as unknown[], (item, index) => text(item, `${name}[${index}]`));
};

const pairs: Reader = (value, name) => {
  const bag = object(value, name);
  // A variable that is undefined is not set, as with `child_process`: `env: process.env` is such an object for TypeScript.
  const given = Object.keys(bag).map((key): [string, unknown] => [key, bag[key]]);
  return given.flatMap(([key, value]) => (value === undefined ? [] : [[wellFormed(key, name), text(value, `${name}.${key}`)]]));
};

const ITEMS: Readonly<Record<string, string>> = {
  privileges: 'privileges',
  network: 'network',
  fileSystem: 'file_system',
  systemCalls: 'system_calls',
  processes: 'processes',
  resources: 'resources',
};

const items: Reader = (value, name) =>
  (lines(value, name) as string[]).map((item, index) => {
    const names = Object.keys(ITEMS).map((known) => `'${known}'`);
    return Object.hasOwn(ITEMS, item) ? ITEMS[item] : wrongType(`${name}[${index}]`, `one of ${names.join(', ')}`, item);
  });

/** The options of programs but for `timeoutMs`. */
const COMMON = { retryAttempts: number, outputLimitBytes: number };
const OF_LOCAL = { interpreter: line, args: lines, env: pairs, inheritEnv: flag, ...COMMON };
const OF_CONFINED = { interpreter: line, args: lines, env: pairs, memory: line, pidsLimit: number, readable: lines, required: items, ...COMMON };
const OF_CONTAINER = {
  image: line,
  argv: lines,
  memory: line,
  cpus: ((value, name) => (typeof value === 'number' ? String(value) : text(value, name))) as Reader,
  pidsLimit: number,
  user: line,
  dropCapabilities: flag,
  extraArgs: lines,
  engine: line,
  outputFiles: flag,
  ...COMMON,
};

/** Reads the options that are given. Throws for one that is unknown or of the wrong type. */
function read(options: unknown, readers: Readonly<Record<string, Reader>>): ProgramOptions {
  const bag: Bag = options === undefined ? EMPTY : object(options, 'options');
  refuseUnknownNames(bag, [...Object.keys(readers), 'timeoutMs']);
  // The native side reads options that are not given, too: from no polluted prototype.
  const given = { __proto__: null } as unknown as Record<string, unknown>;
  const timeoutMs = option(bag, 'timeoutMs');
  if (timeoutMs === null) given['withoutTimeout'] = true;
  else if (timeoutMs !== undefined && typeof timeoutMs !== 'number') wrongType('timeoutMs', 'a number or null', timeoutMs);
  else if (timeoutMs !== undefined) given['timeoutMs'] = timeoutMs;
  for (const [name, reader] of Object.entries(readers)) {
    const value = option(bag, name);
    if (value !== undefined) given[name] = reader(value, name);
  }
  return given;
}

function text(value: unknown, name: string): string {
  if (typeof value !== 'string') wrongType(name, 'a string', value);
  // No argument and no variable of a program can have one.
  if (value.includes('\0')) throw misuse({ kind: 'range', message: `${name} must not contain NUL` });
  return wellFormed(value, name);
}

