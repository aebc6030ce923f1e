// The parts that all executors of the library share.
//
// In: contexts and inputs of calls. Out: promises of results.

import { misuse } from '../crossing/misuse.js';
import type { Door } from '../door/door.js';
import { type CodeExecutionResult, ExecutorError, type FileOut, fileIn, readContext, readInput, resultOf } from './data.js';
import { call } from './door-call.js';

/** The properties of an executor that the loop asks for. */
export type Traits = [stateful: boolean, attempts: number, timeoutMs: number | null, keepsTime: boolean, delimiters: [string, string][]];

/** A result as the native side gives it. */
type ResultOut = [stdout: string, stderr: string, files: FileOut[], exitCode: number | null];

let isExecutor: (value: unknown) => value is LibraryExecutor;

/** An executor of the library. */
export abstract class LibraryExecutor {
  readonly #door: Door;

  static {
    isExecutor = (value): value is LibraryExecutor => typeof value === 'object' && value !== null && #door in value;
  }

  constructor(door: Door) {
    this.#door = door;
  }

  protected get door(): Door {
    return this.#door;
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
    const { code, language, files, executionId } = read;
    const given = { code, language, files: files.map(fileIn), executionId };
    return call(this.#door, 'execute', (context) => [context, given], readOut, context);
  }

  get stateful(): boolean {
    return this.#traits[0];
  }

  get errorRetryAttempts(): number {
    return this.#traits[1];
  }

  get timeoutMs(): number | null {
    return this.#traits[2];
  }

  get codeBlockDelimiters(): [string, string][] {
    return this.#traits[4];
  }

  get #traits(): Traits {
    return this.#door.ask<Traits>('traits');
  }
}

function readOut([stdout, stderr, files, exitCode]: ResultOut): CodeExecutionResult {
  return resultOf({ stdout, stderr, exitCode }, files);
}
