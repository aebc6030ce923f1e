// Elements of arrays and objects in no more memory than their run was charged for.
//
// In: elements with their indexes, which a sandbox chose. Out: arrays and objects with them. V8 allocates room up to the
// highest index, so elements with gaps are stored in a table. V8 also converts all elements of an array when the first
// comes that is of another kind, so a long array has the final kind from the start.

import { Tag } from '../addon/wire.js';
import type { Frame } from './decode-frames.js';

/** In place of a key's index. */
export const enum ElementIndex {
  /** The key is not an index. */
  Named = -1,
  /** `Object.prototype` has the key, so that an assignment could run a setter. */
  Inherited = -2,
}

export const enum Elements {
  /** In place of the next dense index: the elements are stored in a table. */
  Table = -1,
  /** An array with holes is allocated in full up to this length. */
  ShortSparse = 16,
}

/** V8 stores an array of this length in a table, and keeps the table when the length shrinks. */
const TABLE_LENGTH = 2 ** 32 - 1;
const LAST_INDEX = 2 ** 32 - 2;

/** An array of that length without elements. A long one has no memory allocated for them. */
export function sparse(length: number): unknown[] {
  const array: unknown[] = [];
  if (length > Elements.ShortSparse) array.length = TABLE_LENGTH;
  array.length = length;
  return array;
}

/** Puts an element into an object: the next one of its dense elements, or one of a table. */
export function element(frame: Frame, index: number, value: unknown): void {
  const { target } = frame;
  if (frame.left === index) {
    target[index] = value;
    frame.left += 1;
  } else if (frame.left === Elements.Table) target[index] = value;
  else {
    tabled(target, index, value);
    frame.left = Elements.Table;
  }
}

/** Puts an element in, and makes V8 store the elements in a table from now on, whatever their indices. */
export function tabled(target: object, index: number, value: unknown): void {
  // V8 moves the elements to a table when one of them is not enumerable, and never moves them back.
  Object.defineProperty(target, index, { __proto__: null, value, writable: true, enumerable: false, configurable: true } as PropertyDescriptor);
  Object.defineProperty(target, index, { __proto__: null, enumerable: true } as PropertyDescriptor);
}

/** Nodes that are scanned in one step. */
const SCANNED_NODES = 1 << 18;
const DOUBLE_BYTES = 9;

/** A scan of the elements of a long array, for their kind in V8: integers, numbers, or any values. */
export class ElementScan {
  private readonly bytes: Uint8Array;
  /** The byte at which the next element begins. */
  private at: number;
  /** The number of elements that follow; 0 if the kind is known. */
  private left: number;
  private isAny = false;
  private hasDoubles = false;

  /** @param start The byte at which the first of `length` elements begins. */
  constructor(
    bytes: Uint8Array,
    readonly start: number,
    length: number,
  ) {
    this.bytes = bytes;
    this.at = start;
    this.left = length;
  }

  /** Scans some elements; returns whether the kind is known. */
  go(): boolean {
    const { bytes } = this;
    let { at } = this;
    const rest = Math.max(0, this.left - SCANNED_NODES);
    let { left } = this;
    while (left > rest) {
      const before = left;
      for (; left > rest && bytes[at] === Tag.Double; left -= 1) at += DOUBLE_BYTES;
      if (left < before) this.hasDoubles = true;
      else if (bytes[at] === Tag.Int) {
        do at += 1;
        while ((bytes[at] as number) >= 0x80);
        at += 1;
        left -= 1;
      } else if (bytes[at] === Tag.Hole) {
        at += 1;
        left -= 1;
      } else {
        // So does the end of a malformed message.
        this.isAny = true;
        left = 0;
        break;
      }
    }
    this.at = at;
    this.left = left;
    return left === 0;
  }

  /** An empty array of that kind. V8 never makes the kind of an array narrower again. */
  array(): unknown[] {
    const array: unknown[] = this.isAny ? [undefined] : this.hasDoubles ? [0.5] : [];
    array.length = 0;
    return array;
  }
}

/** The key as an index, or {@link ElementIndex.Named}. */
export function indexOf(key: string): number {
  const first = key.charCodeAt(0);
  if (!(first >= 0x30 && first <= 0x39) || key.length > 10) return ElementIndex.Named;
  const index = Number(key);
  return index <= LAST_INDEX && String(index) === key ? index : ElementIndex.Named;
}
