// Bytes on their way to the core.
//
// In: numbers and text. Out: one growing buffer. The native side reads its first `at` bytes within the call that
// passes it. This module writes the numbers and strings of the format; values are the encoder's.

import { Buffer } from 'node:buffer';

import { SourceEncoding, Tag } from '../addon/wire.js';

const INITIAL_BYTES = 16 * 1024;

// A larger buffer is not kept for the next message, so that one large value does not hold memory for ever.
const KEPT_BYTES = 1024 * 1024;

// Up to this length a loop over the characters is faster than a call into the runtime.
const SHORT_STRING = 32;

/** A growing buffer and the offset of its end. */
export class Outbox {
  bytes: Buffer = Buffer.allocUnsafeSlow(INITIAL_BYTES);
  view: DataView = viewOf(this.bytes);
  at = 0;

  /** Starts over. Frees the buffer of an unusually large message. */
  reset(): void {
    this.at = 0;
    if (this.bytes.length > KEPT_BYTES) {
      this.bytes = Buffer.allocUnsafeSlow(INITIAL_BYTES);
      this.view = viewOf(this.bytes);
    }
  }

  /** Makes room for that many more bytes. */
  reserve(count: number): void {
    if (this.at + count > this.bytes.length) this.grow(count);
  }

  u8(value: number): void {
    this.reserve(1);
    this.bytes[this.at++] = value;
  }

  u32(value: number): void {
    this.reserve(4);
    this.view.setUint32(this.at, value, true);
    this.at += 4;
  }

  f64(value: number): void {
    this.reserve(8);
    this.view.setFloat64(this.at, value, true);
    this.at += 8;
  }

  /** LEB128 of a whole number below 2^53. */
  varint(value: number): void {
    this.reserve(8);
    let rest = value;
    while (rest >= 0x80) {
      this.bytes[this.at++] = (rest % 0x80) | 0x80;
      rest = rest < 0x8000_0000 ? rest >>> 7 : Math.floor(rest / 0x80);
    }
    this.bytes[this.at++] = rest;
  }

  /** Writes a string as a node. */
  string(text: string): void {
    if (text.length < SHORT_STRING && this.shortAscii(Tag.String, text)) return;
    this.longText(Tag.String, Tag.String16, text);
  }

  /** Writes a tag, the length and the characters: UTF-8 after `narrow`, UTF-16 after `wide` for lone surrogates. */
  longText(narrow: number, wide: number, text: string): void {
    const size = Buffer.byteLength(text);
    const ascii = size === text.length;
    if (ascii || text.isWellFormed()) {
      this.reserve(size + 9);
      this.bytes[this.at++] = narrow;
      this.varint(size);
      this.reserve(size);
      this.bytes.write(text, this.at, size, ascii ? 'latin1' : 'utf8');
      this.at += size;
      return;
    }
    this.u8(wide);
    this.varint(text.length);
    this.reserve(text.length * 2);
    this.at += this.bytes.write(text, this.at, text.length * 2, 'utf16le');
  }

  /** Writes `tag`, the length and the characters if all are ASCII; returns whether they are. */
  shortAscii(tag: number, text: string): boolean {
    const { length } = text;
    this.reserve(SHORT_STRING + 2);
    const { bytes } = this;
    let at = this.at;
    bytes[at++] = tag;
    bytes[at++] = length;
    for (let i = 0; i < length; i += 1) {
      const code = text.charCodeAt(i);
      if (code >= 0x80) return false;
      bytes[at++] = code;
    }
    this.at = at;
    return true;
  }

  /** Writes a text of a frame: byte length and UTF-8. A lone surrogate becomes U+FFFD. */
  text(text: string): void {
    const size = Buffer.byteLength(text);
    this.u32(size);
    this.reserve(size);
    this.at += this.bytes.write(text, this.at, size, size === text.length ? 'latin1' : 'utf8');
  }

  /** Writes a source. One with a lone surrogate is UTF-16, so that the core can refuse it with its position. */
  source(text: string): void {
    if (text.isWellFormed()) {
      this.u8(SourceEncoding.Utf8);
      this.text(text);
      return;
    }
    this.u8(SourceEncoding.Utf16);
    this.u32(text.length);
    this.reserve(text.length * 2);
    this.at += this.bytes.write(text, this.at, text.length * 2, 'utf16le');
  }

  private grow(count: number): void {
    const bytes = Buffer.allocUnsafeSlow(Math.max(this.bytes.length * 2, this.at + count));
    bytes.set(this.bytes.subarray(0, this.at));
    this.bytes = bytes;
    this.view = viewOf(bytes);
  }
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
