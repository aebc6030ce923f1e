// The parts of `npm run build:shipped`: its training, and its settings for the C compiler.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { compile, counted, counter, counting, counts, isGcc } from '../../bindings-node/profile.mjs';

const TRAINING = fileURLToPath(new URL('../../bindings-node/training/', import.meta.url));
const CEILING_MS = 60_000;
const SOURCE = `
  #include <stdio.h>
  int main(void) {
    int sum = 0;
    for (int i = 0; i < 100; i++) sum += i % 3 ? i : 1;
    printf("%d", sum);
    return 0;
  }`;

test('every program of the training has the expected outcome', { timeout: CEILING_MS }, () => {
  const expected = JSON.parse(readFileSync(join(TRAINING, 'expected.json'), 'utf8'));
  const programs = readdirSync(TRAINING).filter((name) => name.endsWith('.ts'));
  assert.deepStrictEqual(Object.keys(expected).sort(), programs.sort());
  assert.equal(execFileSync(process.execPath, [join(TRAINING, 'run.mjs')], { encoding: 'utf8' }), '');
});

const gcc = { timeout: CEILING_MS, skip: !isGcc() && 'the C compiler is not gcc' };

test('gcc counts, compiles by its counts, and refuses a source without any', gcc, () => {
  const folder = mkdtempSync(join(tmpdir(), 'isolane profile '));
  try {
    const [profile, source, object] = ['counts', 'sum.c', 'sum.o'].map((name) => join(folder, name));
    const toObject = ['-O2', '-c', source, '-o', object];
    mkdirSync(profile);
    writeFileSync(source, SOURCE);
    assert.throws(() => compile([...toObject, ...counted(profile)]), /missing-profile/);
    compile([...toObject, ...counting(profile)]);
    compile([object, counter(), '-o', join(folder, 'sum')]);
    assert.equal(execFileSync(join(folder, 'sum'), { encoding: 'utf8' }), '3301');
    assert.equal(counts(profile).length, 1);
    compile([...toObject, ...counted(profile)]);
    writeFileSync(source, SOURCE.replace('i % 3 ? i : 1', 'i % 3 ? i : i % 5 ? 2 : 1'));
    assert.throws(() => compile([...toObject, ...counted(profile)]), /coverage-mismatch/);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
