// Plain data of the caller's, as JSON.
//
// In: options, inputs and replies of models. Out: texts for the native side, which reads them. Each field is read once.

import { types } from 'node:util';

import { describe, isBuiltIn } from '../crossing/kind.js';
import { misuse } from '../crossing/misuse.js';
import { option } from '../crossing/options.js';
import { messageOf } from './refusal.js';

/** The deepest nesting that the native side reads. */
const MOST_DEPTH = 127;

/** The value as JSON, in which texts may have lone surrogates. */
export interface Json {
  readonly text: string;
  /** Whether a text has a lone surrogate. */
  readonly isTorn: boolean;
}

/**
 * The value as JSON. Throws a TypeError for anything that JSON would change or drop. Fields that are undefined are not
 * there, nor are those whose names are symbols; a `toJSON` of the object or its class is asked.
 */
export function json(value: unknown, place: string): string {
  const { text, isTorn } = tornJson(value, place);
  if (isTorn) throw misuse({ kind: 'type', message: `${place} has a lone surrogate` });
  return text;
}

/** The same, with lone surrogates. */
export function tornJson(value: unknown, place: string): Json {
  const writer = new Writer();
  try {
    // Missing fields are null.
    return { text: writer.write(value, '', 0) ?? 'null', isTorn: writer.isTorn };
  } catch (error) {
    throw misuse({ kind: 'type', message: `${place} is not plain data: ${messageOf(error)}` });
  }
}

class Writer {
  isTorn = false;
  /** The objects around the one that is written. */
  readonly #around = new Set<object>();

  /** The JSON of a value; `undefined` if it is not there. */
  write(given: unknown, key: string, depth: number): string | undefined {
    const value = prepared(given, key);
    switch (typeof value) {
      case 'undefined':
        return undefined;
      case 'boolean':
        return String(value);
      case 'string':
        return this.#text(value);
      case 'number':
        if (!Number.isFinite(value)) throw new Error(`${value} has no form in JSON`);
        return Object.is(value, -0) ? '-0' : String(value);
      case 'object':
        break;
      default:
        throw new Error(`a ${typeof value} has no form in JSON`);
    }
    if (value === null) return 'null';
    if (this.#around.has(value)) throw new Error('it contains itself');
    if (depth >= MOST_DEPTH) throw new Error(`it is nested deeper than ${MOST_DEPTH} levels`);
    this.#around.add(value);
    const text = Array.isArray(value) ? this.#array(value, depth + 1) : this.#object(value as Record<string, unknown>, depth + 1);
    this.#around.delete(value);
    return text;
  }

  #array(items: unknown[], depth: number): string {
    const texts = Array.from(items, (item, index) => {
      const text = this.write(item, String(index), depth);
      if (text === undefined) throw new Error('undefined in an array has no form in JSON');
      return text;
    });
    return `[${texts.join(',')}]`;
  }

  #object(fields: Record<string, unknown>, depth: number): string {
    refuseBuiltIn(fields);
    const texts: string[] = [];
    for (const key of Object.keys(fields)) {
      const text = this.write(fields[key], key, depth);
      if (text !== undefined) texts.push(`${this.#text(key)}:${text}`);
    }
    return `{${texts.join(',')}}`;
  }

  #text(text: string): string {
    if (!text.isWellFormed()) this.isTorn = true;
    return JSON.stringify(text);
  }
}

/** The value that stands for an object with a `toJSON`. That of a polluted prototype is not asked. */
function prepared(value: unknown, key: string): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value) || isBytes(value)) return value;
  if (types.isDate(value) && Number.isNaN(Date.prototype.getTime.call(value))) throw new Error('an invalid Date has no form in JSON');
  const toJSON = option(value as Record<string, unknown>, 'toJSON');
  return typeof toJSON === 'function' ? Reflect.apply(toJSON, value, [key]) : value;
}

function refuseBuiltIn(value: object): void {
  if (isBytes(value)) throw new Error('bytes have no form in JSON');
  if (types.isMap(value) || types.isSet(value)) throw new Error('a Map or Set has no form in JSON');
  if (!types.isProxy(value) && isBuiltIn(value)) throw new Error(`${describe(value)} has no form in JSON`);
}

function isBytes(value: unknown): boolean {
  return ArrayBuffer.isView(value) || types.isAnyArrayBuffer(value);
}
