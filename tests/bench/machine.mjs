// The machine and versions of a measurement, printed above each table.

import { execFileSync } from 'node:child_process';
import { cpus, loadavg, release, totalmem, type } from 'node:os';

const ROOT = new URL('../../', import.meta.url);

export function machine() {
  const [{ model }] = cpus();
  const gib = Math.round(totalmem() / 2 ** 30);
  const load = loadavg()[0].toFixed(1);
  return `${cpus().length} × ${model}, ${gib} GiB, ${type()} ${release()}, load ${load} before`;
}

/** This project at its commit, and today's date. */
export function edition() {
  const commit = output('git', ['describe', '--always', '--dirty']);
  return `isolane at ${commit}, ${new Date().toISOString().slice(0, 10)}`;
}

/** The output of a program, in one line. */
export function output(command, args) {
  return execFileSync(command, args, { cwd: ROOT, encoding: 'utf8' }).trim().replace(/\s+/g, ' ');
}
