// The text of a value, as a console shows it.
//
// In: any value. Out: one line of limited length. The native side makes the text of all that can cross. An object of the
// host that cannot, such as an instance of a class, has the text of Node's own console. No trap of a Proxy runs.

import { inspect } from 'node:util';

import { native } from '../addon/connection.js';
import type { Misuse } from '../addon/native.js';
import type { Encoder, Numbering } from './encode.js';
import { borrowEncoder, returnEncoder } from './encoders.js';
import { misuse } from './misuse.js';
import { object, option, refuseUnknownNames, wrongType } from './options.js';

/** Numbers functions and promises. Nothing calls them. A function of the sandbox is shown with its name. */
const NUMBERING: Numbering = {
  hostFunction: () => 0,
  nativeFunction: () => 0,
  sandboxFunction: () => 0,
  hostPromise: () => 0,
  answerOf: () => 'value',
};

/** The form of Node's console for one line: the levels and items that the native side shows. */
const LINE = { depth: 2, maxArrayLength: 100, breakLength: Infinity, compact: true, customInspect: false, getters: false } as const;

export function describe(value: unknown, options?: unknown): string {
  const limit = limitOf(options);
  const encoder = borrowEncoder();
  let text: string | Misuse;
  try {
    write(encoder, value);
    text = native.describe(encoder.bytes, encoder.at, encoder.blobs, limit);
  } finally {
    returnEncoder(encoder);
  }
  if (typeof text !== 'string') throw misuse(text);
  return text;
}

/** Writes the value, or else its text if a part of it cannot cross. */
function write(encoder: Encoder, value: unknown): void {
  encoder.begin(NUMBERING);
  try {
    encoder.value(value, 'value');
  } catch {
    const text = inspect(value, LINE).replaceAll(/\s*\n\s*/g, ' ');
    encoder.forget();
    encoder.begin(NUMBERING);
    encoder.value(text, 'value');
  }
}

function limitOf(options: unknown): number | undefined {
  if (options === undefined) return undefined;
  const bag = object(options, 'options');
  refuseUnknownNames(bag, ['limit']);
  const limit = option(bag, 'limit');
  if (limit !== undefined && typeof limit !== 'number') wrongType('limit', 'a number', limit);
  return limit as number | undefined;
}
