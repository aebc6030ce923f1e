// A caller's options of sessions, as the core's requests.
//
// In: the arguments of a session's methods. Out: frames, or a TypeError. The core checks the options and words the
// errors. This module only checks their JavaScript types, as `run/options.ts` does for runs.

import type { AbortSignalLike } from '../../index.js';
import { CellFlag, SessionFlag } from '../addon/wire.js';
import type { Encoder, Numbering } from '../crossing/encode.js';
import { type Bag, EMPTY, NONE, declaredOption, object, option, optional, readSignal, refuseUnknown, wrongType } from '../crossing/options.js';
import { type Imports, isJavaScript, readImports, writeInputs, writeModules, writeNames } from '../run/options.js';
import { reasonText } from '../run/reason.js';

/** The options of a session, read but not yet written. */
export interface SessionOptions {
  readonly imports: Imports;
  readonly modules: Bag;
  readonly globals: Bag;
  readonly javascript: boolean;
  readonly memoryLimitBytes: number | undefined;
  readonly report: Function | undefined;
  readonly interleave: boolean;
  readonly checkpointBytes: number | undefined;
}

/** The options of a cell or a call. */
export interface CellOptions {
  /** The name of a call. */
  readonly name: string;
  readonly filename: string | undefined;
  readonly language: string | undefined;
  readonly report: Function | undefined;
  readonly timeoutMs: number | undefined;
  readonly signal: AbortSignalLike | undefined;
}

/** The parts of an update: values, and names that are taken away. */
export interface Update {
  readonly modules: Bag;
  readonly globals: Bag;
  readonly imports: Imports;
  readonly removed: readonly [modules: string[], globals: string[], imports: string[]];
}

const NO_OPTIONS: CellOptions = {
  name: '',
  filename: undefined,
  language: undefined,
  report: undefined,
  timeoutMs: undefined,
  signal: undefined,
};

/** Reads the options of a session. Throws a TypeError for one that is unknown or of the wrong type. */
export function readSessionOptions(options: unknown): SessionOptions {
  const bag = options === undefined ? EMPTY : object(options, 'options');
  refuseUnknown('session', bag);
  const imports = option(bag, 'imports');
  const modules = option(bag, 'modules');
  const globals = option(bag, 'globals');
  return {
    imports: imports === undefined ? NONE : readImports(imports),
    modules: modules === undefined ? EMPTY : object(modules, 'modules'),
    globals: globals === undefined ? EMPTY : object(globals, 'globals'),
    javascript: isJavaScript(option(bag, 'language')),
    memoryLimitBytes: declaredOption('session', bag, 'memoryLimitBytes') as number | undefined,
    report: optional(option(bag, 'report'), 'function', 'report') as Function | undefined,
    interleave: declaredOption('session', bag, 'cells') === 'interleave',
    checkpointBytes: declaredOption('session', bag, 'checkpointBytes') as number | undefined,
  };
}

/** Reads the options of a cell. Throws as {@link readSessionOptions} does. */
export function readCellOptions(options: unknown): CellOptions {
  if (options === undefined) return NO_OPTIONS;
  const bag = object(options, 'options');
  refuseUnknown('cell', bag);
  return {
    name: '',
    filename: declaredOption('cell', bag, 'filename') as string | undefined,
    language: declaredOption('cell', bag, 'language') as string | undefined,
    report: optional(option(bag, 'report'), 'function', 'report') as Function | undefined,
    timeoutMs: declaredOption('cell', bag, 'timeoutMs') as number | undefined,
    signal: readSignal(option(bag, 'signal')),
  };
}

/** Reads the first argument of a call: a name, or an object with a name and options. */
export function readCallOptions(what: unknown): CellOptions {
  if (typeof what === 'string') return { ...NO_OPTIONS, name: what };
  if (typeof what !== 'object' || what === null) wrongType('name', 'a string', what);
  const bag = object(what, 'options');
  refuseUnknown('call', bag);
  const name = option(bag, 'name');
  if (typeof name !== 'string') wrongType('name', 'a string', name);
  return {
    name,
    filename: undefined,
    language: undefined,
    report: optional(option(bag, 'report'), 'function', 'report') as Function | undefined,
    timeoutMs: declaredOption('call', bag, 'timeoutMs') as number | undefined,
    signal: readSignal(option(bag, 'signal')),
  };
}

/** Reads an update. A name with the value `null` is taken away. */
export function readUpdate(update: unknown): Update {
  const bag = object(update, 'options');
  refuseUnknown('update', bag);
  const [modules, noModules] = divided(option(bag, 'modules'), 'modules');
  const [globals, noGlobals] = divided(option(bag, 'globals'), 'globals');
  const [imports, noImports] = divided(option(bag, 'imports'), 'imports');
  return { modules, globals, imports: readImports(imports), removed: [noModules, noGlobals, noImports] };
}

/** Writes the request for a session. Throws a SerializationError, or the exception of a getter among the values. */
export function writeSession(out: Encoder, options: SessionOptions, numbering: Numbering): void {
  const { memoryLimitBytes, checkpointBytes } = options;
  out.u8(
    (options.javascript ? SessionFlag.JavaScript : 0) |
      (options.report === undefined ? 0 : SessionFlag.Report) |
      (memoryLimitBytes === undefined ? 0 : SessionFlag.MemoryLimit) |
      (options.interleave ? SessionFlag.Interleave : 0) |
      (checkpointBytes === undefined ? 0 : SessionFlag.Checkpoint),
  );
  if (memoryLimitBytes !== undefined) out.f64(memoryLimitBytes);
  if (checkpointBytes !== undefined) out.f64(checkpointBytes);
  writeModules(out, options.modules);
  writeInputs(out, options.globals, options.imports, numbering);
}

/** Writes the request for a cell. */
export function writeCell(out: Encoder, source: string, options: CellOptions): void {
  writeCellHead(out, options);
  if (options.filename !== undefined) out.text(options.filename);
  out.source(source);
}

/** Writes the request for a call. Throws as {@link writeSession} does. */
export function writeCall(out: Encoder, options: CellOptions, args: readonly unknown[], numbering: Numbering): void {
  writeCellHead(out, options);
  out.text(options.name);
  out.begin(numbering);
  out.value(args, 'args');
}

/** Writes an update. Throws as {@link writeSession} does. */
export function writeUpdate(out: Encoder, update: Update, numbering: Numbering): void {
  for (const names of update.removed) writeNames(out, names);
  writeModules(out, update.modules);
  writeInputs(out, update.globals, update.imports, numbering);
}

function writeCellHead(out: Encoder, { language, report, filename, timeoutMs, signal }: CellOptions): void {
  const ended = signal?.aborted === true ? reasonText(signal.reason) : undefined;
  out.u8(
    (language === 'javascript' ? CellFlag.JavaScript : 0) |
      (language === 'typescript' ? CellFlag.TypeScript : 0) |
      (report === undefined ? 0 : CellFlag.Report) |
      (filename === undefined ? 0 : CellFlag.Filename) |
      (timeoutMs === undefined ? 0 : CellFlag.Timeout) |
      (ended === undefined ? 0 : CellFlag.Ended),
  );
  if (timeoutMs !== undefined) out.f64(timeoutMs);
  if (ended !== undefined) out.text(ended);
}

/** The entries of an object, and the keys of those that are `null`. */
function divided(value: unknown, name: string): [Bag, string[]] {
  if (value === undefined) return [EMPTY, []];
  const bag = object(value, name);
  const removed: string[] = [];
  const kept: Record<string, unknown> = Object.create(null) as Record<string, unknown>;
  for (const key of Object.keys(bag)) {
    const entry = bag[key];
    if (entry === null) removed.push(key);
    else kept[key] = entry;
  }
  return [kept, removed];
}
