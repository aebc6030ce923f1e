// A caller's options, as the core's request.
//
// In: the arguments of `runCode`. Out: one frame with the names, the sources and one message with all values; or
// a TypeError. Each option is read once, from the object itself or a class of the caller's, and never from
// `Object.prototype`. The core checks the options and words the errors. This module only checks their JavaScript
// types.

import { types } from 'node:util';

import type { AbortSignalLike } from '../index.js';
import { native } from './bridge.js';
import type { Encoder, Numbering } from './encode.js';
import { describe, isBuiltIn } from './kind.js';
import { misuse } from './misuse.js';
import type { NativeOption, OptionSet } from './native.js';
import { notCloneable, segment } from './serialization-error.js';
import { RequestFlag } from './wire.js';

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

export type Bag = Readonly<Record<string, unknown>>;

/** Bridged modules by specifier. */
export type Imports = readonly (readonly [specifier: string, entry: Bag])[];

export const EMPTY: Bag = Object.freeze({ __proto__: null }) as unknown as Bag;
export const NONE: readonly never[] = Object.freeze([]) as readonly never[];
/** The options of each set by name, as the core declares them. */
const DECLARED: Readonly<Record<OptionSet, ReadonlyMap<string, NativeOption>>> = {
  run: declared('run'),
  execute: declared('execute'),
  runtime: declared('runtime'),
  session: declared('session'),
  cell: declared('cell'),
  call: declared('call'),
  update: declared('update'),
};

const LANGUAGE = DECLARED.run.get('language') as NativeOption;

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
  if (inKit) refuseUnknownNames(bag, [...DECLARED.run.keys(), ...OF_KIT]);
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

/** Reads the options of a runtime that are given. Throws as {@link readOptions} does. */
export function readRuntimeOptions(options: unknown): Record<string, number | string> {
  const read = { __proto__: null } as unknown as Record<string, number | string>;
  if (options === undefined) return read;
  const bag = object(options, 'options');
  refuseUnknown('runtime', bag);
  for (const declaration of DECLARED.runtime.values()) {
    const value = checked(declaration, option(bag, declaration.name));
    if (value !== undefined) read[declaration.name] = value;
  }
  return read;
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

/** Throws the TypeError for an option of the wrong type. */
export function wrongType(option: string, expected: string, got: unknown): never {
  throw misuse({ kind: 'type', message: native.wrongType(option, expected, typeName(got)) });
}

/** Throws if an own key of `bag` is not an option of that set. */
export function refuseUnknown(set: OptionSet, bag: Bag): void {
  for (const key of Object.keys(bag)) {
    if (!DECLARED[set].has(key)) throw misuse({ kind: 'type', message: native.unknownOption(set, key) });
  }
}

/** Throws if an own key of `bag` is none of these names. */
export function refuseUnknownNames(bag: Bag, names: string[]): void {
  for (const key of Object.keys(bag)) {
    if (!names.includes(key)) throw misuse({ kind: 'type', message: native.unknownName(key, names) });
  }
}

/** Returns `value` if it is an object with entries: neither an array nor a function. */
export function object(value: unknown, option: string): Bag {
  if (typeof value === 'object' && value !== null) {
    // The traps of a Proxy would run the caller's code while we read.
    if (types.isProxy(value)) throw notCloneable(option, 'a Proxy');
    if (!Array.isArray(value) && !isBuiltIn(value)) return value as Bag;
  }
  return wrongType(option, 'an object', value);
}

/** The option of that name, from the bag itself or from a class of the bag. */
export function option(bag: Bag, name: string): unknown {
  if (Object.hasOwn(bag, name)) return bag[name];
  for (let at = Object.getPrototypeOf(bag) as object | null; at !== null; at = Object.getPrototypeOf(at) as object | null) {
    // This is the Object.prototype of some realm. It has no options.
    if (Object.hasOwn(at, 'isPrototypeOf')) return undefined;
    if (Object.hasOwn(at, name)) return bag[name];
  }
  return undefined;
}

/** Returns a value of that type, or undefined. */
export function optional(value: unknown, type: 'string' | 'number' | 'function', option: string): unknown {
  if (value !== undefined && typeof value !== type) wrongType(option, `a ${type}`, value);
  return value;
}

/** The value of an option of that set, whose type is the declared one. The core checks the rest. */
export function declaredOption(set: OptionSet, bag: Bag, name: string): number | string | undefined {
  return checked(DECLARED[set].get(name) as NativeOption, option(bag, name));
}

function checked({ name, type, choices, expected }: NativeOption, value: unknown): number | string | undefined {
  if (value === undefined) return undefined;
  if (choices.length > 0 && !choices.includes(value as string)) wrongType(name, expected, value);
  if (typeof value !== type) wrongType(name, `a ${type}`, value);
  return value as number | string;
}

function readExecute(execute: unknown): Bag {
  const bag = object(execute, 'execute');
  refuseUnknown('execute', bag);
  return { fn: option(bag, 'fn'), args: option(bag, 'args') };
}

/** An AbortSignal of any realm, or one of a library that has its parts. */
export function readSignal(value: unknown): AbortSignalLike | undefined {
  if (value === undefined) return undefined;
  if (typeof value === 'object' && value !== null && !types.isProxy(value)) {
    const { aborted, addEventListener, removeEventListener } = value as Partial<AbortSignalLike>;
    if (typeof aborted === 'boolean' && typeof addEventListener === 'function' && typeof removeEventListener === 'function') return value as AbortSignalLike;
  }
  return wrongType('signal', 'an AbortSignal', value);
}

/** Bridged modules as a caller wrote them. */
export function readImports(imports: unknown): [string, Bag][] {
  const bag = object(imports, 'imports');
  return Object.keys(bag).map((key) => [key, object(bag[key], `imports${segment(key)}`)]);
}

/** Whether an option `language` says so. */
export function isJavaScript(language: unknown): boolean {
  return checked(LANGUAGE, language) === 'javascript';
}

function declared(set: OptionSet): Map<string, NativeOption> {
  return new Map(native.optionDeclarations(set).map((declaration) => [declaration.name, declaration]));
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

function typeName(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (Array.isArray(value)) return 'an array';
  if (typeof value === 'string') return value.length <= 32 ? JSON.stringify(value).replace(/^"|"$/g, "'") : 'a string';
  if (typeof value === 'object') return !types.isProxy(value) && isBuiltIn(value) ? describe(value) : 'an object';
  return `a ${typeof value}`;
}
