// Random cases through Rust, Node and Python, whose results must be the same. README.md explains the method.
//
// In: `--seed`, `--cases`, `--only`, `--faces`. Out: counts, and for each difference everything that is needed to
// reproduce it. Exits with 1 if there is one.

import { spawn, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

import { randomCase } from './cases.mjs';
import { ofPython, pythonic } from './pythonic.mjs';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const PER_ROUND = 2000;
const SHOWN = 5;
const SHRINKING_ROUNDS = 40;
// The time limit of one face for one round.
const CEILING_MS = 300_000;

const venv = `${ROOT}.venv/bin/python`;
const REPLAYERS = {
  rust: () => [rustReplayer()],
  node: () => [process.execPath, `${ROOT}tests/three-way/replay.mjs`],
  python: () => [process.env.PYTHON ?? (existsSync(venv) ? venv : 'python3'), `${ROOT}tests/three-way/replay.py`],
};

const { values: flags } = parseArgs({
  options: {
    seed: { type: 'string', default: String(Date.now() % 2 ** 32) },
    cases: { type: 'string', default: '2000' },
    only: { type: 'string' },
    faces: { type: 'string', default: 'rust,node,python' },
  },
});
const seed = Number(flags.seed);
const faces = flags.faces.split(',');
const programs = Object.fromEntries(faces.map((face) => [face, REPLAYERS[face]()]));

console.log(`three-way: seed ${seed}, faces ${faces.join(', ')}`);
const [from, to] = flags.only === undefined ? [0, Number(flags.cases)] : [Number(flags.only), Number(flags.only) + 1];
const began = performance.now();
const counts = { cases: 0, 'in Python': 0, differences: 0 };
for (let at = from; at < to; at += PER_ROUND) {
  const cases = Array.from({ length: Math.min(PER_ROUND, to - at) }, (_, i) => randomCase(seed, at + i));
  counts.cases += cases.length;
  counts['in Python'] += faces.includes('python') ? cases.filter(({ python }) => python).length : 0;
  for (const difference of await differences(cases)) {
    counts.differences += 1;
    if (counts.differences <= SHOWN) await show(difference);
  }
}
const seconds = ((performance.now() - began) / 1000).toFixed(1);
console.log(`three-way: ${Object.entries(counts).map(([what, count]) => `${count} ${what}`).join(', ')}; ${seconds} s`);
if (flags.only !== undefined && counts.differences === 0) await showOutcome();
process.exit(counts.differences === 0 ? 0 : 1);

/** Builds the replayer of the core, and returns its path. */
function rustReplayer() {
  // All packages and the profile of the tests, so that nothing is compiled again.
  const flags = ['build', '--quiet', '--locked', '--profile', 'ci', '--workspace', '--example', 'three_way', '--message-format=json-render-diagnostics'];
  const { status, stdout } = spawnSync('cargo', flags, { cwd: ROOT, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024, stdio: ['ignore', 'pipe', 'inherit'] });
  if (status !== 0) process.exit(1);
  const messages = stdout.split('\n').filter(Boolean).map((line) => JSON.parse(line));
  return messages.find(({ target, executable }) => target?.name === 'three_way' && executable).executable;
}

/** The cases whose results are not the same everywhere, with their results. */
async function differences(cases) {
  const outcomes = await Promise.all(faces.map((face) => replay(face, face === 'python' ? cases.filter(({ python }) => python) : cases)));
  return cases.flatMap((one) => {
    const lines = Object.fromEntries(faces.map((face, i) => [face, outcomes[i].get(one.number)]).filter(([face]) => face !== 'python' || one.python));
    const why = disagreement(lines);
    return why === undefined ? [] : [{ one, lines, why }];
  });
}

/** The results of each case in that face, by the case's number. */
function replay(face, cases) {
  return new Promise((resolve, reject) => {
    const [program, ...args] = programs[face];
    const child = spawn(program, args, { cwd: ROOT, stdio: ['pipe', 'pipe', 'inherit'], timeout: CEILING_MS, env: { ...process.env, RUST_BACKTRACE: '0' } });
    const chunks = [];
    child.on('error', reject);
    child.stdin.on('error', () => {});
    child.stdout.on('data', (chunk) => chunks.push(chunk));
    child.on('close', (code, signal) => {
      if (code !== 0) console.log(`three-way: ${face} ended with ${code ?? signal}`);
      const lines = Buffer.concat(chunks).toString().split('\n').filter(Boolean);
      resolve(new Map(lines.map((line) => [Number(/^\{"number":(\d+)/.exec(line)?.[1]), line])));
    });
    child.stdin.end(cases.map((one) => `${JSON.stringify(one)}\n`).join(''));
  });
}

/** The faces that differ, if any do. */
function disagreement(lines) {
  const [first, ...others] = Object.entries(lines);
  for (const [face, line] of others) {
    const isSame = face === 'python' ? line !== undefined && inPython(first[1], pythonic) === inPython(line, ofPython) : line === first[1];
    if (!isSame) return `${face} differs from ${first[0]}`;
  }
  return first[1] === undefined || first[1].includes('"harness":') ? `${first[0]} has no outcome` : undefined;
}

/** A line with all its values as Python has them. */
function inPython(line = '{}', values) {
  const { result, reports = [], logs = [], ...rest } = JSON.parse(line);
  const said = logs.map(([level, args]) => `${level} ${values(args)}`);
  return `${JSON.stringify(rest)} result: ${result === undefined ? 'none' : values(result)} reports: ${reports.map((report) => values(report))} logs: ${said}`;
}

async function show({ one, lines, why }) {
  console.log(`\n${'='.repeat(80)}\nseed ${seed}, case ${one.number} (${one.kind}): ${why}`);
  console.log(`again: node tests/three-way/run.mjs --seed ${seed} --only ${one.number} --faces ${faces.join(',')}`);
  const small = await shrunk({ one, lines, why });
  console.log(`\n${JSON.stringify(small.one.options)}`);
  for (const [key, source] of Object.entries(small.one.modules)) console.log(`--- ${key}\n${source}`);
  console.log(`--- the entry\n${small.one.source}\n---`);
  for (const [face, line, other] of sides(small)) console.log(`${face.padEnd(7)}${aroundDifference(line, other)}`);
}

/** The faces with their results and the other result; of Python, both in Python's form. */
function sides({ lines, why }) {
  const [first, ...others] = Object.entries(lines);
  const [face, line] = others.find(([name]) => why.startsWith(`${name} `)) ?? [];
  if (face === undefined) return [[...first, '']];
  const [left, right] = face === 'python' && line !== undefined ? [inPython(first[1], pythonic), inPython(line, ofPython)] : [first[1], line];
  return [[first[0], left, right], [face, right, left]];
}

/** A line from shortly before its first difference from the other. */
function aroundDifference(line = '(no line)', other = '') {
  let at = 0;
  while (at < line.length && line[at] === other[at]) at += 1;
  const start = line.length < 1500 ? 0 : Math.max(0, at - 200);
  return `${start > 0 ? '…' : ''}${line.slice(start, start + 1500)}`;
}

/** The same difference with fewer lines, as far as leaving out one line at a time reduces it. */
async function shrunk(difference) {
  let found = difference;
  for (let round = 0; round < SHRINKING_ROUNDS; round += 1) {
    const smaller = (await differences(simpler(found.one))).find((other) => other.why === found.why && manner(other) === manner(found));
    if (smaller === undefined) break;
    found = smaller;
  }
  return found;
}

/** The kind of the first face's result; another kind would be another difference. */
function manner({ lines }) {
  return /"(status|misuse|harness)":"?\w*/.exec(lines[faces[0]] ?? '')?.[0];
}

/** Smaller versions of the case, in every simple way. */
function simpler(one) {
  const lines = one.source.split('\n');
  const variants = [];
  for (const size of [Math.ceil(lines.length / 2), Math.ceil(lines.length / 4), 2, 1]) {
    for (let at = 0; at < lines.length && lines.length > 1; at += size) {
      variants.push({ ...one, source: without(lines, at, size).join('\n') });
    }
  }
  for (const group of ['globals', 'imports']) {
    for (const key of Object.keys(one.options[group] ?? {})) {
      const { [key]: _, ...rest } = one.options[group];
      variants.push({ ...one, options: { ...one.options, [group]: rest } });
    }
  }
  return variants.map((variant, number) => ({ ...variant, number }));
}

function without(lines, at, size) {
  return lines.filter((_, index) => index < at || index >= at + size);
}

/** Prints a single case without differences, and its result. */
async function showOutcome() {
  const one = randomCase(seed, from);
  console.log(`${JSON.stringify(one.options)}\n${JSON.stringify(one.modules)}\n---\n${one.source}\n---`);
  console.log((await replay(faces[0], [one])).get(one.number));
}
