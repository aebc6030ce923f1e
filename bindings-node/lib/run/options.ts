// A caller's options of a run, as the core's request.
//
// In: the arguments of `runCode`. Out: one frame with the names, the sources and one message with all values; or
// a TypeError. The core checks the options and words the errors. This module only checks their JavaScript types.

import { types } from 'node:util';

import type { AbortSignalLike } from '../../index.js';
import { RequestFlag } from '../addon/wire.js';
import type { Encoder, Numbering } from '../crossing/encode.js';
import {
  type Bag,
  EMPTY,
  NONE,
  checkedOption,
  namesOf,
  object,
  option,
  optional,
  readSignal,
  refuseUnknown,
  refuseUnknownNames,
  wrongType,
} from '../crossing/options.js';
import { notCloneable, segment } from '../crossing/serialization-error.js';

/** The options of a run, read but not yet written. */
export interface RunOptions {
  readonly fn: string | undefined;
  readonly args: readonly unknown[];
  readonly imports: Imports;
  readonly modules: Bag;
  readonly globals: Bag;
  readonly javascript: boolean;
  readonly memoryLimitBytes: number | undefined;
  readonly filename: string | undefined;
  readonly report: Function | undefined;
  readonly timeoutMs: number | undefined;
  readonly signal: AbortSignalLike | undefined;
}

/** Bridged modules by specifier. */
export type Imports = readonly (readonly [specifier: string, entry: Bag])[];

const DEFAULTS: RunOptions = {
  fn: undefined,
  args: NONE,
  imports: NONE,
  modules: EMPTY,
  globals: EMPTY,
  javascript: false,
  memoryLimitBytes: undefined,
  filename: undefined,
  report: undefined,
  timeoutMs: undefined,
  signal: undefined,
};

/** The options that a run has in a kit besides its own. */
const OF_KIT = ['timeoutMs', 'signal'];

/** Reads the options of a run. Throws a TypeError for one that is unknown or of the wrong type. */
export function readOptions(options: unknown, inKit = false): RunOptions {
  if (options === undefined) return DEFAULTS;
  const bag = object(options, 'options');
  if (inKit) refuseUnknownNames(bag, [...namesOf('run'), ...OF_KIT]);
  else refuseUnknown('run', bag);
  const execute = option(bag, 'execute');
  const imports = option(bag, 'imports');
  const modules = option(bag, 'modules');
  const globals = option(bag, 'globals');
  const language = option(bag, 'language');
  const memoryLimitBytes = option(bag, 'memoryLimitBytes');
  const filename = option(bag, 'filename');
  const report = option(bag, 'report');
  const { fn, args } = execute === undefined ? EMPTY : readExecute(execute);
  if (args !== undefined && !isArray(args)) wrongType('execute.args', 'an array', args);
  return {
    fn: optional(fn, 'string', 'execute.fn') as string | undefined,
    args: (args as unknown[] | undefined) ?? NONE,
    imports: imports === undefined ? NONE : readImports(imports),
    modules: modules === undefined ? EMPTY : object(modules, 'modules'),
    globals: globals === undefined ? EMPTY : object(globals, 'globals'),
    javascript: isJavaScript(language),
    memoryLimitBytes: optional(memoryLimitBytes, 'number', 'memoryLimitBytes') as number | undefined,
    filename: optional(filename, 'string', 'filename') as string | undefined,
    report: optional(report, 'function', 'report') as Function | undefined,
    timeoutMs: inKit ? (optional(option(bag, 'timeoutMs'), 'number', 'timeoutMs') as number | undefined) : undefined,
    signal: inKit ? readSignal(option(bag, 'signal')) : undefined,
  };
}

/** The options of a tool. */
const OF_TOOL = ['args', 'globals', 'report', 'language', 'filename', 'memoryLimitBytes', ...OF_KIT];

/** Reads the options of a tool, whose `args` is the only argument, if it is given. Throws as {@link readOptions} does. */
export function readToolOptions(options: unknown): RunOptions {
  if (options === undefined) return DEFAULTS;
  const bag = object(options, 'options');
  refuseUnknownNames(bag, OF_TOOL);
  const args = option(bag, 'args');
  const globals = option(bag, 'globals');
  return {
    ...DEFAULTS,
    args: args === undefined ? NONE : [args],
    globals: globals === undefined ? EMPTY : object(globals, 'globals'),
    javascript: isJavaScript(option(bag, 'language')),
    memoryLimitBytes: optional(option(bag, 'memoryLimitBytes'), 'number', 'memoryLimitBytes') as number | undefined,
    filename: optional(option(bag, 'filename'), 'string', 'filename') as string | undefined,
    report: optional(option(bag, 'report'), 'function', 'report') as Function | undefined,
    timeoutMs: optional(option(bag, 'timeoutMs'), 'number', 'timeoutMs') as number | undefined,
    signal: readSignal(option(bag, 'signal')),
  };
}

/** Writes the request. Throws a SerializationError, or the exception of a getter among the values. */
export function writeRequest(out: Encoder, source: string, options: RunOptions, numbering: Numbering, isTool = false): void {
  const { fn, args, imports, modules, globals, filename, memoryLimitBytes, timeoutMs } = options;
  out.u8(flags(options));
  if (memoryLimitBytes !== undefined) out.f64(memoryLimitBytes);
  if (timeoutMs !== undefined) out.f64(timeoutMs);
  out.source(source);
  if (filename !== undefined) out.text(filename);
  if (fn !== undefined) out.text(fn);
  writeModules(out, modules);
  writeInputs(out, globals, imports, numbering, args, isTool);
}

/** Writes source modules: their count, then key and source of each. */
export function writeModules(out: Encoder, modules: Bag): void {
  const keys = Object.keys(modules);
  out.u32(keys.length);
  for (const key of keys) {
    const text = modules[key];
    if (typeof text !== 'string') wrongType(`modules${segment(key)}`, 'a string', text);
    out.text(key);
    out.source(text);
  }
}

/**
 * Writes the names of globals and bridged modules, and one message with all their values and `args`, if given. A tool has
 * at most one argument, its `args`.
 */
export function writeInputs(
  out: Encoder,
  globals: Bag,
  imports: Imports,
  numbering: Numbering,
  args?: readonly unknown[],
  isTool = false,
): void {
  const names = writeNames(out, Object.keys(globals));
  out.u32(imports.length);
  let count = names.length + (args === undefined ? 0 : 1);
  const exports = imports.map(([specifier, entry]) => {
    out.text(specifier);
    const keys = writeNames(out, Object.keys(entry));
    count += keys.length;
    return keys;
  });

  out.begin(numbering);
  out.arrayOf(count);
  for (const name of names) out.value(globals[name], 'globals', name);
  imports.forEach(([specifier, entry], index) => {
    const root = `imports${segment(specifier)}`;
    for (const name of exports[index] as string[]) out.value(entry[name], root, name);
  });
  if (isTool) {
    out.arrayOf(args?.length ?? 0);
    for (const value of args ?? []) out.jsonValue(value, 'args');
  } else if (args !== undefined) out.value(args, 'execute.args');
}

/** Writes a count and so many texts. */
export function writeNames(out: Encoder, names: string[]): string[] {
  out.u32(names.length);
  for (const name of names) out.text(name);
  return names;
}

function readExecute(execute: unknown): Bag {
  const bag = object(execute, 'execute');
  refuseUnknown('execute', bag);
  return { fn: option(bag, 'fn'), args: option(bag, 'args') };
}

/** Bridged modules as a caller wrote them. */
export function readImports(imports: unknown): [string, Bag][] {
  const bag = object(imports, 'imports');
  return Object.keys(bag).map((key) => [key, object(bag[key], `imports${segment(key)}`)]);
}

/** Whether an option `language` says so. */
export function isJavaScript(language: unknown): boolean {
  return checkedOption('run', 'language', language) === 'javascript';
}

function flags(options: RunOptions): number {
  return (
    (options.javascript ? RequestFlag.JavaScript : 0) |
    (options.report === undefined ? 0 : RequestFlag.Report) |
    (options.memoryLimitBytes === undefined ? 0 : RequestFlag.MemoryLimit) |
    (options.filename === undefined ? 0 : RequestFlag.Filename) |
    (options.fn === undefined ? 0 : RequestFlag.Function) |
    (options.timeoutMs === undefined ? 0 : RequestFlag.Timeout)
  );
}

function isArray(value: unknown): boolean {
  if (types.isProxy(value)) throw notCloneable('execute.args', 'a Proxy');
  return Array.isArray(value);
}
