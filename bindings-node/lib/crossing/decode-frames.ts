// The containers that the decoder is reading.
//
// In: the innermost open container. Out: the path of the value that comes next in it, for an error.

import { segment } from './serialization-error.js';

/** Characters of a key that an error shows. */
const SHOWN_KEY = 80;
/** Steps that an error shows at either end of a long path. */
const SHOWN_STEPS = 12;

export const enum Container {
  Object,
  Array,
  Sparse,
  Map,
  Set,
}

/** An open container, and the one around it. */
export interface Frame {
  readonly kind: Container;
  readonly target: any;
  /**
   * Array, Map and Set: the number of nodes that follow; a Map counts its keys and its values. Object: the index
   * that would continue its dense elements, or `Elements.Table` if they are a table. Sparse array: its length, then
   * `Elements.Table` once it has become one.
   */
  left: number;
  /** Object: the number of the key whose value follows. Sparse array: the index of that value. Map: the key. */
  key: any;
  readonly up: Frame | undefined;
}

/** The path of the next value in `innermost`; a long one without its middle. */
export function path(innermost: Frame | undefined, keys: readonly string[]): string {
  const frames: Frame[] = [];
  for (let frame = innermost; frame !== undefined; frame = frame.up) frames.push(frame);
  frames.reverse();
  const shown = (some: readonly Frame[]): string => some.map((frame) => step(frame, keys)).join('');
  if (frames.length <= 2 * SHOWN_STEPS) return shown(frames);
  return `${shown(frames.slice(0, SHOWN_STEPS))}…${shown(frames.slice(-SHOWN_STEPS))}`;
}

function step({ kind, target, left, key }: Frame, keys: readonly string[]): string {
  switch (kind) {
    case Container.Object:
      return segment((keys[key] as string).slice(0, SHOWN_KEY + 1));
    case Container.Array:
      return `[${target.length}]`;
    case Container.Sparse:
      return `[${key}]`;
    case Container.Map:
      return `.${left % 2 === 1 ? 'keys' : 'values'}()[${target.size}]`;
    default:
      return `.values()[${target.size}]`;
  }
}
