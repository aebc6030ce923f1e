// A message of the core, read as a value of the host.
//
// In: nodes, the blobs beside them, and who owns the numbers in them. Out: a fresh value that shares
// nothing with the sandbox. Whatever the message holds, an own key stays an own key (`__proto__`
// too), and nothing recurses. What this version of Node.js cannot hold is a SerializationError, or text
// where the reader wants text. A message that is none ends as an error, never as a wrong read.

import { constants, type Buffer } from 'node:buffer';

import { notCloneable, segment } from './serialization-error.js';
import { ERROR_CLASSES, Key, Tag, VIEW_KINDS } from './tag.js';

/** Makes functions and promises of the numbers under which they crossed. */
export interface Owners {
  hostFunction(number: number): unknown;
  sandboxFunction(number: number, name: string): unknown;
  hostPromise(number: number): unknown;
  sandboxPromise(number: number): unknown;
}

const enum Container {
  Object,
  Array,
  Sparse,
  Map,
  Set,
}

interface Frame {
  readonly kind: Container;
  readonly target: any;
  /** Nodes still to come; for Map and Set keys and values are counted alike. */
  left: number;
  /** Of an object, the key whose value comes next, by its number; of a Map the key itself. */
  key: any;
  readonly up: Frame | undefined;
}

type ErrorConstructors = Record<string, ErrorConstructor>;
const errors = globalThis as unknown as ErrorConstructors;
const views = globalThis as unknown as Record<
  string,
  (new (buffer: ArrayBuffer, byteOffset: number, length: number) => ArrayBufferView) | undefined
>;

const NOTHING: readonly Uint8Array[] = [];
const SHORT_STRING = 16;
/** What a Map or a Set of this host's engine can have. */
const MOST_ENTRIES = 2 ** 24;
/** Steps of a path that are shown at either end of a long one. */
const SHOWN_STEPS = 12;

/** Reads messages out of one run of bytes. */
export class Decoder {
  private readonly bytes: Buffer;
  private readonly data: DataView;
  /** The place of the next byte. */
  at: number;
  private end = 0;
  private blobs: readonly Uint8Array[] = NOTHING;
  private owners!: Owners;
  private asText = false;
  private objects: unknown[] = [];
  private keys: string[] = [];
  /** Of each key, whether assigning it could reach what `Object.prototype` defines. */
  private inherited: boolean[] = [];

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
   * The message in the next `length` bytes. What this host cannot hold is text in its place if `asText`
   * says so, and otherwise a SerializationError that names its path from `root`.
   */
  message(length: number, blobs: readonly Uint8Array[], owners: Owners, root: string, asText = false): unknown {
    this.end = this.at + length;
    if (this.end > this.bytes.length) malformed();
    this.blobs = blobs;
    this.owners = owners;
    this.asText = asText;
    if (this.objects.length > 0) this.objects = [];
    if (this.keys.length > 0) {
      this.keys = [];
      this.inherited = [];
    }
    const value = this.read(root);
    if (this.at !== this.end) malformed();
    return value;
  }

  private read(name: string): unknown {
    const place: Place = { frame: undefined };
    try {
      return this.nodes(place);
    } catch (failure) {
      if (failure instanceof Unheld) throw notCloneable(name + path(place.frame, this.keys), failure.what);
      throw failure;
    }
  }

  private nodes(place: Place): unknown {
    let root: unknown;
    let frame: Frame | undefined;
    for (;;) {
      place.frame = frame;
      if (this.at >= this.end) malformed();
      const tag = this.bytes[this.at++] as Tag;
      let opened: Frame | undefined;
      let value: unknown;
      switch (tag) {
        case Tag.Object:
          value = {};
          this.objects.push(value);
          opened = { kind: Container.Object, target: value, left: 0, key: 0, up: frame };
          break;
        case Tag.Array:
          value = [];
          this.objects.push(value);
          opened = { kind: Container.Array, target: value, left: this.varint(), key: 0, up: frame };
          break;
        case Tag.SparseArray:
          value = [];
          this.objects.push(value);
          (value as unknown[]).length = this.varint();
          opened = { kind: Container.Sparse, target: value, left: 0, key: 0, up: frame };
          break;
        case Tag.Map:
          value = new Map();
          this.objects.push(value);
          opened = { kind: Container.Map, target: value, left: this.entries('Map') * 2, key: 0, up: frame };
          break;
        case Tag.Set:
          value = new Set();
          this.objects.push(value);
          opened = { kind: Container.Set, target: value, left: this.entries('Set'), key: 0, up: frame };
          break;
        case Tag.Hole:
          if (frame === undefined || frame.kind !== Container.Array) malformed();
          break;
        default:
          value = this.leaf(tag);
      }
      if (frame === undefined) root = value;
      else if (tag === Tag.Hole) frame.target.length += 1;
      else this.put(frame, value);
      if (opened !== undefined) frame = opened;
      while (frame !== undefined && this.isDone(frame)) frame = frame.up;
      if (frame === undefined) return root;
    }
  }

  private put(frame: Frame, value: unknown): void {
    const { target } = frame;
    switch (frame.kind) {
      case Container.Object:
        if (this.inherited[frame.key]) own(target, this.keys[frame.key] as string, value);
        else target[this.keys[frame.key] as string] = value;
        return;
      case Container.Array:
        target.push(value);
        return;
      case Container.Sparse:
        target[frame.key] = value;
        return;
      case Container.Map:
        if (frame.left % 2 === 1) frame.key = value;
        else target.set(frame.key, value);
        return;
      case Container.Set:
        target.add(value);
    }
  }

  /** Whether nothing follows in this container; if something does, its key is read. */
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

  /** An object without nested nodes, which later nodes may refer to. */
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
      case Tag.HostPromise:
        return this.owners.hostPromise(this.u32());
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
      // The isolate's engine knows more of the language than this host's.
      const text = `/${source}/${flags}`;
      return this.unheld(`the RegExp ${text.slice(0, 80)}, which this version of Node.js does not know,`, text);
    }
  }

  private entries(kind: 'Map' | 'Set'): number {
    const count = this.varint();
    if (count > MOST_ENTRIES) throw new Unheld(`a ${kind} of ${count} entries`);
    return count;
  }

  private unheld(what: string, text: string): string {
    if (this.asText) return text;
    throw new Unheld(what);
  }

  private error(): Error {
    const name = ERROR_CLASSES[this.u8()] ?? 'Error';
    const ownName = this.string();
    const error = unstacked(errors[name] as ErrorConstructor, this.string());
    const stack = this.optional();
    const code = this.optional();
    if (ownName !== name) hidden(error, 'name', ownName);
    // Where this process read the message is of no use to anyone; where the sandbox made it is.
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
    // A Float16Array where the host has none: its bytes are what there is.
    if (View === undefined) return new Uint8Array(buffer, start + byteOffset, length * 2);
    return new View(buffer, start + byteOffset, length);
  }

  private blob(number: number): Uint8Array<ArrayBuffer> {
    return (this.blobs[number] ?? malformed()) as Uint8Array<ArrayBuffer>;
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
    const hex = Uint8Array.prototype.slice.call(this.bytes, start, start + size).reverse();
    const value = BigInt(`0x${(hex as Buffer).toString('hex')}`);
    return negative ? -value : value;
  }

  /** The number of the next key of an object, -1 at its end. */
  private key(): number {
    const written = this.varint();
    if (written >= Key.Known) {
      if (written - Key.Known >= this.keys.length) malformed();
      return written - Key.Known;
    }
    if (written === Key.End) return -1;
    const key = written === Key.New ? this.utf8() : this.utf16();
    this.inherited.push(key in Object.prototype);
    return this.keys.push(key) - 1;
  }

  private utf8(): string {
    const size = this.varint();
    const start = this.take(size);
    return this.slice(start, start + size);
  }

  private utf16(): string {
    const size = this.varint() * 2;
    const start = this.take(size);
    return size / 2 > constants.MAX_STRING_LENGTH ? this.overlong(size) : this.bytes.toString('utf16le', start, start + size);
  }

  private slice(start: number, end: number): string {
    if (end - start < SHORT_STRING) return this.short(start, end);
    return end - start > constants.MAX_STRING_LENGTH ? this.long(start, end) : this.bytes.toString('utf8', start, end);
  }

  /** More bytes than a string can have units; beyond ASCII they are fewer units. */
  private long(start: number, end: number): string {
    try {
      return this.bytes.toString('utf8', start, end);
    } catch {
      return this.overlong(end - start);
    }
  }

  private overlong(size: number): string {
    const what = `a string of ${size} bytes`;
    return this.unheld(what, `[${what}]`);
  }

  /** Short ASCII without a call into the runtime. */
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

/** Where the reader is, for the path of what cannot be held. */
interface Place {
  frame: Frame | undefined;
}

/** Something in a message that this host cannot hold. */
class Unheld extends Error {
  constructor(readonly what: string) {
    super(what);
  }
}

function path(innermost: Frame | undefined, keys: readonly string[]): string {
  const steps: string[] = [];
  for (let frame = innermost; frame !== undefined; frame = frame.up) steps.push(step(frame, keys));
  steps.reverse();
  if (steps.length > 2 * SHOWN_STEPS) steps.splice(SHOWN_STEPS, steps.length - 2 * SHOWN_STEPS, '…');
  return steps.join('');
}

function step({ kind, target, left, key }: Frame, keys: readonly string[]): string {
  switch (kind) {
    case Container.Object:
      return segment(keys[key] as string);
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

/** An error without the stack of this process: to take that is most of what reading one would take. */
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
  Object.defineProperty(target, key, { value, writable: true, enumerable: true, configurable: true });
}

function hidden(target: object, key: string, value: unknown): void {
  Object.defineProperty(target, key, { value, writable: true, enumerable: false, configurable: true });
}

function malformed(): never {
  throw new Error('malformed message');
}
