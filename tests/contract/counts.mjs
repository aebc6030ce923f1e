// Checks that every runner saw every case of the contract table.
//
// In: a file with a line per runner, `python: 700 ran, 27 skipped`. Each runner adds its line when the environment
// variable ISOLANE_CONTRACT_COUNTS names the file (as an absolute path). Out: the three counts, and a failure when a
// runner is missing or its cases are not as many as the tables have.
//
//     node tests/contract/counts.mjs counts.txt
//
// Runs under isolation by process are runners of their own: `node in processes: 700 ran, 27 skipped`. The table of
// sessions is counted beside: `sessions of node: 600 ran, 9 skipped`.

import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

import { cases } from './parse.mjs';
import { cases as casesOfSessions } from './sessions/parse.mjs';

const LANGUAGES = ['node', 'python', 'rust'];

const [path, isolation] = process.argv.slice(2);
if (path === undefined || (isolation !== undefined && isolation !== 'process')) {
  console.error('usage: node tests/contract/counts.mjs FILE [process]');
  process.exit(2);
}
const folder = (name) => fileURLToPath(new URL(name, import.meta.url));
const place = isolation === 'process' ? ' in processes' : '';
const runners = (table) => LANGUAGES.map((language) => `${table}${language}${place}`);
const tables = [
  { name: 'contract', runners: runners(''), total: cases(folder('.')).length },
  { name: 'sessions', runners: runners('sessions of '), total: casesOfSessions(folder('sessions')).length },
];
const text = readFileSync(path, 'utf8');
const wrong = tables.flatMap(({ name, runners, total }) => {
  console.log(`${name}: ${total} cases`);
  return problems(text, runners, total);
});
for (const why of wrong) console.error(`contract: ${why}`);
process.exitCode = wrong.length > 0 ? 1 : 0;

/** Prints the counts of each runner, and returns its problems. */
function problems(text, runners, total) {
  const lines = text.split('\n').filter((line) => line !== '');
  return runners.flatMap((runner) => {
    const said = lines.filter((line) => line.startsWith(`${runner}: `));
    if (said.length !== 1) return [`${said.length} counts of ${runner}, not one`];
    const count = /: (\d+) ran, (\d+) skipped$/.exec(said[0]);
    if (!count) return [`'${said[0]}' is no count`];
    console.log(said[0]);
    const seen = Number(count[1]) + Number(count[2]);
    return seen === total ? [] : [`${runner} saw ${seen} cases of ${total}`];
  });
}
