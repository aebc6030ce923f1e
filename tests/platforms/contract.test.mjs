// The contract table, run by the packages as a user has them.
//
// In: `target/packages`; in `ISOLANE_NODES` the executables of Node.js for the target, with `:` between them. Out: for each
// one a test that the cases ran there, all of them, and passed.

import assert from 'node:assert/strict';
import { cpSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import process from 'node:process';
import { test } from 'node:test';

import { cases } from '../contract/parse.mjs';
import { serve } from '../install/registry.mjs';
import { Machine, ROOT, packagesOf } from '../install/user.mjs';

const FILES = ['contract', 'isolation.mjs'];
/** An emulator is slow. */
const PATIENCE = 10;
const CEILING_MS = 30 * 60_000;

for (const node of process.env.ISOLANE_NODES.split(delimiter)) test(`the contract table in ${node}`, { timeout: CEILING_MS }, () => run(node));

async function run(node) {
  const machine = new Machine(node, { variables: { ISOLANE_TEST_PATIENCE: String(PATIENCE) }, ceilingMs: CEILING_MS });
  const registry = await serve(packagesOf('.tgz'), []);
  try {
    const home = machine.folder('project');
    writeFileSync(join(home, 'package.json'), '{ "private": true }');
    const installed = await machine.npmBeside(home, 'install', 'isolane', `--registry=${registry.url}`);
    assert.equal(installed.code, 0, installed.text);
    for (const name of FILES) cpSync(join(ROOT, 'tests', name), join(home, 'tests', name), { recursive: true });
    // The runner of tests starts a process for each file by a pipe, which Wine's Node.js cannot read.
    const output = machine.run(home, join(machine.env.PATH, 'node'), 'tests/contract/run.node.mjs');
    const all = cases(join(ROOT, 'tests', 'contract'));
    const skipped = all.filter((one) => one.skip.node !== undefined).length;
    assert.match(output, new RegExp(`contract: ${all.length - skipped} ran, ${skipped} skipped`));
  } finally {
    registry.close();
    machine.remove();
  }
}
