// What a Mach-O file asks for.
//
// In: a 64-bit little-endian file. Out: the names of shared libraries, the oldest macOS that loads it, whether it has a
// signature, the names that the program which loads it must have, and the names that a library has for that program.
// Those decide on which systems it can be loaded.

import { readFileSync } from 'node:fs';

const MAGIC = 0xfeed_facf;
const COMMAND = { library: 0xc, weakLibrary: 0x8000_0018, ownName: 0xd, rpath: 0x8000_001c, signature: 0x1d, bindings: 0x8000_0022, oldestMacos: 0x24, build: 0x32 };
const HEADER_BYTES = 32;
/** The kind of a file that is a library. */
const LIBRARY = 6;
/** The codes of a table of bindings; the ones that bind the last name in the last library; and how many numbers follow. */
const BIND = { ordinal: 0x10, longOrdinal: 0x20, specialOrdinal: 0x30, name: 0x40, addend: 0x60, place: 0x70, skip: 0x80, bind: 0x90, bindAndSkip: 0xa0, bindScaled: 0xb0, bindMany: 0xc0 };
const BINDS = [BIND.bind, BIND.bindAndSkip, BIND.bindScaled, BIND.bindMany];
const NUMBERS = { [BIND.longOrdinal]: 1, [BIND.addend]: 1, [BIND.place]: 1, [BIND.skip]: 1, [BIND.bindAndSkip]: 1, [BIND.bindMany]: 2 };
/** The library of a symbol that is looked up in all that a process has: -2, in four bits. */
const ANY_LIBRARY = 0xe;

/** @returns {{ libraries: string[], paths: string[], macos: string, isSigned: boolean, ofLoader: string[], exported: string[] | undefined }} `exported` is of a library alone */
export function needs(path) {
  const bytes = readFileSync(path);
  if (bytes.readUInt32LE(0) !== MAGIC) throw new Error(`${path} is no 64-bit Mach-O file`);
  const found = { libraries: [], paths: [], macos: '', isSigned: false, ofLoader: [], exported: undefined };
  const isLibrary = bytes.readUInt32LE(12) === LIBRARY;
  for (const { command, at } of commands(bytes)) {
    const text = () => string(bytes, at + bytes.readUInt32LE(at + 8));
    if (command === COMMAND.library || command === COMMAND.weakLibrary) found.libraries.push(text());
    if (command === COMMAND.ownName || command === COMMAND.rpath) found.paths.push(text());
    if (command === COMMAND.signature) found.isSigned = true;
    if (command === COMMAND.oldestMacos) found.macos = version(bytes.readUInt32LE(at + 8));
    if (command === COMMAND.build) found.macos = version(bytes.readUInt32LE(at + 12));
    if (command === COMMAND.bindings) {
      found.ofLoader = [16, 32].flatMap((field) => foundAnywhere(bytes, bytes.readUInt32LE(at + field), bytes.readUInt32LE(at + field + 4)));
      if (isLibrary) found.exported = bytes.readUInt32LE(at + 44) === 0 ? [] : [...exportedNames(bytes, bytes.readUInt32LE(at + 40), 0, '')];
    }
  }
  return found;
}

function* commands(bytes) {
  const count = bytes.readUInt32LE(16);
  for (let index = 0, at = HEADER_BYTES; index < count; index += 1, at += bytes.readUInt32LE(at + 4)) {
    yield { command: bytes.readUInt32LE(at), at };
  }
}

/** The symbols that a table of bindings looks up in every library of the process. */
function foundAnywhere(bytes, start, size) {
  const names = new Set();
  let library = 0;
  let name = '';
  for (let at = start; at < start + size; ) {
    const code = bytes[at] & 0xf0;
    const operand = bytes[at] & 0x0f;
    at += 1;
    if (code === BIND.ordinal || code === BIND.longOrdinal) library = 0;
    if (code === BIND.specialOrdinal) library = operand;
    if (code === BIND.name) {
      name = string(bytes, at);
      at += name.length + 1;
    }
    if (BINDS.includes(code) && library === ANY_LIBRARY) names.add(name);
    // Numbers of any length: the last byte of one has no high bit.
    for (let left = NUMBERS[code] ?? 0; left > 0; at += 1) if (bytes[at] < 0x80) left -= 1;
  }
  return [...names];
}

/** The names below a node of the tree of exports: an edge has the next part of a name, and the place of its node. */
function* exportedNames(bytes, tree, node, begun) {
  const [size, start] = number(bytes, tree + node);
  if (size > 0) yield begun;
  let at = start + size;
  const edges = bytes[at];
  at += 1;
  for (let edge = 0; edge < edges; edge += 1) {
    const part = string(bytes, at);
    const [next, end] = number(bytes, at + part.length + 1);
    yield* exportedNames(bytes, tree, next, begun + part);
    at = end;
  }
}

/** A number of any length, seven bits a byte, and the place after it. */
function number(bytes, start) {
  let value = 0;
  for (let at = start, factor = 1; ; at += 1, factor *= 128) {
    value += (bytes[at] & 0x7f) * factor;
    if (bytes[at] < 0x80) return [value, at + 1];
  }
}

/** `11.0` of the number that a header has. */
function version(packed) {
  return `${packed >>> 16}.${(packed >>> 8) & 0xff}`;
}

function string(bytes, at) {
  return bytes.toString('latin1', at, bytes.indexOf(0, at));
}
