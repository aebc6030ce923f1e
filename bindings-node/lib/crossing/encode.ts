// The encoder: writes a value of the host as a message for the sandbox.
//
// In: any value and its path (`globals.db`). Out: nodes in the outbox and the blobs beside them, or a
// SerializationError that names the path. The encoder keeps the contract's rules: own enumerable string keys
// cross in their order, a brand decides the kind of an object, a getter runs once, and no trap of a Proxy runs.
// Nothing recurses: memory alone bounds the depth.

import { types } from 'node:util';

import type { NativeFunction } from '../addon/native.js';
import { ERROR_CLASSES, Key, Tag } from '../addon/wire.js';
import { Buffers, getter } from './buffers.js';
import { Kind, describe, errorClass, functionName, kindOf } from './kind.js';
import { isNativeFunction } from './native-functions.js';
import { Outbox } from './outbox.js';
import { notCloneable, segment } from './serialization-error.js';

/** Gives out the numbers under which functions and promises cross. */
export interface Numbering {
  /** The number of a host function, the same for the same function within a run. It crosses under that name. */
  hostFunction(fn: Function, name: string): number;
  /** The number of a function that is answered in Rust. */
  nativeFunction(fn: NativeFunction): number;
  /** The number of a function of this run's sandbox; undefined for any other function. */
  sandboxFunction(fn: Function): number | undefined;
  /** A number for a promise of the host. The promise is settled under it later, as the answer of the function `fn`. */
  hostPromise(promise: Promise<unknown>, fn: number): number;
  /** The path of the answer of the host function with that number. */
  answerOf(fn: number): string;
}

/** In place of the number of a host function, for a promise that no function returned. */
export const NO_FUNCTION = -1;

/** The kind of entries that an open container writes. */
const enum Rest {
  Object,
  Array,
  Sparse,
  Map,
  Set,
}

interface Frame {
  readonly rest: Rest;
  /** The object itself. For a Map or a Set, a copy of its members from the moment when it was reached. */
  readonly source: Record<string, unknown> | unknown[];
  /** The keys of an object, or the indexes of a sparse array. */
  readonly keys: readonly string[];
  /** The index of the next entry. */
  next: number;
  readonly length: number;
  readonly up: Frame | undefined;
}

const NO_KEYS: readonly string[] = [];
const forEachEntry = Map.prototype.forEach;
const forEachMember = Set.prototype.forEach;
const dateTime = Date.prototype.getTime;
// The brand's own getters: a RegExp may have another prototype.
const patternSource = getter(RegExp.prototype, 'source');
const patternFlags = (
  [
    ['d', 'hasIndices'],
    ['g', 'global'],
    ['i', 'ignoreCase'],
    ['m', 'multiline'],
    ['s', 'dotAll'],
    ['u', 'unicode'],
    ['v', 'unicodeSets'],
    ['y', 'sticky'],
  ] as const
).map(([letter, name]) => [letter, getter(RegExp.prototype, name)] as const);
const unboxers = [Number, String, Boolean, BigInt].map((type) => type.prototype.valueOf as () => unknown);

// The encoder probes a longer array for holes before it reads each of its elements.
const PROBED_LENGTH = 4096;
const PROBES = 16;

/** Writes messages, one after the other, into its own outbox. */
export class Encoder extends Outbox {
  private readonly buffers = new Buffers(this);
  private seen = new Map<object, number>();
  private keys = new Map<string, number>();
  private objects = 0;
  private top: Frame | undefined;
  private root: string | number = '';
  private rootKey: string | undefined;
  /** Whether objects are asked for their JSON, as `JSON.stringify` asks them. */
  private asksForJson = false;
  private leavesSymbols = false;
  /** Only while a message is written: an idle encoder keeps no sandbox. */
  private numbering: Numbering | undefined;

  /** The bytes of this message's buffers. The native side copies them within the call. */
  get blobs(): Uint8Array[] | undefined {
    return this.buffers.taken();
  }

  /** Starts a message at the end of the outbox. */
  begin(numbering: Numbering): void {
    this.numbering = numbering;
    this.objects = 0;
    this.forgetValues();
  }

  /** Forgets the message and its values. */
  forget(): void {
    this.reset();
    this.numbering = undefined;
    this.forgetValues();
  }

  private forgetValues(): void {
    this.top = undefined;
    if (this.seen.size > 0) this.seen = new Map();
    if (this.keys.size > 0) this.keys = new Map();
    this.buffers.reset();
  }

  /** Writes the head of an array. The caller then writes its elements, each with a path of its own. */
  arrayOf(length: number): void {
    this.u8(Tag.Array);
    this.varint(length);
    this.objects += 1;
  }

  /**
   * Writes one value. `root` and `key` are its path; a function gets the key as its name. A number as `root` stands for
   * the answer of the host function with that number. Throws a SerializationError, or the exception of a getter of the
   * value.
   */
  value(value: unknown, root: string | number, key?: string): void {
    this.root = root;
    this.rootKey = key;
    this.node(value, key);
    while (this.top !== undefined) {
      const frame = this.top;
      switch (frame.rest) {
        case Rest.Object:
          this.entries(frame);
          break;
        case Rest.Array:
          this.elements(frame);
          break;
        case Rest.Sparse:
          this.sparseElements(frame);
          break;
        default:
          this.members(frame);
      }
    }
    this.buffers.check();
  }

  /** Writes the tag of an object, which takes the next object index. */
  tagged(tag: Tag): void {
    this.u8(tag);
    this.objects += 1;
  }

  /**
   * The same for a value that becomes JSON: an object with a `toJSON` stands for what that gives. `leavesSymbols`: a symbol
   * in the value is `undefined`, as for `JSON.stringify`.
   */
  jsonValue(value: unknown, root: string, leavesSymbols = false): void {
    this.asksForJson = true;
    this.leavesSymbols = leavesSymbols;
    try {
      this.value(value, root);
    } finally {
      this.asksForJson = this.leavesSymbols = false;
    }
  }

  /** Throws the SerializationError for the value that is being written. */
  refuse(what: string): never {
    throw notCloneable(this.path(), what);
  }

  // Each of the following methods returns when its frame is done or an entry has opened a frame of its own.

  private entries(frame: Frame): void {
    const { keys, length } = frame;
    const source = frame.source as Record<string, unknown>;
    while (frame.next < length) {
      const key = keys[frame.next] as string;
      frame.next += 1;
      const value = source[key];
      // An earlier getter may have deleted the property. The value is then undefined or an inherited function.
      if ((value === undefined || typeof value === 'function') && !Object.hasOwn(source, key)) continue;
      this.key(key);
      this.node(value, key);
      if (this.top !== frame) return;
    }
    this.u8(Key.End);
    this.top = frame.up;
  }

  private elements(frame: Frame): void {
    const { length } = frame;
    const source = frame.source as unknown[];
    while (frame.next < length) {
      const index = frame.next;
      frame.next += 1;
      const value = source[index];
      if (value === undefined && !Object.hasOwn(source, index)) {
        this.u8(Tag.Hole);
        continue;
      }
      this.node(value, undefined);
      if (this.top !== frame) return;
    }
    this.top = frame.up;
  }

  private sparseElements(frame: Frame): void {
    const { keys, length } = frame;
    const source = frame.source as unknown[];
    while (frame.next < length) {
      const index = Number(keys[frame.next]);
      frame.next += 1;
      const value = source[index];
      if (value === undefined && !Object.hasOwn(source, index)) continue;
      this.varint(index + 1);
      this.node(value, undefined);
      if (this.top !== frame) return;
    }
    this.varint(0);
    this.top = frame.up;
  }

  private members(frame: Frame): void {
    const source = frame.source as unknown[];
    while (frame.next < frame.length) {
      const value = source[frame.next];
      frame.next += 1;
      this.node(value, undefined);
      if (this.top !== frame) return;
    }
    this.top = frame.up;
  }

  private node(value: unknown, key: string | undefined): void {
    switch (typeof value) {
      case 'string':
        this.string(value);
        return;
      case 'number':
        this.number(value);
        return;
      case 'boolean':
        this.u8(value ? Tag.True : Tag.False);
        return;
      case 'undefined':
        this.u8(Tag.Undefined);
        return;
      case 'bigint':
        this.bigint(value);
        return;
      case 'symbol':
        // JSON leaves it out.
        if (this.leavesSymbols && this.top !== undefined) return this.u8(Tag.Undefined);
        return this.refuse('a symbol');
      default:
        if (value === null) this.u8(Tag.Null);
        else this.object(value as object, key);
    }
  }

  private object(value: object, key: string | undefined): void {
    const index = this.seen.get(value);
    if (index !== undefined) {
      this.u8(Tag.Ref);
      this.varint(index);
      return;
    }
    if (types.isProxy(value)) this.refuse('a Proxy');
    if (this.asksForJson && this.json(value, key)) return;
    this.seen.set(value, this.objects);
    this.content(value, key);
  }

  /** Writes what a `toJSON` gives; says whether there is one. Dates and bytes have forms of their own. */
  private json(value: object, key: string | undefined): boolean {
    if (typeof value === 'function' || types.isDate(value) || types.isAnyArrayBuffer(value) || ArrayBuffer.isView(value)) return false;
    const { toJSON } = value as { toJSON?: unknown };
    if (typeof toJSON !== 'function') return false;
    const json: unknown = toJSON.call(value, key ?? this.place());
    if (typeof json !== 'object' || json === null || this.seen.has(json)) {
      this.node(json, key);
      return true;
    }
    if (types.isProxy(json)) this.refuse('a Proxy');
    // It is not asked again. A cycle through it is one of the other.
    const before = this.objects;
    this.seen.set(value, before).set(json, before);
    this.content(json, key);
    if (this.objects === before) this.seen.delete(value);
    return true;
  }

  /** The key of the element that is being written, as `JSON.stringify` has it. */
  private place(): string {
    const frame = this.top;
    if (frame?.rest === Rest.Array) return String(frame.next - 1);
    return frame?.rest === Rest.Sparse ? (frame.keys[frame.next - 1] as string) : '';
  }

  private content(value: object, key: string | undefined): void {
    if (Array.isArray(value)) this.array(value);
    else if (typeof value === 'function') this.fn(value, key);
    else if (!this.plain(value)) this.byKind(value, key);
  }

  /** The fast path for plain objects. An object without keys goes to `byKind`, because it may have a brand. */
  private plain(value: object): boolean {
    const prototype: object | null = Object.getPrototypeOf(value);
    if (prototype !== Object.prototype && prototype !== null) return false;
    const keys = Object.keys(value);
    if (keys.length === 0 || ArrayBuffer.isView(value)) return false;
    this.tagged(Tag.Object);
    this.open(Rest.Object, value as Record<string, unknown>, keys, keys.length);
    return true;
  }

  private byKind(value: object, key: string | undefined): void {
    switch (kindOf(value)) {
      case Kind.Plain: {
        const keys = Object.keys(value);
        this.tagged(Tag.Object);
        this.open(Rest.Object, value as Record<string, unknown>, keys, keys.length);
        return;
      }
      case Kind.Map: {
        const members: unknown[] = [];
        forEachEntry.call(value as Map<unknown, unknown>, (item, key) => members.push(key, item));
        this.tagged(Tag.Map);
        this.varint(members.length / 2);
        this.open(Rest.Map, members, NO_KEYS, members.length);
        return;
      }
      case Kind.Set: {
        const members: unknown[] = [];
        forEachMember.call(value as Set<unknown>, (item) => members.push(item));
        this.tagged(Tag.Set);
        this.varint(members.length);
        this.open(Rest.Set, members, NO_KEYS, members.length);
        return;
      }
      case Kind.Date:
        this.tagged(Tag.Date);
        this.f64(dateTime.call(value as Date));
        return;
      case Kind.RegExp:
        this.regexp(value as RegExp);
        return;
      case Kind.Error:
        this.error(value as Error);
        return;
      case Kind.Buffer:
        this.buffers.buffer(value as ArrayBuffer);
        return;
      case Kind.View:
        this.buffers.view(value as ArrayBufferView);
        return;
      case Kind.Promise:
        this.tagged(Tag.HostPromise);
        this.u32(this.hostPromise(value as Promise<unknown>));
        return;
      case Kind.Boxed:
        this.boxed(value);
        return;
      default:
        if (!isNativeFunction(value)) this.refuse(describe(value));
        this.tagged(Tag.HostFunction);
        this.u32((this.numbering as Numbering).nativeFunction(value));
        this.string(key ?? value.name);
    }
  }

  private array(value: unknown[]): void {
    const { length } = value;
    if (length > PROBED_LENGTH && isSparse(value)) {
      const indexes = Object.keys(value).filter(isIndex);
      if (indexes.length < length / 2) {
        this.tagged(Tag.SparseArray);
        this.varint(length);
        this.open(Rest.Sparse, value, indexes, indexes.length);
        return;
      }
    }
    this.tagged(Tag.Array);
    this.varint(length);
    this.open(Rest.Array, value, NO_KEYS, length);
  }

  private fn(value: Function, key: string | undefined): void {
    const own = (this.numbering as Numbering).sandboxFunction(value);
    const name = key ?? functionName(value);
    this.tagged(own === undefined ? Tag.HostFunction : Tag.SandboxFunction);
    this.u32(own ?? (this.numbering as Numbering).hostFunction(value, name));
    this.string(name);
  }

  private hostPromise(value: Promise<unknown>): number {
    return (this.numbering as Numbering).hostPromise(value, typeof this.root === 'number' ? this.root : NO_FUNCTION);
  }

  /** Writes an error without its stack and its cause: the sandbox does not get those of the host. */
  private error(value: Error): void {
    const index = errorClass(value, ERROR_CLASSES);
    const { name, message } = value;
    const code: unknown = (value as { code?: unknown }).code;
    this.tagged(Tag.Error);
    this.u8(index);
    this.string(typeof name === 'string' ? name : (ERROR_CLASSES[index] as string));
    this.string(typeof message === 'string' ? message : '');
    this.u8(Tag.Undefined);
    if (typeof code === 'string') this.string(code);
    else if (typeof code === 'number') this.number(code);
    else this.u8(Tag.Undefined);
  }

  private regexp(value: RegExp): void {
    this.tagged(Tag.RegExp);
    this.string(patternSource(value) as string);
    this.string(patternFlags.map(([letter, has]) => (has(value) === true ? letter : '')).join(''));
  }

  /** Writes `new Number(1)` as `1`. It is no object on the other side, so it takes no object index. */
  private boxed(value: object): void {
    this.seen.delete(value);
    if (types.isSymbolObject(value)) this.refuse('a symbol');
    const which = types.isNumberObject(value) ? 0 : types.isStringObject(value) ? 1 : types.isBooleanObject(value) ? 2 : 3;
    this.node((unboxers[which] as () => unknown).call(value), undefined);
  }

  private number(value: number): void {
    const int = value | 0;
    this.reserve(9);
    if (int === value && (int !== 0 || 1 / value > 0)) {
      const zigzag = ((int << 1) ^ (int >> 31)) >>> 0;
      this.bytes[this.at++] = Tag.Int;
      if (zigzag < 0x80) this.bytes[this.at++] = zigzag;
      else this.varint(zigzag);
      return;
    }
    this.bytes[this.at++] = Tag.Double;
    this.view.setFloat64(this.at, value, true);
    this.at += 8;
  }

  private bigint(value: bigint): void {
    const negative = value < 0n;
    const hex = (negative ? -value : value).toString(16);
    const size = value === 0n ? 0 : (hex.length + 1) >> 1;
    this.u8(Tag.BigInt);
    this.u8(negative ? 1 : 0);
    this.varint(size);
    this.reserve(size);
    for (let i = 0, end = hex.length; i < size; i += 1, end -= 2) {
      this.bytes[this.at++] = Number.parseInt(hex.slice(Math.max(0, end - 2), end), 16);
    }
  }

  private key(key: string): void {
    const number = this.keys.get(key);
    if (number !== undefined) {
      this.varint(number + Key.Known);
      return;
    }
    this.keys.set(key, this.keys.size);
    if (key.length < 32 && this.shortAscii(Key.New, key)) return;
    this.longText(Key.New, Key.New16, key);
  }

  private open(rest: Rest, source: Frame['source'], keys: readonly string[], length: number): void {
    this.top = { rest, source, keys, next: 0, length, up: this.top };
  }

  /** The path of the value that is being written. */
  private path(): string {
    let path = '';
    for (let frame = this.top; frame !== undefined; frame = frame.up) path = step(frame) + path;
    const root = typeof this.root === 'number' ? (this.numbering as Numbering).answerOf(this.root) : this.root;
    return root + (this.rootKey === undefined ? '' : segment(this.rootKey)) + path;
  }
}

function step({ rest, keys, next }: Frame): string {
  const at = next - 1;
  switch (rest) {
    case Rest.Object:
      return segment(keys[at] as string);
    case Rest.Array:
      return `[${at}]`;
    case Rest.Sparse:
      return `[${keys[at]}]`;
    case Rest.Map:
      return `.${at % 2 === 0 ? 'keys' : 'values'}()[${at >> 1}]`;
    default:
      return `.values()[${at}]`;
  }
}

/**
 * Whether probes find a hole in a long array. The probes are random: otherwise an array could have its few
 * elements at the probed indexes, and the encoder would read hole by hole.
 */
function isSparse(value: unknown[]): boolean {
  for (let probe = 0; probe < PROBES; probe += 1) {
    if (!Object.hasOwn(value, Math.floor(value.length * Math.random()))) return true;
  }
  return false;
}

function isIndex(key: string): boolean {
  const index = Number(key) >>> 0;
  return index !== 0xffff_ffff && String(index) === key;
}
