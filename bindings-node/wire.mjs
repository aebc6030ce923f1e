// The numbers of the value format and of frames, from the sources in Rust to `lib/wire.ts`.
//
// In: nothing, or `--check`. Out: the file; with `--check` an exit code of 1 if it is not what it would be.
// Fails for a constant in these sources that it cannot read.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';

const HOME = fileURLToPath(new URL('.', import.meta.url));
const VALUE = '../core/src/value/mod.rs';
const HOST = '../core/src/binding/host.rs';
const FRAMES = 'src/wire.rs';

/** What is taken from where: constants, modules of constants, and enums as lists of names. */
const PARTS = [
  { from: VALUE, mod: 'tag', as: 'Tag' },
  { from: VALUE, mod: 'key', as: 'Key' },
  { from: VALUE, enum: 'ErrorClass', as: 'ERROR_CLASSES' },
  { from: VALUE, enum: 'ViewKind', as: 'VIEW_KINDS' },
  { from: HOST, constants: true },
  { from: FRAMES, constants: true },
  { from: FRAMES, mods: true },
];

const HEAD = `// The numbers of the value format (core/src/value/mod.rs is its specification) and of frames.
//
// Written by \`bindings-node/wire.mjs\` from ${VALUE.slice(3)}, ${HOST.slice(3)} and bindings-node/${FRAMES}:
// not to be edited. The numbers are inlined by the compiler, so that the codec's switches stay jump tables.
`;

/** Words that JavaScript spells otherwise than their constants. */
const SPELLED = { BIGINT: 'BigInt', REGEXP: 'RegExp' };

/** What \`lib/wire.ts\` has to be. */
export function wire() {
  return HEAD + PARTS.map((part) => `\n${write(part, readFileSync(join(HOME, part.from), 'utf8'))}`).join('');
}

/** What it is. */
export function written() {
  return readFileSync(join(HOME, 'lib', 'wire.ts'), 'utf8');
}

function write(part, source) {
  if (part.enum !== undefined) return list(part, source);
  if (part.mod !== undefined) return constEnum(part.as, module(source, part.mod));
  if (part.mods) {
    const names = [...source.matchAll(/^pub\(crate\) mod (\w+) \{$/gm)].map(([, name]) => name);
    return names.map((name) => constEnum(camel(name.toUpperCase()), module(source, name))).join('\n');
  }
  return constants(source, '')
    .map(({ docs, name, value }) => `${comment(docs, '')}export const ${name} = ${value};\n`)
    .join('\n');
}

/** A module's documentation and its body. */
function module(source, name) {
  const found = new RegExp(`^((?:/// .*\\n)*)pub(?:\\(crate\\))? mod ${name} \\{\\n([^]*?)^\\}$`, 'm').exec(source);
  if (found === null) throw new Error(`there is no module ${name}`);
  return { docs: docs(found[1]), constants: constants(found[2], '    ') };
}

function constants(source, indent) {
  const declared = source.split('\n').filter((line) => new RegExp(`^${indent}pub(\\(crate\\))? const `).test(line));
  const form = new RegExp(`^((?:${indent}/// .*\\n)*)${indent}pub(?:\\(crate\\))? const (\\w+): [ui]\\d+ = (.+);$`, 'gm');
  const read = [...source.matchAll(form)].map(([, text, name, value]) => ({ docs: docs(text), name, value: number(value) }));
  if (read.length !== declared.length || read.length === 0) throw new Error(`cannot read all of ${declared.join('\n')}`);
  return read;
}

/** A Rust number as JavaScript writes it. */
function number(text) {
  const value = /^u32::MAX$/.test(text) ? 0xffff_ffff : /^1 << \d+$/.test(text) ? 2 ** Number(text.slice(5)) : Number(text.replaceAll('_', ''));
  if (!Number.isInteger(value)) throw new Error(`${text} is no number that this program knows`);
  return value < 256 ? value : `0x${value.toString(16).padStart(8, '0').replace(/^(.{4})(.{4})$/, '$1_$2')}`;
}

function constEnum(name, { docs: text, constants: all }) {
  const members = all.map((one) => `${comment(one.docs, '  ')}  ${camel(one.name)} = ${one.value},\n`).join('');
  return `${comment(text, '')}export const enum ${name} {\n${members}}\n`;
}

/** An enum without gaps, whose variants are named like the classes of JavaScript. */
function list({ enum: name, as }, source) {
  const found = new RegExp(`^((?:/// .*\\n)*)(?:#\\[.*\\n)*pub enum ${name} \\{\\n([^}]*)\\}$`, 'm').exec(source);
  if (found === null) throw new Error(`there is no enum ${name}`);
  const variants = found[2].trim().split(/,\n?\s*/).filter((variant) => variant !== '');
  const names = variants.map((variant, index) => {
    const read = /^(\w+) = (\d+)$/.exec(variant);
    if (read === null || Number(read[2]) !== index) throw new Error(`cannot read ${variant} of ${name}`);
    return `  '${read[1]}',\n`;
  });
  return `${comment([...docs(found[1]), 'By their numbers.'], '')}export const ${as} = [\n${names.join('')}] as const;\n`;
}

function docs(text) {
  return text.split('\n').map((line) => line.trim().slice(4)).filter((line) => line !== '');
}

function comment(lines, indent) {
  // Links of Rust's documentation are only words here.
  const plain = lines.map((line) => line.replaceAll(/\[`([^`]+)`\]/g, '`$1`'));
  if (plain.length === 0) return '';
  if (plain.length === 1) return `${indent}/** ${plain[0]} */\n`;
  return `${indent}/**\n${plain.map((line) => `${indent} * ${line}\n`).join('')}${indent} */\n`;
}

function camel(name) {
  return SPELLED[name] ?? name.toLowerCase().replaceAll(/(?:^|_)(\w)/g, (_, first) => first.toUpperCase());
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  if (!process.argv.includes('--check')) writeFileSync(join(HOME, 'lib', 'wire.ts'), wire());
  else if (wire() !== written()) {
    console.error('lib/wire.ts differs from the sources in Rust: run node bindings-node/wire.mjs');
    process.exitCode = 1;
  }
}
