// The options that the types promise are those that the core declares.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { test } from 'node:test';

const { native } = createRequire(import.meta.url)('../../bindings-node/dist/addon/connection.js');
const types = readFileSync(new URL('../../bindings-node/index.d.ts', import.meta.url), 'utf8');

/** The members of the block after `opening`, indented by that much, with their types as far as they are on the line. */
function members(opening, indent) {
  const from = types.indexOf(opening);
  assert.notEqual(from, -1, opening);
  const body = types.slice(from, types.indexOf(`\n${' '.repeat(indent - 2)}}`, from));
  const member = new RegExp(`^ {${indent}}(\\w+)\\??: (.*)$`, 'gm');
  return [...body.matchAll(member)].map(([, name, type]) => [name, type.replace(/;$/, '')]);
}

const SETS = [
  ['run', 'interface CodeExecutionOptions {', 2],
  ['execute', 'execute?: {', 4],
  ['runtime', 'interface RuntimeOptions {', 2],
  ['session', 'interface SessionOptions {', 2],
  ['cell', 'interface CellOptions {', 2],
  ['call', 'interface CallOptions {', 2],
  ['update', 'interface SessionUpdate {', 2],
];

for (const [set, opening, indent] of SETS) {
  test(`the options of '${set}' have types, and no others do`, () => {
    const declared = native.optionDeclarations(set);
    const typed = new Map(members(opening, indent));
    assert.deepStrictEqual([...typed.keys()].sort(), declared.map(({ name }) => name).sort());
    for (const { name, type, choices } of declared) {
      if (choices.length > 0) assert.deepStrictEqual(typed.get(name).split(' | ').sort(), choices.map((choice) => `'${choice}'`).sort());
      else if (type !== '') assert.equal(typed.get(name), type);
    }
  });
}
