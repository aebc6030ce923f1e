// The contract table of sessions, run through the Node face.
//
// In: the tables next to this file. Out: one test per case, and at the end the numbers of cases that ran and of those
// that were skipped; also in the file in ISOLANE_CONTRACT_COUNTS, for counts.mjs. CONTRACT=text runs the cases whose
// file and heading contain the text.

import { appendFileSync } from 'node:fs';
import { after, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { isolation } from '../../isolation.mjs';
import { check } from './case.node.mjs';
import { cases } from './parse.mjs';

// Builds with a sanitizer are slow and set this variable.
const CEILING_MS = 60_000 * Number(process.env.ISOLANE_TEST_PATIENCE ?? 1);
const counts = { ran: 0, skipped: 0 };
const wanted = process.env.CONTRACT ?? '';
const all = cases(fileURLToPath(new URL('.', import.meta.url))).filter(({ file, heading }) => `${file} ${heading}`.includes(wanted));

for (const file of new Set(all.map((one) => one.file))) {
  describe(file, () => {
    for (const one of all.filter((other) => other.file === file)) {
      const skip = one.skip.node;
      if (skip !== undefined) counts.skipped += 1;
      test(one.heading, { skip: skip ?? false, timeout: CEILING_MS }, () => {
        counts.ran += 1;
        return check(one);
      });
    }
  });
}

after(() => {
  const said = `${counts.ran} ran, ${counts.skipped} skipped`;
  console.log(`sessions: ${said}`);
  const path = process.env.ISOLANE_CONTRACT_COUNTS;
  if (path) appendFileSync(path, `sessions of node${isolation === 'process' ? ' in processes' : ''}: ${said}\n`);
});
