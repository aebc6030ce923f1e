// Scripts of package.json, some of them side by side: `npm test`.
//
//     node tests/steps.mjs build:tests -- test:rust test:node -- test:counts
//
// In: their names, in stages with `--` between them. A stage begins when all scripts of the one before have ended; of a
// stage, two scripts go on at a time, for most tests wait more than they compute. Out: the output of each script in
// one piece, in the order of their starts, with a line before and another with its seconds after; and the exit code of the
// first that fails. That one ends the others. The runners of the contract tables write their counts to
// `target/contract.txt`, which `test:counts` reads.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, rmSync } from 'node:fs';
import process from 'node:process';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const COUNTS = `${ROOT}target/contract.txt`;
const AT_ONCE = 2;

/** The steps that have begun and whose end was not told, in the order of their starts. Only the first one speaks. */
const running = [];

mkdirSync(`${ROOT}target`, { recursive: true });
rmSync(COUNTS, { force: true });
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => giveUp(1));
for (const stage of stages(process.argv.slice(2))) {
  const left = [...stage];
  const lane = async () => {
    while (left.length > 0) await run(left.shift());
  };
  await Promise.all(Array.from({ length: AT_ONCE }, lane));
}

function stages(words) {
  const found = [[]];
  for (const word of words) {
    if (word === '--') found.push([]);
    else found.at(-1).push(word);
  }
  return found;
}

/** Runs a script to its end. */
async function run(name) {
  const began = performance.now();
  const env = { ...process.env, ISOLANE_CONTRACT_COUNTS: COUNTS };
  // In a group of its own, which can be ended as a whole.
  const options = { cwd: ROOT, env, stdio: ['ignore', 'pipe', 'pipe'], detached: true };
  const child = spawn('npm', ['run', '--silent', name], options);
  const step = { child, held: [`\n== ${name}\n`], hasEnded: false };
  running.push(step);
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (piece) => say(step, piece));
  say(step, '');
  const [status, signal] = await once(child, 'close');
  const seconds = ((performance.now() - began) / 1000).toFixed(0);
  const hasFailed = status !== 0;
  say(step, `== ${name} ${hasFailed ? `FAILED (${signal ?? status})` : 'ok'} ${seconds} s\n`);
  step.hasEnded = true;
  if (hasFailed) {
    // It is told at once.
    for (const piece of step.held.splice(0)) process.stdout.write(piece);
    giveUp(status || 1);
  }
  while (running[0]?.hasEnded) {
    running.shift();
    if (running.length > 0) say(running[0], '');
  }
}

/** Prints the output of a step, or holds it until it is the step's turn. */
function say(step, piece) {
  step.held.push(piece);
  if (step !== running[0]) return;
  for (const held of step.held.splice(0)) process.stdout.write(held);
}

/** Ends all steps, and this process. */
function giveUp(status) {
  for (const { child, hasEnded } of running) {
    if (hasEnded || child.pid === undefined) continue;
    try {
      process.kill(-child.pid, 'SIGTERM');
    } catch {
      // It has ended.
    }
  }
  process.exit(status);
}
