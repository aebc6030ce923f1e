// The libraries that an ELF file asks for.
//
// In: a 64-bit little-endian file. Out: the names of shared libraries, and the versions of glibc among its symbols. Those
// decide on which systems the file can be loaded, and which tag its wheel may have.

import { readFileSync } from 'node:fs';

const SECTION = { dynamic: 6, versionNeeds: 0x6fff_fffe };
const NEEDED = 1n;
const GLIBC = /^GLIBC_(\d+\.\d+)(\.\d+)?$/;

/** @returns {{ libraries: string[], glibc: string[] }} */
export function needs(path) {
  const bytes = readFileSync(path);
  if (bytes.readUInt32BE(0) !== 0x7f45_4c46 || bytes[4] !== 2 || bytes[5] !== 1) throw new Error(`${path} is no 64-bit ELF file`);
  const sections = table(bytes);
  const libraries = [];
  const glibc = new Set();
  for (const { type, offset, size, link } of sections) {
    const text = (at) => string(bytes, sections[link].offset + at);
    if (type === SECTION.dynamic) {
      for (let at = offset; at < offset + size; at += 16) {
        if (bytes.readBigInt64LE(at) === NEEDED) libraries.push(text(Number(bytes.readBigUInt64LE(at + 8))));
      }
    }
    if (type === SECTION.versionNeeds) {
      for (const name of versions(bytes, offset)) {
        const [, version] = GLIBC.exec(text(name)) ?? [];
        if (version !== undefined) glibc.add(version);
      }
    }
  }
  return { libraries, glibc: [...glibc] };
}

/** The section headers. */
function table(bytes) {
  const [start, size, count] = [Number(bytes.readBigUInt64LE(0x28)), bytes.readUInt16LE(0x3a), bytes.readUInt16LE(0x3c)];
  return Array.from({ length: count }, (_, index) => {
    const at = start + index * size;
    return {
      type: bytes.readUInt32LE(at + 4),
      offset: Number(bytes.readBigUInt64LE(at + 0x18)),
      size: Number(bytes.readBigUInt64LE(at + 0x20)),
      link: bytes.readUInt32LE(at + 0x28),
    };
  });
}

/** The places of version names in the string table: a list of libraries, each with a list of versions. */
function* versions(bytes, offset) {
  for (let at = offset; ; at += bytes.readUInt32LE(at + 12)) {
    const count = bytes.readUInt16LE(at + 2);
    for (let index = 0, aux = at + bytes.readUInt32LE(at + 8); index < count; index += 1, aux += bytes.readUInt32LE(aux + 12)) {
      yield bytes.readUInt32LE(aux + 8);
    }
    if (bytes.readUInt32LE(at + 12) === 0) return;
  }
}

function string(bytes, at) {
  return bytes.toString('latin1', at, bytes.indexOf(0, at));
}
