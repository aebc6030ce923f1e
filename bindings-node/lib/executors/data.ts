// Inputs, results, contexts and errors of executors.
//
// In: objects of the caller's, in camel or snake case. Out: the objects that the native side takes and gives. The rules
// for files and sources are the native side's; this module checks JavaScript types alone.

import { Buffer } from 'node:buffer';
import { types } from 'node:util';

import type { CodeExecutionJson, ExecFile, ExecutorErrorCode } from '../../executors.js';
import type { AbortSignalLike } from '../../index.js';
import type { NativeFile, NativeInput, NativeOutput } from '../addon/native.js';
import { misuse } from '../crossing/misuse.js';
import { type Bag, object, option, optional, readSignal, refuseUnknownNames, wrongType } from '../crossing/options.js';

const CODES: readonly unknown[] = [
  'bad_input',
  'engine_missing',
  'engine_failed',
  'spawn',
  'staging',
  'unsupported',
  'cancelled',
  'other',
] satisfies ExecutorErrorCode[];

export function isErrorCode(given: unknown): given is ExecutorErrorCode {
  return CODES.includes(given);
}

/** A program did not start, or its call was cancelled. An event after the start is a result. */
export class ExecutorError extends Error {
  readonly code: ExecutorErrorCode;

  constructor(code: ExecutorErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    if (!isErrorCode(code)) wrongType('code', `one of ${CODES.map((known) => `'${known}'`).join(', ')}`, code);
    this.code = code;
  }

  static {
    Object.defineProperty(this.prototype, 'name', { value: 'ExecutorError', configurable: true, writable: true });
  }
}

/** The result of a program. */
export class CodeExecutionResult {
  stdout: string;
  stderr: string;
  outputFiles: ExecFile[];
  exitCode: number | null;

  constructor(fields: unknown = {}) {
    const { stdout, stderr, files, exitCode } = readResult(fields, 'the result');
    this.stdout = stdout;
    this.stderr = stderr;
    this.outputFiles = files.map(fileOf);
    this.exitCode = exitCode ?? null;
  }

  static fromJSON(json: unknown): CodeExecutionResult {
    return new CodeExecutionResult(json);
  }

  isSuccess(): boolean {
    return this.exitCode === null ? this.stderr === '' : this.exitCode === 0;
  }

  combinedOutput(): string {
    if (this.stderr === '') return this.stdout;
    if (this.stdout === '') return this.stderr;
    return `${this.stdout}\n--- stderr ---\n${this.stderr}`;
  }

  toJSON(): CodeExecutionJson {
    return {
      stdout: this.stdout,
      stderr: this.stderr,
      output_files: this.outputFiles.map(fileToJSON),
      exit_code: this.exitCode,
    };
  }
}

/** The context of a call, read. */
export interface Context {
  readonly invocationId: string;
  readonly turn: number;
  readonly attempt: number;
  readonly signal: AbortSignalLike | undefined;
  readonly stdout: Function | undefined;
  readonly stderr: Function | undefined;
}

/** A file as the native side gives it: its name, its content and its media type. */
export type FileOut = [name: string, content: Uint8Array, mimeType: string | null];

const NO_CONTEXT: Context = {
  invocationId: '',
  turn: 0,
  attempt: 1,
  signal: undefined,
  stdout: undefined,
  stderr: undefined,
};

/** Reads the context of a call: that of a call by itself if none is given. */
export function readContext(given: unknown): Context {
  if (given === undefined || given === null) return NO_CONTEXT;
  const bag = object(given, 'ctx');
  refuseUnknownNames(bag, Object.keys(NO_CONTEXT));
  const invocationId = optional(option(bag, 'invocationId'), 'string', 'ctx.invocationId') as string | undefined;
  return {
    invocationId: invocationId === undefined ? '' : wellFormed(invocationId, 'ctx.invocationId'),
    turn: count(option(bag, 'turn'), 'ctx.turn', 0),
    attempt: count(option(bag, 'attempt'), 'ctx.attempt', 1),
    signal: readSignal(option(bag, 'signal')),
    stdout: optional(option(bag, 'stdout'), 'function', 'ctx.stdout') as Function | undefined,
    stderr: optional(option(bag, 'stderr'), 'function', 'ctx.stderr') as Function | undefined,
  };
}

/** Reads an input. A text that is no Unicode is an error of the call, as the native side's other rules for inputs are. */
export function readInput(given: unknown): NativeInput {
  const bag = object(given, 'input');
  const read = fields(bag, ['code', 'language', 'inputFiles', 'executionId']);
  const [code, language] = [text(read('code'), 'input.code'), text(read('language'), 'input.language')];
  const executionId = optionalText(read('executionId'), 'input.executionId');
  for (const given of [code, language, executionId ?? '']) {
    if (!given.isWellFormed()) throw new ExecutorError('bad_input', 'a text of the input has a lone surrogate');
  }
  return { code, language, files: readFiles(read('inputFiles'), 'input.inputFiles'), executionId };
}

/** Reads the result of an executor. */
export function readResult(given: unknown, place: string): NativeOutput {
  if (typeof given !== 'object' || given === null) wrongType(place, 'a CodeExecutionResult or an object', given);
  const bag = object(given, place);
  const read = fields(bag, ['stdout', 'stderr', 'outputFiles', 'exitCode']);
  const exitCode = read('exitCode');
  if (exitCode !== undefined && typeof exitCode !== 'number') wrongType('exitCode', 'a number or null', exitCode);
  if (exitCode !== undefined && ((exitCode as number) | 0) !== exitCode) {
    throw misuse({ kind: 'range', message: `exitCode must be an integer of 32 bits, got ${String(exitCode)}` });
  }
  return {
    stdout: text(read('stdout'), 'stdout'),
    stderr: text(read('stderr'), 'stderr'),
    files: readFiles(read('outputFiles'), 'outputFiles'),
    exitCode: exitCode as number | undefined,
  };
}

/** Reads files. */
export function readFiles(given: unknown, place: string): NativeFile[] {
  if (given === undefined || given === null) return [];
  if (types.isProxy(given) || !Array.isArray(given)) wrongType(place, 'an array of files', given);
  // A hole is an undefined file.
  return Array.from(given as unknown[], (file, index) => readFile(file, `${place}[${index}]`));
}

function readFile(given: unknown, place: string): NativeFile {
  const bag = object(given, place);
  const read = fields(bag, ['name', 'content', 'mimeType']);
  const name = read('name');
  if (typeof name !== 'string') wrongType(`${place}.name`, 'a string', name);
  const mimeType = optionalText(read('mimeType'), `${place}.mimeType`);
  return {
    name: wellFormed(name, `${place}.name`),
    content: bytes(read('content'), `${place}.content`),
    mimeType: mimeType === undefined ? undefined : wellFormed(mimeType, `${place}.mimeType`),
  };
}

/** The bytes of a file; a text is base64, as in JSON. */
function bytes(given: unknown, place: string): Uint8Array {
  if (typeof given !== 'string') return binary(given) ?? wrongType(place, 'bytes, or base64', given);
  const decoded = Buffer.from(given, 'base64');
  if (decoded.toString('base64') !== given) {
    throw misuse({ kind: 'range', message: `${place} is no base64; give a text as bytes: new TextEncoder().encode(text)` });
  }
  return new Uint8Array(decoded.buffer, decoded.byteOffset, decoded.byteLength);
}

/** Bytes of a stream, which may be given as a text. */
export function outputBytes(given: unknown, place: string): Uint8Array {
  if (typeof given === 'string') return Buffer.from(given);
  return binary(given) ?? wrongType(place, 'bytes or a string', given);
}

function binary(given: unknown): Uint8Array | undefined {
  if (types.isUint8Array(given)) return given;
  if (ArrayBuffer.isView(given)) return new Uint8Array(given.buffer, given.byteOffset, given.byteLength);
  return types.isAnyArrayBuffer(given) ? new Uint8Array(given) : undefined;
}

/** A file as the native side reads it. Memory that is shared with other threads does not cross. */
export function fileIn({ name, content, mimeType }: NativeFile): FileOut {
  const bytes = types.isSharedArrayBuffer(content.buffer) ? content.slice() : content;
  return [name, bytes, mimeType ?? null];
}

/** A file of the caller's. */
export function fileOf({ name, content, mimeType }: NativeFile): ExecFile {
  return { name, content, mimeType: mimeType ?? null };
}

/** Files that the native side gave. */
export function filesOf(files: FileOut[]): ExecFile[] {
  return files.map(([name, content, mimeType]) => ({ name, content, mimeType }));
}

/** A result that the native side gave. */
export function resultOf(fields: { stdout: string; stderr: string; exitCode: number | null }, files: FileOut[]): CodeExecutionResult {
  const result = new CodeExecutionResult();
  result.stdout = fields.stdout;
  result.stderr = fields.stderr;
  result.outputFiles = filesOf(files);
  result.exitCode = fields.exitCode;
  return result;
}

/** The JSON form of a file. */
function fileToJSON({ name, content, mimeType }: ExecFile): CodeExecutionJson['output_files'][number] {
  const { buffer, byteOffset, byteLength } = content;
  return { name, content: Buffer.from(buffer, byteOffset, byteLength).toString('base64'), mime_type: mimeType ?? null };
}

/** Reads fields by their names in camel case, or in snake case as JSON has them. `null` is as if not given. */
function fields(bag: Bag, names: string[]): (name: string) => unknown {
  const snake = new Map(names.map((name) => [name, name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)]));
  const known = new Set([...names, ...snake.values()]);
  for (const key of Object.keys(bag)) if (!known.has(key)) refuseUnknownNames({ [key]: undefined }, names);
  return (name) => option(bag, name) ?? option(bag, snake.get(name) as string) ?? undefined;
}

function text(given: unknown, place: string): string {
  if (given === undefined) return '';
  if (typeof given !== 'string') wrongType(place, 'a string', given);
  return given;
}

function optionalText(given: unknown, place: string): string | undefined {
  return given === undefined ? undefined : text(given, place);
}

/** The text, which has no lone surrogate. */
export function wellFormed(given: string, place: string): string {
  if (!given.isWellFormed()) throw misuse({ kind: 'type', message: `${place} has a lone surrogate` });
  return given;
}

function count(given: unknown, place: string, least: number): number {
  if (given === undefined) return least;
  if (typeof given !== 'number') wrongType(place, 'a number', given);
  if (!Number.isInteger(given) || given < least || given > 0xffff_ffff) {
    throw misuse({ kind: 'range', message: `${place} must be a whole number of at least ${least}, got ${given}` });
  }
  return given;
}
