// The hazard suite: every program that can run long is asked to end, each in a process of its own.
//
// In: `cases.mjs`; `--sample` for the first program of each group, `--cells` to make each program a cell of a session,
// `--only text` for names that contain the text, `--jobs n` to run that many at a time, which makes the times worse, `--table` for a table in Markdown;
// ISOLANE_ISOLATION. Out: a non-zero exit code if a run did not settle, settled with a wrong status, blocked the result of
// another run, kept its process from exiting, left its worker under isolation by process, or left its session in another
// state than it says. Times are printed and not judged, except by a ceiling far above the promise.

import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

import { isolation } from '../isolation.mjs';
import { GROUPS, PRELUDE, SOURCES } from './cases.mjs';

const PROCESS_CEILING_MS = 180_000;
const SETTLED_CEILING_MS = 60_000;
const OWN_END_MS = 2;
const CHILD = fileURLToPath(new URL('child.mjs', import.meta.url));

const { values: options } = parseArgs({
  options: { sample: { type: 'boolean', default: false }, only: { type: 'string', default: '' }, jobs: { type: 'string', default: '1' }, table: { type: 'boolean', default: false }, cells: { type: 'boolean', default: false } },
});
const rows = [];
const left = hazards().filter(({ group, name, first }) => `${group}: ${name}`.includes(options.only) && (first || !options.sample));
await Promise.all(Array.from({ length: Number(options.jobs) }, work));
if (options.table) console.log(table(rows));
console.log(summary(rows));
process.exitCode = rows.length > 0 && rows.every((row) => row.wrong.length === 0) ? 0 : 1;

function hazards() {
  const programs = Object.entries(GROUPS).flatMap(([group, programs]) => programs.map(([name, program], index) => {
    return { group, name, first: index === 0, go: true, source: () => `${PRELUDE}report('go'); ${program}\n;export default 'done';` };
  }));
  return [...programs, ...Object.entries(SOURCES).map(([name, source], index) => ({ group: 'sources', name, first: index === 0, go: false, source }))];
}

async function work() {
  for (let hazard = left.shift(); hazard !== undefined; hazard = left.shift()) {
    const place = rows.push(undefined) - 1;
    const row = { ...hazard, ...(await measure(hazard)) };
    row.wrong = judge(row);
    rows[place] = row;
    if (row.wrong.length > 0 || !options.table) console.log(line(row));
  }
}

async function measure({ source, go }) {
  const begun = performance.now();
  const child = spawn(process.execPath, [CHILD], { stdio: ['pipe', 'pipe', 'pipe'] });
  const ceiling = setTimeout(() => child.kill('SIGKILL'), PROCESS_CEILING_MS);
  const exited = new Promise((resolve) => child.once('close', (code, signal) => resolve(signal ?? code)));
  child.stdin.on('error', () => {});
  child.stdin.end(JSON.stringify({ source: source(), go, cell: options.cells }));
  const [output, errors, exit] = await Promise.all([text(child.stdout), text(child.stderr), exited]);
  clearTimeout(ceiling);
  const lines = output.trim().split('\n');
  const said = exit === 0 && lines[0] !== '' ? JSON.parse(lines.at(-1)) : {};
  return { exit, errors: errors.slice(0, 500), tookMs: performance.now() - begun, ...said };
}

/** The broken promises of a case. */
function judge({ exit, errors, go, wasRunning, status, settledMs, innocent, state, kept, threadBack }) {
  if (exit !== 0) return [`the process ended with ${exit} ${errors}`];
  const wrong = [];
  // A run that was about to end by itself may have done so before it was asked to.
  const byItself = settledMs < OWN_END_MS && ['error', 'link_error', 'success'].includes(status);
  if (wasRunning && !byItself && !['terminated', 'memory'].includes(status)) wrong.push(`status ${status}`);
  if (!wasRunning && status === 'terminated') wrong.push('terminated before it was told to end');
  if (settledMs > SETTLED_CEILING_MS) wrong.push(`settled after ${settledMs.toFixed(0)} ms`);
  if (!innocent) wrong.push('a run beside it did not come to its result');
  if (options.cells) {
    const undone = ['terminated', 'memory'].includes(status);
    // A source without the report may have ended before its first instruction.
    const right = undone ? ['rolledBack', 'reset', ...(go ? [] : ['kept'])] : ['kept'];
    if (!right.includes(state)) wrong.push(`the session is ${state}`);
    if (kept !== (state === 'reset' ? 'ReferenceError' : 'an hour')) wrong.push(`the next cell finds ${kept}`);
  }
  if (!threadBack && isolation === 'process') wrong.push('its worker is still there');
  return wrong;
}

function line({ group, name, wasRunning, status, settledMs, threadBack, threadMs, wrong }) {
  const settled = wasRunning ? `${settledMs.toFixed(1).padStart(7)} ms` : '  by itself';
  const thread = threadBack ? `${threadMs.toFixed(0).padStart(5)} ms` : '   stays';
  return `${(status ?? '?').padEnd(11)} ${settled}  ${thread}  ${group}: ${name}${wrong.map((why) => `  WRONG: ${why}`).join('')}`;
}

function table(rows) {
  const cells = rows.map(({ group, name, status, wasRunning, settledMs = NaN, threadBack, threadMs = NaN }) => {
    const settled = wasRunning ? `${settledMs < 10 ? settledMs.toFixed(1) : settledMs.toFixed(0)}` : `by itself: ${status}`;
    return `| ${group} | \`${name.replaceAll('|', '\\|')}\` | ${settled} | ${threadBack ? threadMs.toFixed(0) : 'not in 1,500'} |`;
  });
  return ['| | construct | settled, ms | thread back, ms |', '|---|---|---|---|', ...cells].join('\n');
}

function summary(rows) {
  const told = rows.filter(({ wasRunning }) => wasRunning).map(({ settledMs }) => settledMs).sort((a, b) => a - b);
  const at = (share) => told[Math.min(told.length - 1, Math.floor(told.length * share))]?.toFixed(1);
  const over = (ms) => told.filter((took) => took > ms).length;
  const stuck = rows.filter(({ threadBack }) => threadBack === false).length;
  const wrong = rows.filter((row) => row.wrong.length > 0).length;
  return [
    `hazards${options.cells ? ' as cells' : ''}: ${rows.length}, ${wrong} wrong; ${told.length} told to end, the others came to an end by themselves`,
    `settled after p50 ${at(0.5)} ms, p90 ${at(0.9)} ms, at most ${at(1)} ms; over 50 ms: ${over(50)}, over 250 ms: ${over(250)}`,
    `${isolation === 'process' ? 'workers that were not gone' : 'threads that did not come back'} in 1.5 s: ${stuck}`,
  ].join('\n');
}
