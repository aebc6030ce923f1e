// The buffers of one message.
//
// In: ArrayBuffers and views, in the order of the message. Out: BUFFER and VIEW nodes, and the blobs that
// they name. A view carries only its own bytes, unless the message also contains its whole ArrayBuffer,
// before or after the view. Then both share one blob.

import { types } from 'node:util';

import { Tag, VIEW_KINDS } from '../addon/wire.js';
import type { Outbox } from './outbox.js';

/** Writes the nodes of the message. */
interface NodeWriter extends Outbox {
  /** Writes the tag of a node that may be referred to. */
  tagged(tag: Tag): void;
  /** Throws the SerializationError for the value that is written. */
  refuse(what: string): never;
}

interface MovableView {
  readonly buffer: ArrayBufferLike;
  /** The place of the view's blob and offset in the outbox. */
  readonly place: number;
  readonly blob: number;
  readonly byteOffset: number;
}

const typedArray = Object.getPrototypeOf(Uint8Array.prototype) as object;
// The brand's own getters: a subclass may have overridden them.
const kindName = getter(typedArray, Symbol.toStringTag);
const arrayBuffer = getter(typedArray, 'buffer');
const arrayByteOffset = getter(typedArray, 'byteOffset');
const arrayByteLength = getter(typedArray, 'byteLength');
const arrayLength = getter(typedArray, 'length');
const dataBuffer = getter(DataView.prototype, 'buffer');
const dataByteOffset = getter(DataView.prototype, 'byteOffset');
const dataByteLength = getter(DataView.prototype, 'byteLength');
const bufferByteLength = getter(ArrayBuffer.prototype, 'byteLength');
const NOTHING = new Uint8Array(0);

/** Collects the blobs of the message that an encoder writes. */
export class Buffers {
  private readonly out: NodeWriter;
  private blobs: Uint8Array[] = [];
  /** The length that each blob had when it was added. */
  private lengths: number[] = [];
  private whole = new Map<ArrayBufferLike, number>();
  private movable: MovableView[] = [];

  constructor(out: NodeWriter) {
    this.out = out;
  }

  /** Forgets the previous message. */
  reset(): void {
    if (this.blobs.length === 0) return;
    this.blobs = [];
    this.lengths = [];
    this.movable = [];
    this.whole = new Map();
  }

  /** The blobs of the message; undefined if there are none. */
  taken(): Uint8Array[] | undefined {
    return this.blobs.length === 0 ? undefined : this.blobs;
  }

  /** Writes an ArrayBuffer. Views over it that were written before now refer to its blob. */
  buffer(buffer: ArrayBuffer): void {
    this.checkAttached(buffer);
    const blob = this.add(new Uint8Array(buffer));
    this.whole.set(buffer, blob);
    this.out.tagged(Tag.Buffer);
    this.out.u32(blob);
    for (const view of this.movable) {
      if (view.buffer !== buffer) continue;
      this.blobs[view.blob] = NOTHING;
      this.lengths[view.blob] = 0;
      this.write(view.place, blob, view.byteOffset);
    }
  }

  /** Writes a typed array or a DataView. */
  view(view: ArrayBufferView): void {
    const name = kindName(view) as string | undefined;
    const buffer = (name === undefined ? dataBuffer : arrayBuffer)(view) as ArrayBufferLike;
    if (!types.isSharedArrayBuffer(buffer)) this.checkAttached(buffer);
    const byteOffset = (name === undefined ? dataByteOffset : arrayByteOffset)(view) as number;
    const byteLength = (name === undefined ? dataByteLength : arrayByteLength)(view) as number;
    const length = name === undefined ? byteLength : (arrayLength(view) as number);
    const kind = name === undefined ? 0 : VIEW_KINDS.indexOf(name as (typeof VIEW_KINDS)[number]);
    const whole = this.whole.get(buffer);

    this.out.tagged(Tag.View);
    this.out.u8(kind);
    const place = this.out.at;
    this.out.reserve(20);
    this.out.at += 12;
    this.out.view.setBigUint64(this.out.at, BigInt(length), true);
    this.out.at += 8;
    if (whole !== undefined) {
      this.write(place, whole, byteOffset);
      return;
    }
    const bytes = new Uint8Array(buffer, byteOffset, byteLength);
    // Another thread may write to shared memory, so the message takes a copy that is made here.
    const blob = this.add(types.isSharedArrayBuffer(buffer) ? bytes.slice() : bytes);
    this.write(place, blob, 0);
    this.movable.push({ buffer, place, blob, byteOffset });
  }

  /** Refuses a message in which a getter detached or resized a buffer after it had been added. */
  check(): void {
    if (this.blobs.some((blob, at) => blob.byteLength !== this.lengths[at])) {
      this.out.refuse('an ArrayBuffer that changed while it was read');
    }
  }

  private add(bytes: Uint8Array): number {
    this.lengths.push(bytes.byteLength);
    return this.blobs.push(bytes) - 1;
  }

  private write(place: number, blob: number, byteOffset: number): void {
    this.out.view.setUint32(place, blob, true);
    this.out.view.setBigUint64(place + 4, BigInt(byteOffset), true);
  }

  private checkAttached(buffer: ArrayBufferLike): void {
    if (bufferByteLength(buffer) !== 0) return;
    try {
      new Uint8Array(buffer);
    } catch {
      this.out.refuse('a detached ArrayBuffer');
    }
  }
}

/** Returns the getter of `key` that `object` itself defines, for calls on other objects of its brand. */
export function getter(object: object, key: PropertyKey): (self: object) => unknown {
  const { get } = Object.getOwnPropertyDescriptor(object, key) as { get(): unknown };
  return (self) => Reflect.apply(get, self, []);
}
