// The pieces of a stream of a model.
//
// In: pieces as the model gives them: texts, parts, lists of parts. Out: JSON for the native side. A model may split a
// character of two halves between two pieces: the first half is held back until the second one comes.

import { misuse } from '../crossing/misuse.js';
import { json, tornJson } from './json.js';

const PLACE = 'a part of the model';

interface Text {
  text: string;
  thought?: unknown;
}

export class Pieces {
  /** The half of a character at the end of the last text, or an empty text. */
  #half = '';
  /** Whether it is half of a thought. */
  #isThought = false;

  /** The next piece as JSON. Throws a TypeError if it is no plain data. */
  next(piece: unknown): string {
    const { text, isTorn } = tornJson(piece, PLACE);
    if (!isTorn && this.#half === '') return text;
    const data: unknown = JSON.parse(text);
    return json(Array.isArray(data) ? data.map((part) => this.#joined(part)) : this.#joined(data), PLACE);
  }

  /** The stream is over. Throws a TypeError if it ended within a character. */
  end(): void {
    if (this.#half !== '') torn();
  }

  /** The part, with the half that was held back, and without one at its end. */
  #joined(part: unknown): unknown {
    if (typeof part === 'string') return this.#cut(part, false);
    if (!isText(part)) {
      this.end();
      return part;
    }
    return { ...part, text: this.#cut(part.text, part.thought === true) };
  }

  #cut(piece: string, isThought: boolean): string {
    if (this.#half !== '' && isThought !== this.#isThought) torn();
    const text = this.#half + piece;
    const isCut = /[\ud800-\udbff]$/.test(text);
    this.#half = isCut ? text.slice(-1) : '';
    this.#isThought = isThought;
    return isCut ? text.slice(0, -1) : text;
  }
}

function isText(part: unknown): part is Text {
  return typeof part === 'object' && part !== null && typeof (part as Partial<Text>).text === 'string' && Object.hasOwn(part, 'text');
}

function torn(): never {
  throw misuse({ kind: 'type', message: `${PLACE} has a lone surrogate` });
}
