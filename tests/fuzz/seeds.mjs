// Initial programs: every source of the contract table, in the format of the target `source`.
//
// In: a folder. Out: one file per source in it.
import { createHash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { cases } from '../contract/parse.mjs';

// The first byte: 16 MB, a text in UTF-8, no check of the realm afterwards; bit 0 is TypeScript.
const HOW = 0b0100_0110;

const folder = process.argv[2];
mkdirSync(folder, { recursive: true });
for (const { entry, modules } of cases('tests/contract')) {
  const typescript = entry.language === 'typescript';
  for (const source of [entry.source, ...Object.values(modules)]) {
    const bytes = Buffer.from(`\0${source}`);
    bytes[0] = HOW | Number(typescript);
    writeFileSync(join(folder, createHash('sha1').update(bytes).digest('hex')), bytes);
  }
}
