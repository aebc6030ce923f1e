/**
 * Executors of code that a model wrote, and the loop in which it writes code, sees what came of it, and goes on until it
 * answers.
 */

import type { AbortSignalLike, Runtime } from './index.js';

/** A file that a program finds in its working folder, or that it left there. */
export interface ExecFile {
  /** Without a folder. */
  name: string;
  content: Uint8Array;
  /** The media type, or `null` if it is not known. */
  mimeType: string | null;
}

/** A file as it may be given: as an {@link ExecFile}, or in its JSON form, whose content is base64. */
export interface ExecFileInput {
  name: string;
  /** Bytes. A text is base64. */
  content: ArrayBufferView | ArrayBufferLike | string;
  mimeType?: string | null | undefined;
  /** As `mimeType`, in JSON. */
  mime_type?: string | null | undefined;
}

/** A program to run. Missing fields are empty. An unknown key is a `TypeError`. */
export interface CodeExecutionInput {
  /** Its source. */
  code?: string;
  /** In lower case: `'python'`, `'shell'`. Empty is the executor's own. */
  language?: string;
  /** Files to put into its working folder. */
  inputFiles?: readonly ExecFileInput[];
  /** The state in which it runs, for executors that have one. */
  executionId?: string | null;
}

/** The fields of a result. */
export interface CodeExecutionFields {
  stdout?: string;
  stderr?: string;
  outputFiles?: readonly ExecFileInput[];
  exitCode?: number | null;
}

/** The JSON form of a result. */
export interface CodeExecutionJson {
  stdout: string;
  stderr: string;
  output_files: { name: string; content: string; mime_type: string | null }[];
  exit_code: number | null;
}

/** The result of a program. */
export class CodeExecutionResult {
  /** A result with those fields; the others are empty. */
  constructor(fields?: CodeExecutionFields | CodeExecutionJson);
  /** A result of its JSON form, in snake or camel case. */
  static fromJSON(json: CodeExecutionFields | CodeExecutionJson): CodeExecutionResult;
  stdout: string;
  stderr: string;
  /** The files that it made or changed. */
  outputFiles: ExecFile[];
  /** 128 + N after signal N. `null` after a timeout, or where it is not known. */
  exitCode: number | null;
  /** Whether the exit code is 0, or there is neither an exit code nor text in `stderr`. */
  isSuccess(): boolean;
  /** Both streams as one text, with a line between them unless one is empty. */
  combinedOutput(): string;
  /** The JSON form. */
  toJSON(): CodeExecutionJson;
}

/** The reason why a program did not start. `bad_input` and `cancelled` are not retried by the loop; all others are. */
export type ExecutorErrorCode =
  | 'bad_input'
  | 'engine_missing'
  | 'engine_failed'
  | 'spawn'
  | 'staging'
  | 'unsupported'
  | 'cancelled'
  | 'other';

/** A program did not start, or its call was cancelled. An event after the start is a result. */
export class ExecutorError extends Error {
  /** Throws a `TypeError` for a code that is none. */
  constructor(code: ExecutorErrorCode, message: string, options?: { cause?: unknown });
  readonly code: ExecutorErrorCode;
}

/** The context of a call, as the caller gives it. An unknown key is a `TypeError`. */
export interface InvocationContext {
  /** The run of the loop to which the call belongs. Default: none. */
  invocationId?: string;
  /** The turn of the loop, from 1; 0 outside of a loop. */
  turn?: number;
  /** The attempt, from 1. */
  attempt?: number;
  /**
   * Ends the program when it is aborted. The call rejects with an {@link ExecutorError} of the code `cancelled`, whose
   * `cause` is the signal's reason.
   */
  signal?: AbortSignalLike | undefined;
  /**
   * Receives the standard output as it comes. Of what waits for it, at most 4 MiB are kept. If it throws or rejects, the
   * call ends and rejects with that. The next piece waits for a promise, at most 5 seconds.
   */
  stdout?: ((bytes: Uint8Array) => void | PromiseLike<void>) | undefined;
  /** The same for the standard error. */
  stderr?: ((bytes: Uint8Array) => void | PromiseLike<void>) | undefined;
}

/** The context of a call, as the loop gives it to an executor. It may be handed on to an executor of the library. */
export interface LoopContext {
  invocationId: string;
  turn: number;
  attempt: number;
  /** Is aborted when nobody waits for the result any more. */
  signal: AbortSignal;
  /** Hands output of the program over as it comes. */
  stdout: (output: ArrayBufferView | ArrayBufferLike | string) => void;
  stderr: (output: ArrayBufferView | ArrayBufferLike | string) => void;
}

/** An input, as the loop gives it to an executor. */
export interface LoopInput {
  code: string;
  language: string;
  inputFiles: ExecFile[];
  executionId: string | null;
}

/** The text before a block of code, and the text behind it. */
export type CodeBlockDelimiters = [opening: string, closing: string];

/** Runs code that a model wrote. Calls of one executor may overlap. */
export interface CodeExecutor {
  /** Runs the code of the input to its end. An exception is retried by the loop; a result that is none has failed. */
  executeCode(ctx: LoopContext, input: LoopInput): CodeExecutionFields | Promise<CodeExecutionFields>;
  /** Whether calls with the same `executionId` share a state. Default `false`. */
  readonly stateful?: boolean;
  /** How often the loop tries in all if the program does not start. Default 2; 0 counts as 1. */
  readonly errorRetryAttempts?: number;
  /** The wall time of a call in milliseconds; `null` has no limit. Default 30,000. */
  readonly timeoutMs?: number | null;
  /** The fences between which the loop finds code in a text. */
  readonly codeBlockDelimiters?: readonly (readonly [opening: string, closing: string])[];
}

/** An executor of the library. */
export interface LibraryExecutor {
  /**
   * Runs the code of the input to its end. Throws a `TypeError` if a field has not its type, and rejects with an
   * {@link ExecutorError} if the program did not start.
   */
  executeCode(ctx: InvocationContext | null | undefined, input: CodeExecutionInput): Promise<CodeExecutionResult>;
  readonly stateful: boolean;
  readonly errorRetryAttempts: number;
  readonly timeoutMs: number | null;
  readonly codeBlockDelimiters: CodeBlockDelimiters[];
}

/** The options of other calls of an executor. An unknown key is a `TypeError`. */
export interface SignalOptions {
  /** Ends the call when it is aborted. It rejects with an {@link ExecutorError} of the code `cancelled`. */
  signal?: AbortSignalLike | undefined;
}

/** The options that all executors have. An unknown key is a `TypeError`. */
export interface CommonOptions {
  /** The wall time of a call, from the start of the program. `null`: no limit. Default 30,000. */
  timeoutMs?: number | null;
  /** How often the loop tries in all if the program does not start. Default 2. */
  retryAttempts?: number;
  /** The bytes of each stream that are kept. Default 1 MiB. */
  outputLimitBytes?: number;
}

/** The options of a {@link LocalCodeExecutor}. */
export interface LocalOptions extends CommonOptions {
  /** The program, by its path or from `PATH`. The code is its standard input. Default `'python3'`. */
  interpreter?: string;
  /** Its arguments. Default `['-']`. */
  args?: readonly string[];
  /** Variables, in place of the caller's of that name. One that is `undefined` is as if it were not given. */
  env?: Readonly<Record<string, string | undefined>>;
  /** Gives the program the caller's whole environment, with all keys in it. */
  inheritEnv?: boolean;
}

/**
 * Runs each call in a subprocess: `python3 -`, unless told otherwise.
 *
 * The program has a fresh working folder, a group of processes, which is killed at the end of the call, and a short
 * environment. It is not kept from anything that its caller may do: it is for code that you would run yourself.
 */
export class LocalCodeExecutor implements LibraryExecutor {
  /** Throws a `TypeError` or a `RangeError` for an option that is not valid. */
  constructor(options?: LocalOptions);
  executeCode(ctx: InvocationContext | null | undefined, input: CodeExecutionInput): Promise<CodeExecutionResult>;
  readonly stateful: boolean;
  readonly errorRetryAttempts: number;
  readonly timeoutMs: number | null;
  readonly codeBlockDelimiters: CodeBlockDelimiters[];
}

/** The options of a {@link ContainerCodeExecutor}. */
export interface ContainerOptions extends CommonOptions {
  /** The image. It is pulled before the first call if it is not there. Default `'python:3.12-slim'`. */
  image?: string;
  /** The program and its arguments. It reads the code from its standard input. Default `['python3', '-']`. */
  argv?: readonly string[];
  /** The most memory. Swap is none. Default `'256m'`. */
  memory?: string;
  /** The most processors. Default `'1.0'`. */
  cpus?: string | number;
  /** The most processes and threads. Default 128. */
  pidsLimit?: number;
  /** The user and group. Default `'65534:65534'`. */
  user?: string;
  /** Whether all capabilities are dropped, and no program may gain privileges. `false` is for debugging only. */
  dropCapabilities?: boolean;
  /** Arguments before the image. They can loosen everything. */
  extraArgs?: readonly string[];
  /** The engine's command line, by its path or from `PATH`. Default: `docker` if its daemon answers, else `podman`. */
  engine?: string;
  /** Whether a call without input files has a working folder, too, and so output files. */
  outputFiles?: boolean;
}

/**
 * Runs each call in a fresh container, without network, without capabilities, as nobody, on a file system that it cannot
 * write to but for `/tmp`. It does not protect from bugs of the kernel and the engine.
 */
export class ContainerCodeExecutor implements LibraryExecutor {
  /** An image, or options. Throws a `TypeError` or a `RangeError` for an option that is not valid. */
  constructor(options?: string | ContainerOptions);
  /** The arguments of the engine for a container of that name. */
  buildRunArgs(name: string): string[];
  /** The same, with that folder as the container's working folder. */
  buildRunArgsStaged(name: string, folder: string): string[];
  /**
   * Looks for the engine, and pulls the image if it is not there, which may take 10 minutes. The first call does it
   * otherwise, outside of its time.
   */
  prepare(options?: SignalOptions): Promise<void>;
  executeCode(ctx: InvocationContext | null | undefined, input: CodeExecutionInput): Promise<CodeExecutionResult>;
  readonly stateful: boolean;
  readonly errorRetryAttempts: number;
  readonly timeoutMs: number | null;
  readonly codeBlockDelimiters: CodeBlockDelimiters[];
}

/** An item of the confinement of a program. */
export type RequiredItem = 'privileges' | 'network' | 'fileSystem' | 'systemCalls' | 'processes' | 'resources';

/** The options of a {@link ConfinedCodeExecutor}. */
export interface ConfinedOptions extends CommonOptions {
  /** The program, by its path or from `PATH`. The code is its standard input. Default `'python3'`. */
  interpreter?: string;
  /** Its arguments. Default `['-']`. */
  args?: readonly string[];
  /** A number of bytes, or one with `k`, `m` or `g`. Default `'256m'`. */
  memory?: string;
  /** The most processes and threads of a program at a time. Default 128. */
  pidsLimit?: number;
  /** Variables beside `PATH`, `HOME`, `TMPDIR` and `LANG`, or in their place. One that is `undefined` is as if it were not given. */
  env?: Readonly<Record<string, string | undefined>>;
  /** Files and folders that the program may read, as absolute paths outside of `/work`, `/proc` and `/dev`. */
  readable?: readonly string[];
  /** The items without which no program runs. Default: all. */
  required?: readonly RequiredItem[];
}

/** The confinement that a program has on this machine. */
export interface ProgramConfinement {
  environment: boolean;
  descriptors: boolean;
  privileges: boolean;
  user: boolean;
  capabilities: boolean;
  network: boolean;
  fileSystem: boolean;
  processes: boolean;
  ipc: boolean;
  landlock: boolean;
  systemCalls: boolean;
  resources: boolean;
  /** Whether the limit of memory counts all processes of a program together, or each by itself. */
  memory: 'group' | 'process';
}

/**
 * Runs each call in a subprocess that is confined as Isolane's workers are: `python3 -`, unless told otherwise. It works on
 * Linux; elsewhere each call rejects with the code `unsupported`.
 *
 * The program reads the system's folders, its interpreter and the paths that it was given, and nothing else of this
 * machine. It may write to `/work`, where it starts, and to `/tmp`. It does not protect from bugs of the kernel in the calls
 * that interpreters need.
 */
export class ConfinedCodeExecutor implements LibraryExecutor {
  /** Throws a `TypeError` or a `RangeError` for an option that is not valid. */
  constructor(options?: ConfinedOptions);
  /** The confinement that a program has here. It starts a trial, and no program. */
  confinement(options?: SignalOptions): Promise<ProgramConfinement>;
  executeCode(ctx: InvocationContext | null | undefined, input: CodeExecutionInput): Promise<CodeExecutionResult>;
  readonly stateful: boolean;
  readonly errorRetryAttempts: number;
  readonly timeoutMs: number | null;
  readonly codeBlockDelimiters: CodeBlockDelimiters[];
}

/** The options of an {@link IsolateCodeExecutor}. */
export interface IsolateOptions extends CommonOptions {
  /** The language of code that names none. Default `'typescript'`. */
  language?: 'javascript' | 'typescript';
  /** Names that all code sees. Values are cloned when the executor is made; functions run in the host. */
  globals?: Record<string, any>;
  /** Bridged modules. One that is called `files` takes the place of the executor's own. */
  imports?: Record<string, Record<string, any>>;
  /** Modules that code may import, by a relative specifier such as `'./math.js'`. */
  modules?: Record<string, string>;
  /** The most memory of an isolate, in bytes. Default 128 MiB. */
  memoryLimitBytes?: number;
  /** The runtime of the isolates. Default: that of the process. */
  runtime?: Runtime;
  /** Where isolates live, in a runtime of this executor. */
  isolation?: 'thread' | 'process';
  /** Whether calls with the same `executionId` share an isolate. At most 100 stay, each for 30 minutes without use. */
  stateful?: boolean;
  /** Receives reported values. Reports are in no stream. */
  report?: (value: unknown) => void;
  /** Whether the value of the code is the last line of its output. Default `true`. */
  showValue?: boolean;
}

/**
 * Runs JavaScript and TypeScript in an isolate, with exactly the capabilities that it is given.
 *
 * The code needs no export: `return` and top-level `await` work, and the value of the last expression is printed. It has
 * the files of the call in a module `files`. Under isolation by thread a bug of the engine's C code is a bug of this
 * process: run code of strangers with `isolation: 'process'`.
 */
export class IsolateCodeExecutor implements LibraryExecutor {
  /**
   * Throws a `TypeError` or a `RangeError` for an option that is not valid, and a `SerializationError` for a value that
   * cannot be cloned.
   */
  constructor(options?: IsolateOptions);
  /** Closes all sessions, and ends the calls in them. A later call begins anew. */
  close(): Promise<void>;
  /** As {@link IsolateCodeExecutor.close}, for `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
  executeCode(ctx: InvocationContext | null | undefined, input: CodeExecutionInput): Promise<CodeExecutionResult>;
  readonly stateful: boolean;
  readonly errorRetryAttempts: number;
  readonly timeoutMs: number | null;
  readonly codeBlockDelimiters: CodeBlockDelimiters[];
}

/** A part of a content, known by its field, as on Gemini's wire. Other fields and parts go back as they came. */
export type Part = Record<string, unknown> & {
  text?: string;
  thought?: boolean;
  executableCode?: { language?: string; code?: string } & Record<string, unknown>;
  codeExecutionResult?: { outcome?: Outcome; output?: string } & Record<string, unknown>;
};

/** A part as it may be given: a {@link Part}, or an object of an interface with its fields, such as that of an SDK. */
export type PartInput =
  | Part
  | {
      text?: string | undefined;
      thought?: boolean | undefined;
      executableCode?: { language?: string | undefined; code?: string | undefined } | undefined;
      codeExecutionResult?: { outcome?: string | undefined; output?: string | undefined } | undefined;
    };

/** The words of one side, as they may be given. */
export interface ContentInput {
  role: 'user' | 'model';
  parts: readonly PartInput[];
}

/** The words of one side. */
export interface Content {
  role: 'user' | 'model';
  parts: Part[];
}

/** The outcome of a call, as a model is told. */
export type Outcome = 'OUTCOME_UNSPECIFIED' | 'OUTCOME_OK' | 'OUTCOME_FAILED' | 'OUTCOME_DEADLINE_EXCEEDED';

/** The question to a model. */
export interface ModelRequest {
  /** The instruction of the loop, or an empty text. */
  instruction: string;
  /** The conversation so far. */
  contents: Content[];
  /** Is aborted when nobody waits for the reply any more. */
  signal: AbortSignal;
}

/** A text, a part, or parts. They are plain data: what JSON would change, such as an `Error` or bytes, is a `TypeError`. */
export type ModelPart = string | PartInput | readonly PartInput[];

/** The words of a model as Gemini has them: its parts are the reply. */
export interface ModelContent {
  readonly role?: string;
  readonly parts: readonly PartInput[];
}

/** The reply of a model: all of it, or its pieces. A character of two halves may be split between two pieces of text. */
export type ModelReply = ModelPart | ModelContent | AsyncIterable<ModelPart> | Iterable<ModelPart>;

/** A language model, as the loop sees it. */
export interface Model {
  /** Goes on with a conversation. An exception ends the run, and is passed on as it is. */
  generate(request: ModelRequest): ModelReply | Promise<ModelReply>;
}

/** The reason why a run is over. */
export type Reason = 'answered' | 'max_turns' | 'cancelled';

/** The model is about to be asked. */
export interface TurnEvent {
  type: 'turn';
  /** From 1, here and in all events. */
  turn: number;
}

/** The model said something, as it comes. Thoughts are not said. */
export interface TextEvent {
  type: 'text';
  turn: number;
  text: string;
}

/** A program is about to run. */
export interface CodeEvent {
  type: 'code';
  turn: number;
  /** From 0 within the turn, here and in all events. */
  index: number;
  language: string;
  code: string;
}

/** A program printed something, as it comes. */
export interface OutputEvent {
  type: 'output';
  turn: number;
  index: number;
  stream: 'stdout' | 'stderr';
  text: string;
}

/** An attempt failed, and another one follows. */
export interface RetryEvent {
  type: 'retry';
  turn: number;
  index: number;
  attempt: number;
  error: string;
}

/** A program is done. */
export interface ResultEvent {
  type: 'result';
  turn: number;
  index: number;
  outcome: Outcome;
  /** The output as the model is shown it. */
  output: string;
  result: CodeExecutionResult;
  attempts: number;
  /** The time of all attempts together. */
  durationMs: number;
}

/** The run is over. */
export interface FinishEvent {
  type: 'finish';
  turn: number;
  reason: Reason;
  text: string;
}

/** An event of a run. */
export type LoopEvent = TurnEvent | TextEvent | CodeEvent | OutputEvent | RetryEvent | ResultEvent | FinishEvent;

/** The end of a run. */
export interface LoopResult {
  reason: Reason;
  /** The text of the last turn, without thoughts. */
  text: string;
  /** The whole conversation, with the code and its results. */
  contents: Content[];
  /** The files that programs left, the newest of each name, in the order of names. */
  files: ExecFile[];
  turns: number;
}

/** The options of a {@link CodeLoop}. An unknown key is a `TypeError`. */
export interface CodeLoopOptions {
  /** The model. */
  model: Model;
  /** An executor of the library or of your own, or its method as a function. */
  executor: LibraryExecutor | CodeExecutor | CodeExecutor['executeCode'];
  /** The instruction of the model. */
  instruction?: string;
  /** How often the model is asked at most. Default 16. */
  maxTurns?: number;
  /** Files that every program finds. */
  files?: readonly ExecFileInput[];
  /** The state of a stateful executor. By default each run has a new one. */
  executionId?: string;
  /** The delimiters of code in a text, in place of the executor's. */
  codeBlocks?: readonly (readonly [opening: string, closing: string])[];
  /** The delimiters of a result as text, as a list of one pair, or as the pair. Default: a fence `tool_output`. */
  resultDelimiters?: readonly [readonly [opening: string, closing: string]] | readonly [opening: string, closing: string];
  /** Whether code and results go back as text. `'auto'`: as the model said it. */
  asText?: 'auto' | boolean;
  /** The bytes of one result that the model is shown. Default 65,536. */
  maxOutputBytes?: number;
}

/** The options of a run. */
export interface LoopRunOptions {
  /** Ends the run with the reason `cancelled` when it is aborted. */
  signal?: AbortSignalLike | undefined;
}

/** A model with an executor for its code. Runs share nothing but these two. */
export class CodeLoop {
  /** Throws a `TypeError` or a `RangeError` for an option that is not valid. */
  constructor(options: CodeLoopOptions);
  /**
   * Runs until the model answers without code, or has no turn left. Throws a `TypeError` for an input that is none, and
   * rejects with whatever the model throws.
   */
  run(input: string | readonly ContentInput[], options?: LoopRunOptions): Promise<LoopResult>;
  /** Runs with events, as the stream is read. Throws as {@link CodeLoop.run}. */
  stream(input: string | readonly ContentInput[], options?: LoopRunOptions): LoopStream;
}

/** The events of a run. Leaving a `for await` ends the run; so does dropping the stream. It throws as the model does. */
export interface LoopStream extends AsyncIterableIterator<LoopEvent> {
  /** The result, when the last event was read. */
  readonly result: LoopResult | undefined;
  /** Ends the run, with the reason `cancelled`. The events until then can be read. */
  cancel(): void;
  /** The next event. The run begins with the first one. */
  next(): Promise<IteratorResult<LoopEvent, undefined>>;
  /** Ends the run, and the stream. */
  return(): Promise<IteratorResult<LoopEvent, undefined>>;
  [Symbol.asyncIterator](): this;
  /** As {@link LoopStream.return}, for `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
}

/** A model for tests, which gives the replies that it was told to give. With no reply left it fails. */
export class ScriptedModel implements Model {
  /** Replies with a text. This and the others throw a `TypeError` for a reply that is none. */
  pushText(text: string): void;
  /** Replies with a program. An empty language is none in particular. */
  pushCode(language: string, code: string): void;
  /** Replies with parts. */
  pushParts(parts: Iterable<PartInput>): void;
  /** Replies with a stream of parts, which ends with that error if there is one. */
  pushStream(parts: Iterable<PartInput | string>, error?: unknown): void;
  /** Fails: for a text with an `Error`. */
  pushError(error: unknown): void;
  /** The requests so far. */
  requests(): { instruction: string; contents: Content[] }[];
  generate(request: ModelRequest): Promise<ModelReply>;
}
