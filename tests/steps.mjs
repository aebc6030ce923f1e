// Scripts of package.json, one after another: `npm test`.
//
// In: their names. Out: a line before each, another with its seconds after it, and the exit code of the first that
// fails. The runners of the contract tables write their counts to `target/contract.txt`, which `test:counts` reads.

import { spawnSync } from 'node:child_process';
import { mkdirSync, rmSync } from 'node:fs';
import process from 'node:process';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const COUNTS = `${ROOT}target/contract.txt`;

mkdirSync(`${ROOT}target`, { recursive: true });
rmSync(COUNTS, { force: true });
for (const name of process.argv.slice(2)) {
  const began = performance.now();
  console.log(`\n== ${name}`);
  const env = { ...process.env, ISOLANE_CONTRACT_COUNTS: COUNTS };
  const { status, signal } = spawnSync('npm', ['run', '--silent', name], { cwd: ROOT, env, stdio: 'inherit' });
  const seconds = ((performance.now() - began) / 1000).toFixed(0);
  console.log(`== ${name} ${status === 0 ? 'ok' : `FAILED (${signal ?? status})`} ${seconds} s`);
  if (status !== 0) process.exit(status || 1);
}
