// The demo: programs as a model writes them, run with exactly the tools that the host hands over.
//
// The first program works through a year of support tickets. Six others fail, each in another way. Exits with a
// non-zero code if a result differs from the intended one.

import { readFileSync } from 'node:fs';

import { runCode } from 'isolane';

import { differences, outcomeDifferences } from './check.mjs';
import * as show from './show.mjs';
import { openTools } from './tools.mjs';

const MEMORY = 64 * 1024 * 1024;
const TOP = 7;

let failures = 0;

await agent();
for (const failing of failingPrograms()) await fail(failing);

show.heading(failures === 0 ? 'Everything came out as intended.' : `${failures} came out otherwise than intended.`);
process.exitCode = failures === 0 ? 0 : 1;

/** The agent at work: reports arrive while it runs. */
async function agent() {
  show.heading('An agent program over 4,000 support tickets');
  const sources = read('', ['triage.ts', 'lib/clean.ts', 'lib/stats.ts']);
  const begun = performance.now();
  let live = 0;
  const run = runCode(sources['triage.ts'], {
    filename: 'triage.ts',
    modules: withKeys(sources, ['lib/clean.ts', 'lib/stats.ts']),
    imports: openTools(),
    execute: { fn: 'triage', args: [{ top: TOP }] },
    memoryLimitBytes: MEMORY,
    report(value) {
      show.report(performance.now() - begun, value);
      if (run.running && run.reports.length === live + 1) live += 1;
    },
  });
  const budget = setTimeout(() => run.terminate('30 s budget'), 30_000);
  const result = await run;
  clearTimeout(budget);

  if (result.status !== 'success') {
    show.failure(result, sources);
    return conclude([`status: ${result.status} instead of success`]);
  }
  const { lines, rows, used, flaws, refunded, latest } = result.result;
  show.heading('Its answer');
  show.table(lines, {
    category: (line) => line.category,
    tickets: (line) => line.tickets,
    open: (line) => line.open,
    'median hours': (line) => line.medianHours,
    'refunded €': (line) => line.refunded,
    'businesses €': (line) => line.fromBusinesses,
    'best article': (line) => line.article,
  });
  show.note(`${show.number(used)} of ${show.number(rows)} rows used, € ${show.number(refunded)} refunded, the last opened on ${latest.toISOString().slice(0, 10)}`);
  show.note(`left out: ${[...flaws].map(([flaw, count]) => `${count} ${flaw}`).join(', ')}`);
  show.heading('Its console');
  show.logs(result.logs);
  show.cost(result);
  const wrong = differences(result.result, TOP);
  if (live === 0 || live !== result.reports.length) wrong.push(`${live} of ${result.reports.length} reports came while it ran`);
  conclude(wrong);
}

/** A program that fails, with the same tools and limits. */
async function fail({ title, file, modules = [], budgetMs = 10_000, expect }) {
  show.heading(title);
  const sources = read('failing/', [file, ...modules]);
  const run = runCode(sources[file], {
    filename: file,
    modules: withKeys(sources, modules),
    imports: openTools(),
    memoryLimitBytes: MEMORY,
  });
  const budget = setTimeout(() => run.terminate(`${budgetMs} ms budget`), budgetMs);
  const result = await run;
  clearTimeout(budget);

  show.failure(result, sources);
  show.cost(result);
  conclude(outcomeDifferences(result, expect, sources));
}

function failingPrograms() {
  return [
    {
      title: 'A syntax error',
      file: 'syntax-error.ts',
      expect: { status: 'link_error', name: 'SyntaxError', at: ['syntax-error.ts', 'open;'] },
    },
    {
      title: 'An import that nobody handed over',
      file: 'missing-import.ts',
      expect: { status: 'link_error', at: ['missing-import.ts', "'lodash'"] },
    },
    {
      title: 'A tool that does not exist',
      file: 'missing-export.ts',
      expect: { status: 'link_error', at: ['missing-export.ts', 'close'] },
    },
    {
      title: 'An error thrown three modules down',
      file: 'thrown-error.ts',
      modules: ['lib/review.ts', 'lib/policy.ts', 'lib/limits.ts'],
      expect: { status: 'error', name: 'RangeError', at: ['lib/limits.ts', 'RangeError'] },
    },
    {
      title: 'More memory than the limit of 64 MiB',
      file: 'memory-bomb.ts',
      expect: { status: 'memory' },
    },
    {
      title: 'A loop without end and a budget of 200 ms',
      file: 'endless-loop.ts',
      budgetMs: 200,
      expect: { status: 'terminated', name: 'Terminated' },
    },
  ];
}

/** Sources that the model wrote, by path. */
function read(folder, paths) {
  return Object.fromEntries(paths.map((path) => [path, readFileSync(new URL(`programs/${folder}${path}`, import.meta.url), 'utf8')]));
}

/** The sources that are modules beside the entry, under the keys by which imports find them. */
function withKeys(sources, paths) {
  return Object.fromEntries(paths.map((path) => [`./${path}`, sources[path]]));
}

function conclude(wrong) {
  if (wrong.length > 0) failures += 1;
  show.verdict(wrong);
}
