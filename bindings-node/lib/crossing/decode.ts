// The decoder: reads a message of the core as a value of the host.
//
// In: nodes, the blobs beside them, and the owners of the numbers in them. Out: a fresh value that shares
// nothing with the sandbox. An own key stays an own key, `__proto__` too. Nothing recurses. A value that this
// version of Node.js cannot represent becomes a SerializationError, or text if the reader asks for text. A
// malformed message ends in an error, never in a wrong read.
//
// Reading can pause between any two nodes and within a long text, so that a large message is read in slices of
// several turns of the event loop. No value takes more memory than its run was charged for: V8 would allocate
// room up to the highest index of an array or object, so elements with gaps are stored in a table.

import { constants, type Buffer } from 'node:buffer';

import { now } from '../addon/event-loop.js';
import { ERROR_CLASSES, Key, Tag, VIEW_KINDS } from '../addon/wire.js';
import { Container, path, type Frame } from './decode-frames.js';
import { ElementIndex, ElementScan, Elements, element, indexOf, sparse, tabled } from './elements.js';
import { notCloneable } from './serialization-error.js';

/** Turns numbers back into the functions and promises that crossed under them. */
export interface Owners {
  hostFunction(number: number): unknown;
  sandboxFunction(number: number, name: string): unknown;
  sandboxPromise(number: number): unknown;
}

type ErrorConstructors = Record<string, ErrorConstructor>;
const errors = globalThis as unknown as ErrorConstructors;
const views = globalThis as unknown as Record<
  string,
  (new (buffer: ArrayBuffer, byteOffset: number, length: number) => ArrayBufferView) | undefined
>;

/** The answer of {@link Decoder.go} when it has stopped before the end of the message. */
export const PAUSED = Symbol('paused');

/** The blobs of a message that have been fetched so far. */
export interface Blobs {
  readonly list: Uint8Array[];
  /** Fetches some more into the list; returns false if there were none. */
  more(): boolean;
}

export const NO_BLOBS: Blobs = { list: [], more: () => false };

/** V8 concatenates strings below this length into flat strings, not into ropes. */
const SHORT_STRING = 13;
/** Bytes of a long text that are read in one step. */
const PIECE_BYTES = 1024 * 1024;
/** A text of more bytes than this is read in several steps. */
const LONG_BYTES = 2 * PIECE_BYTES;
/** V8 converts this many elements of an array in some 35 ms. */
const MOST_CONVERTED = 640 * 1024;
/** A big integer of at most so many bytes is read word by word, which is faster than by way of its digits. */
const SHORT_BIGINT = 256;
const WORD_BYTES = 8;
/** Bytes of nodes between two checks of the clock. */
const STRIDE = 4096;

/** Reads messages from one array of bytes. */
export class Decoder {
  protected readonly bytes: Buffer;
  private readonly data: DataView;
  /** The offset of the next byte. */
  at: number;
  private end = 0;
  private blobs: Blobs = NO_BLOBS;
  private owners!: Owners;
  private name = '';
  private asText = false;
  private objects: unknown[] = [];
  private keys: string[] = [];
  /** For each key, its index as an element, or an {@link ElementIndex}. */
  private indices: number[] = [];
  private root: unknown;
  /** The innermost open container, while the reader pauses. */
  private frame: Frame | undefined;
  /** Whether the key of its next member comes first, while the reader pauses. */
  private advancing = false;
  /** The time at which to pause. */
  private until = Infinity;
  /** The byte at which to check the clock. */
  private stop = 0;
  /** Work to do before the step at `at` is repeated; returns whether it is done. */
  private prerequisite: (() => boolean) | undefined;
  /** The long texts of that step that have been read, by their first byte; undefined for one that is too long. */
  private texts: Map<number, string | undefined> | undefined;
  /** The elements of the long array of that step. */
  private elements: ElementScan | undefined;

  constructor(bytes: Buffer, at: number) {
    this.bytes = bytes;
    this.data = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.at = at;
  }

  u8(): number {
    return this.bytes[this.at++] as number;
  }

  u32(): number {
    const value = this.data.getUint32(this.at, true);
    this.at += 4;
    return value;
  }

  /** The next number, without moving on. */
  peekU32(): number {
    return this.data.getUint32(this.at, true);
  }

  f64(): number {
    const value = this.data.getFloat64(this.at, true);
    this.at += 8;
    return value;
  }

  /** Text of a frame: byte length and UTF-8. */
  text(): string {
    const size = this.u32();
    const start = this.at;
    this.at += size;
    return this.slice(start, this.at);
  }

  /**
   * Reads the message in the next `length` bytes, without a pause. If this host cannot represent a value, text
   * replaces the value if `asText` is set; otherwise this throws a SerializationError with the path from `root`.
   */
  message(length: number, blobs: Blobs, owners: Owners, root: string, asText = false): unknown {
    this.begin(length, blobs, owners, root, asText);
    return this.go(Infinity);
  }

  /** Begins to read the message in the next `length` bytes; {@link go} continues. See {@link message}. */
  begin(length: number, blobs: Blobs, owners: Owners, root: string, asText: boolean): void {
    this.end = this.at + length;
    if (this.end > this.bytes.length) malformed();
    this.blobs = blobs;
    this.owners = owners;
    this.name = root;
    this.asText = asText;
    this.frame = undefined;
    this.advancing = false;
    if (this.objects.length > 0) this.objects = [];
    if (this.keys.length > 0) {
      this.keys = [];
      this.indices = [];
    }
  }

  /** Continues until that time of `now()`; returns the value or {@link PAUSED}. */
  go(until: number): unknown {
    this.until = until;
    this.stop = until === Infinity ? this.end : this.at;
    for (;;) {
      while (this.prerequisite !== undefined) {
        if (this.prerequisite()) this.prerequisite = undefined;
        if (now() >= until) return PAUSED;
      }
      const value = this.nodes();
      if (value !== PAUSED) {
        if (this.at !== this.end) malformed();
        return value;
      }
      if (this.prerequisite === undefined) return PAUSED;
    }
  }

  /** Returns whether to pause. */
  private shouldPause(): boolean {
    if (this.at >= this.end) malformed();
    if (now() >= this.until) return true;
    this.stop = Math.min(this.end, this.at + STRIDE);
    return false;
  }

  private nodes(): unknown {
    let { frame, advancing } = this;
    let step = this.at;
    let closed = 0;
    try {
      for (;;) {
        if (!advancing) {
          step = this.at;
          if (step >= this.stop && this.shouldPause()) {
            this.frame = frame;
            this.advancing = false;
            return PAUSED;
          }
          const tag = this.bytes[this.at++] as Tag;
          let opened: Frame | undefined;
          let value: unknown;
          switch (tag) {
            case Tag.Object:
              value = {};
              this.objects.push(value);
              opened = { kind: Container.Object, target: value, left: 0, key: 0, up: frame };
              break;
            case Tag.Array: {
              const length = this.varint();
              value = length > MOST_CONVERTED ? this.longArray(length) : [];
              this.objects.push(value);
              opened = { kind: Container.Array, target: value, left: length, key: 0, up: frame };
              break;
            }
            case Tag.SparseArray: {
              const length = this.varint();
              value = sparse(length);
              this.objects.push(value);
              opened = { kind: Container.Sparse, target: value, left: length, key: 0, up: frame };
              break;
            }
            case Tag.Map:
              opened = { kind: Container.Map, target: new Map(), left: this.varint() * 2, key: 0, up: frame };
              value = opened.target;
              this.objects.push(value);
              break;
            case Tag.Set:
              opened = { kind: Container.Set, target: new Set(), left: this.varint(), key: 0, up: frame };
              value = opened.target;
              this.objects.push(value);
              break;
            case Tag.Hole:
              if (frame === undefined || frame.kind !== Container.Array) malformed();
              break;
            default:
              value = this.leaf(tag);
          }
          if (frame === undefined) this.root = value;
          else if (tag === Tag.Hole) frame.target.length += 1;
          else this.put(frame, value);
          if (opened !== undefined) frame = opened;
        }
        // Reading the next key is a step of its own.
        advancing = true;
        step = this.at;
        while (frame !== undefined && this.isDone(frame)) {
          frame = frame.up;
          step = this.at;
          closed += 1;
          if (closed % STRIDE === 0 && now() >= this.until) {
            this.frame = frame;
            this.advancing = true;
            return PAUSED;
          }
        }
        advancing = false;
        if (frame === undefined) return this.root;
      }
    } catch (failure) {
      if (failure === LATER) {
        this.frame = frame;
        this.advancing = advancing;
        this.at = step;
        return PAUSED;
      }
      if (failure instanceof Unsupported) throw notCloneable(this.name + path(frame, this.keys), failure.what);
      throw failure;
    } finally {
      if (this.texts !== undefined && this.prerequisite === undefined) this.texts = undefined;
    }
  }

  private put(frame: Frame, value: unknown): void {
    const { target } = frame;
    switch (frame.kind) {
      case Container.Object: {
        const index = this.indices[frame.key] as number;
        if (index === ElementIndex.Named) target[this.keys[frame.key] as string] = value;
        else if (index === ElementIndex.Inherited) own(target, this.keys[frame.key] as string, value);
        else element(frame, index, value);
        return;
      }
      case Container.Array:
        target.push(value);
        return;
      case Container.Sparse:
        if (frame.left > Elements.ShortSparse) {
          tabled(target, frame.key, value);
          frame.left = Elements.Table;
        } else target[frame.key] = value;
        return;
      case Container.Map:
        if (frame.left % 2 === 1) frame.key = value;
        else target.set(frame.key, value);
        return;
      case Container.Set:
        target.add(value);
    }
  }

  /** Returns whether the container is complete; otherwise reads the key of its next member. */
  private isDone(frame: Frame): boolean {
    switch (frame.kind) {
      case Container.Object: {
        const key = this.key();
        frame.key = key;
        return key < 0;
      }
      case Container.Sparse: {
        const index = this.varint();
        if (index > frame.target.length) malformed();
        frame.key = index - 1;
        return index === 0;
      }
      default:
        frame.left -= 1;
        return frame.left < 0;
    }
  }

  private leaf(tag: Tag): unknown {
    switch (tag) {
      case Tag.Undefined:
        return undefined;
      case Tag.Null:
        return null;
      case Tag.True:
        return true;
      case Tag.False:
        return false;
      case Tag.Int: {
        const zigzag = this.varint();
        return (zigzag >>> 1) ^ -(zigzag & 1);
      }
      case Tag.Double:
        return this.f64();
      case Tag.BigInt:
        return this.bigint();
      case Tag.String:
        return this.utf8();
      case Tag.String16:
        return this.utf16();
      case Tag.Ref:
        return this.reference();
      default:
        return this.remember(tag);
    }
  }

  /** Reads an object without nested nodes. Later nodes may refer to it. */
  private remember(tag: Tag): unknown {
    const value = this.object(tag);
    this.objects.push(value);
    return value;
  }

  private object(tag: Tag): unknown {
    switch (tag) {
      case Tag.Date:
        return new Date(this.f64());
      case Tag.RegExp:
        return this.regexp();
      case Tag.Error:
        return this.error();
      case Tag.Buffer:
        return this.blob(this.u32()).buffer;
      case Tag.View:
        return this.view();
      case Tag.HostFunction: {
        const number = this.u32();
        this.string();
        return this.owners.hostFunction(number);
      }
      case Tag.SandboxFunction: {
        const number = this.u32();
        return this.owners.sandboxFunction(number, this.string());
      }
      case Tag.SandboxPromise:
        return this.owners.sandboxPromise(this.u32());
      default:
        return malformed();
    }
  }

  private regexp(): unknown {
    const source = this.string();
    const flags = this.string();
    try {
      return new RegExp(source, flags);
    } catch {
      // The isolate's engine may support newer syntax than this version of Node.js.
      const text = `/${source}/${flags}`;
      return this.unsupported(`the RegExp ${text.slice(0, 80)}, which this version of Node.js does not know,`, text);
    }
  }

  private unsupported(what: string, text: string): string {
    if (this.asText) return text;
    throw new Unsupported(what);
  }

  private error(): Error {
    const name = ERROR_CLASSES[this.u8()] ?? 'Error';
    const ownName = this.string();
    const error = unstacked(errors[name] as ErrorConstructor, this.string());
    const stack = this.optional();
    const code = this.optional();
    if (ownName !== name) hidden(error, 'name', ownName);
    // The stack says where the sandbox made the error, not where this process read the message.
    hidden(error, 'stack', stack ?? (error.message === '' ? ownName : `${ownName}: ${error.message}`));
    if (code !== undefined) own(error, 'code', code);
    return error;
  }

  private view(): ArrayBufferView {
    const name = VIEW_KINDS[this.u8()] ?? malformed();
    const { buffer, byteOffset: start } = this.blob(this.u32());
    const byteOffset = Number(this.data.getBigUint64(this.at, true));
    const length = Number(this.data.getBigUint64(this.at + 8, true));
    this.at += 16;
    const View = views[name];
    // This version of Node.js has no Float16Array: the caller gets its bytes.
    if (View === undefined) return new Uint8Array(buffer, start + byteOffset, length * 2);
    return new View(buffer, start + byteOffset, length);
  }

  private blob(number: number): Uint8Array<ArrayBuffer> {
    const { blobs } = this;
    if (number >= blobs.list.length) this.later(() => blobs.list.length > number || !blobs.more() && malformed());
    return blobs.list[number] as Uint8Array<ArrayBuffer>;
  }

  /** An empty array that takes the elements which follow without a conversion. */
  private longArray(length: number): unknown[] {
    const { at, elements } = this;
    if (elements?.start === at) {
      this.elements = undefined;
      return elements.array();
    }
    const scan = new ElementScan(this.bytes, at, length);
    this.elements = scan;
    return this.later(() => scan.go());
  }

  /** Abandons this step. It is repeated after `prerequisite`, which may take several slices. */
  private later(prerequisite: () => boolean): never {
    this.prerequisite = prerequisite;
    throw LATER;
  }

  private reference(): unknown {
    const index = this.varint();
    if (index >= this.objects.length) malformed();
    return this.objects[index];
  }

  private string(): string {
    const tag = this.u8();
    if (tag === Tag.String) return this.utf8();
    return tag === Tag.String16 ? this.utf16() : malformed();
  }

  private optional(): unknown {
    return this.leaf(this.u8());
  }

  private bigint(): bigint {
    const negative = this.u8() !== 0;
    const size = this.varint();
    const start = this.take(size);
    if (size === 0) return 0n;
    const last = start + size - 1 - ((size - 1) % WORD_BYTES);
    const isShort = size <= SHORT_BIGINT && last + WORD_BYTES <= this.bytes.length;
    const value = isShort ? this.words(start, last, size) : this.digits(start, size);
    return negative ? -value : value;
  }

  /** The words from `start` to `last` as a big integer of `size` bytes. */
  private words(start: number, last: number, size: number): bigint {
    let value = BigInt.asUintN(8 * (start + size - last), this.data.getBigUint64(last, true));
    for (let at = last - WORD_BYTES; at >= start; at -= WORD_BYTES) value = (value << 64n) | this.data.getBigUint64(at, true);
    return value;
  }

  private digits(start: number, size: number): bigint {
    const hex = Uint8Array.prototype.slice.call(this.bytes, start, start + size).reverse();
    return BigInt(`0x${(hex as Buffer).toString('hex')}`);
  }

  /** The number of the next key of an object, or -1 at its end. */
  private key(): number {
    const written = this.varint();
    if (written >= Key.Known) {
      if (written - Key.Known >= this.keys.length) malformed();
      return written - Key.Known;
    }
    if (written === Key.End) return -1;
    const key = written === Key.New ? this.utf8() : this.utf16();
    this.indices.push(key in Object.prototype ? ElementIndex.Inherited : indexOf(key));
    return this.keys.push(key) - 1;
  }

  private utf8(): string {
    const size = this.varint();
    const start = this.take(size);
    return size > LONG_BYTES ? this.long(start, start + size, 'utf8') : this.slice(start, start + size);
  }

  private utf16(): string {
    const size = this.varint() * 2;
    const start = this.take(size);
    if (size > LONG_BYTES) return this.long(start, start + size, 'utf16le');
    return this.bytes.toString('utf16le', start, start + size);
  }

  private slice(start: number, end: number): string {
    return end - start < SHORT_STRING ? this.short(start, end) : this.bytes.toString('utf8', start, end);
  }

  /** Reads a text in several steps. It may be longer than the longest string of V8. */
  private long(start: number, end: number, encoding: 'utf8' | 'utf16le'): string {
    const texts = (this.texts ??= new Map());
    if (texts.has(start)) return texts.get(start) ?? this.overlong(end - start);
    const { bytes } = this;
    let text = '';
    let at = start;
    return this.later(() => {
      const next = pieceEnd(bytes, at, end, encoding);
      const piece = bytes.toString(encoding, at, next);
      at = next;
      if (text.length + piece.length > constants.MAX_STRING_LENGTH) {
        texts.set(start, undefined);
        return true;
      }
      text += piece;
      if (at < end) return false;
      texts.set(start, text);
      return true;
    });
  }

  private overlong(size: number): string {
    const what = `a string of ${size} bytes`;
    return this.unsupported(what, `[${what}]`);
  }

  /** Reads a short text; ASCII takes no call into the runtime. */
  private short(start: number, end: number): string {
    const { bytes } = this;
    let text = '';
    for (let at = start; at < end; at += 1) {
      const code = bytes[at] as number;
      if (code >= 0x80) return bytes.toString('utf8', start, end);
      text += String.fromCharCode(code);
    }
    return text;
  }

  private take(size: number): number {
    const start = this.at;
    this.at += size;
    if (this.at > this.end) malformed();
    return start;
  }

  private varint(): number {
    const { bytes } = this;
    let byte = bytes[this.at++] as number;
    if (byte < 0x80) return byte;
    let value = byte & 0x7f;
    for (let scale = 0x80; scale <= 0x2_0000_0000_0000; scale *= 0x80) {
      byte = bytes[this.at++] as number;
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) return value;
    }
    return malformed();
  }
}

/** Thrown where a step has to wait for a prerequisite. The step is repeated, so it must not have changed anything. */
const LATER = Symbol('later');

/** A value in a message that this host cannot represent. */
class Unsupported extends Error {
  constructor(readonly what: string) {
    super(what);
  }
}

/** The end of the piece of a text that begins at `at`; never within a character. */
function pieceEnd(bytes: Uint8Array, at: number, end: number, encoding: 'utf8' | 'utf16le'): number {
  let next = Math.min(end, at + PIECE_BYTES);
  if (encoding === 'utf8') while (next < end && ((bytes[next] as number) & 0xc0) === 0x80) next -= 1;
  return next;
}

/** An error without the stack of this process. Capturing one would be most of the cost of reading an error. */
function unstacked(Class: ErrorConstructor, message: string): Error {
  const limit = Object.getOwnPropertyDescriptor(Error, 'stackTraceLimit');
  if (limit?.writable !== true) return new Class(message);
  Error.stackTraceLimit = 0;
  try {
    return new Class(message);
  } finally {
    Error.stackTraceLimit = limit.value;
  }
}

function own(target: object, key: string, value: unknown): void {
  Object.defineProperty(target, key, { __proto__: null, value, writable: true, enumerable: true, configurable: true } as PropertyDescriptor);
}

function hidden(target: object, key: string, value: unknown): void {
  Object.defineProperty(target, key, { __proto__: null, value, writable: true, enumerable: false, configurable: true } as PropertyDescriptor);
}

function malformed(): never {
  throw new Error('malformed message');
}
