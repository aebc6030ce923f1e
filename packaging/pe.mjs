// The libraries that a PE file asks for, and the names that it exports.
//
// In: a 64-bit file for x64. Out: the names of libraries, those that are loaded late too, and the oldest Windows that loads
// the file, which decide on which systems it can be loaded; the exported names, by which a program finds its entry.

import { readFileSync } from 'node:fs';

const DOS_MAGIC = 0x5a4d;
const PE_MAGIC = 0x4550;
const PE64_MAGIC = 0x20b;
const X64 = 0x8664;
const FIELD = { peOffset: 0x3c, machine: 4, sections: 6, optionalBytes: 20, optional: 24 };
const OPTIONAL = { major: 48, minor: 50, directories: 108 };
/** The directories of imports: their place in the list, the size of an entry, and the field with the library's name. */
const IMPORTS = [
  { directory: 1, size: 20, name: 12 },
  { directory: 13, size: 32, name: 4 },
];
/** The directory of exports: its place in the list, and its fields with the number of names and with their addresses. */
const EXPORTS = { directory: 0, count: 24, addresses: 32 };
const SECTION_BYTES = 40;

/** @returns {{ libraries: string[], windows: string, exported: string[] }} */
export function needs(path) {
  const bytes = readFileSync(path);
  const start = bytes.readUInt16LE(0) === DOS_MAGIC ? bytes.readUInt32LE(FIELD.peOffset) : 0;
  const optional = start + FIELD.optional;
  const isRight = bytes.readUInt32LE(start) === PE_MAGIC && bytes.readUInt16LE(start + FIELD.machine) === X64;
  if (!isRight || bytes.readUInt16LE(optional) !== PE64_MAGIC) throw new Error(`${path} is no 64-bit PE file for x64`);
  const sections = table(bytes, optional + bytes.readUInt16LE(start + FIELD.optionalBytes), bytes.readUInt16LE(start + FIELD.sections));
  const count = bytes.readUInt32LE(optional + OPTIONAL.directories);
  const libraries = IMPORTS.filter(({ directory }) => directory < count).flatMap(({ directory, size, name }) => {
    const address = bytes.readUInt32LE(optional + OPTIONAL.directories + 4 + 8 * directory);
    return address === 0 ? [] : names(bytes, sections, place(sections, address), size, name);
  });
  const windows = `${bytes.readUInt16LE(optional + OPTIONAL.major)}.${bytes.readUInt16LE(optional + OPTIONAL.minor)}`;
  const exports = bytes.readUInt32LE(optional + OPTIONAL.directories + 4 + 8 * EXPORTS.directory);
  return { libraries, windows, exported: exports === 0 ? [] : exportedNames(bytes, sections, place(sections, exports)) };
}

function exportedNames(bytes, sections, start) {
  const count = bytes.readUInt32LE(start + EXPORTS.count);
  const addresses = place(sections, bytes.readUInt32LE(start + EXPORTS.addresses));
  return Array.from({ length: count }, (_, index) => text(bytes, sections, bytes.readUInt32LE(addresses + 4 * index)));
}

/** The names in a list of libraries, which ends with an entry without a name. */
function names(bytes, sections, start, size, field) {
  const found = [];
  for (let at = start; ; at += size) {
    const address = bytes.readUInt32LE(at + field);
    if (address === 0) return found;
    found.push(text(bytes, sections, address));
  }
}

/** The text at an address in memory. */
function text(bytes, sections, address) {
  const start = place(sections, address);
  return bytes.toString('latin1', start, bytes.indexOf(0, start));
}

/** The section headers. */
function table(bytes, start, count) {
  return Array.from({ length: count }, (_, index) => {
    const at = start + index * SECTION_BYTES;
    return { address: bytes.readUInt32LE(at + 12), size: bytes.readUInt32LE(at + 16), offset: bytes.readUInt32LE(at + 20) };
  });
}

/** The place in the file of an address in memory. */
function place(sections, address) {
  const section = sections.find((one) => address >= one.address && address < one.address + one.size);
  if (section === undefined) throw new Error(`no section has the address ${address}`);
  return section.offset + address - section.address;
}
