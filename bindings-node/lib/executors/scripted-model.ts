// A model for tests, which gives the replies that it was told to give.

import type { ModelRequest, PartInput } from '../../executors.js';
import { object, wrongType } from '../crossing/options.js';

export class ScriptedModel {
  readonly #replies: (() => unknown)[] = [];
  readonly #requests: Omit<ModelRequest, 'signal'>[] = [];

  pushText(text: string): void {
    this.pushParts([{ text: string(text, 'text') }]);
  }

  pushCode(language: string, code: string): void {
    const name = string(language, 'language').toUpperCase() || 'LANGUAGE_UNSPECIFIED';
    this.pushParts([{ executableCode: { language: name, code: string(code, 'code') } }]);
  }

  pushParts(parts: Iterable<PartInput>): void {
    const given = list(parts);
    given.forEach((part, index) => object(part, `parts[${index}]`));
    this.#replies.push(() => [...given]);
  }

  pushStream(parts: Iterable<PartInput | string>, error?: unknown): void {
    const given = list(parts) as (PartInput | string)[];
    this.#replies.push(() => streamed(given, error));
  }

  pushError(error: unknown): void {
    this.#replies.push(() => {
      throw errorOf(error);
    });
  }

  requests(): Omit<ModelRequest, 'signal'>[] {
    return [...this.#requests];
  }

  async generate({ instruction, contents }: ModelRequest): Promise<unknown> {
    this.#requests.push({ instruction, contents });
    const reply = this.#replies.shift();
    if (reply === undefined) throw new Error(`the scripted model has no reply left (call ${this.#requests.length})`);
    return reply();
  }
}

async function* streamed(parts: (PartInput | string)[], error: unknown): AsyncGenerator<PartInput | string> {
  yield* parts;
  if (error !== undefined) throw errorOf(error);
}

function errorOf(error: unknown): unknown {
  return typeof error === 'string' ? new Error(error) : error;
}

function list(given: unknown): unknown[] {
  if (typeof given !== 'object' || given === null || typeof (given as Partial<Iterable<unknown>>)[Symbol.iterator] !== 'function') {
    return wrongType('parts', 'an iterable object of parts', given);
  }
  return [...(given as Iterable<unknown>)];
}

function string(given: unknown, name: string): string {
  return typeof given === 'string' ? given : wrongType(name, 'a string', given);
}
