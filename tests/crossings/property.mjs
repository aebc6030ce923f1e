// The property of every crossing: the arriving value equals Node's `structuredClone` of it, except for the contract's
// differences in `oracle.mjs`.
//
// In: `--cases n`, `--seed n`; `--from n` to begin with that case; `--cells` for cells of a few sessions instead of runs,
// each of which finds what the ones before declared, with new values of the host. Out: the seed. If a case fails: its value, reduced
// by leaving out statements, and a non-zero exit code.

import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';

import { Runtime, runCode } from '../isolation.mjs';

import { randomness } from '../three-way/random.mjs';
import { FUNCTION, PROMISE, describe } from './describe.mjs';
import { PRELUDE, randomGraph } from './graph.mjs';
import { expected, refusedPath } from './oracle.mjs';

const AT_ONCE = 16;
const SHOWN = 1_000;
/** A session has so many cases, then another one begins. */
const CASES_OF_SESSION = 20;
const DESCRIBE = readFileSync(new URL('describe.mjs', import.meta.url), 'utf8');

const { values: options } = parseArgs({
  options: {
    seed: { type: 'string' },
    cases: { type: 'string', default: '3000' },
    from: { type: 'string', default: '0' },
    cells: { type: 'boolean', default: false },
  },
});
const seed = Number(options.seed ?? Date.now() % 2 ** 31);
const [from, cases] = [Number(options.from), Number(options.cases)];
console.log(`crossings: seed ${seed}, cases ${from} to ${from + cases - 1}`);

const runtime = options.cells ? new Runtime() : undefined;
const resting = [];
let next = from;
let failures = 0;
await Promise.all(Array.from({ length: AT_ONCE }, worker));
console.log(failures === 0 ? `crossings: ${cases} values went through every crossing` : 'crossings: FAILED');
await runtime?.close();
process.exitCode = failures === 0 ? 0 : 1;

async function worker() {
  while (next < from + cases && failures === 0) {
    const number = next;
    next += 1;
    const graph = randomGraph(randomness(seed, number));
    const wrong = await check(graph);
    if (wrong.length === 0) continue;
    failures += 1;
    if (failures > 1) return;
    const small = await smaller(graph);
    console.log(`case ${number} (--seed ${seed} --from ${number} --cases 1):\n\n${source(small)}\n`);
    for (const text of await check(small)) console.log(text.length > SHOWN ? `${text.slice(0, SHOWN)}…\n` : text);
  }
}

/** Greedily leaves out statements as long as the graph fails. */
async function smaller(graph) {
  let best = graph;
  const without = (list, at) => list.toSpliced(at, 1);
  for (const part of ['fills', 'shells', 'fills']) {
    for (let at = best[part].length - 1; at >= 0; at -= 1) {
      const candidate = { ...best, [part]: without(best[part], at) };
      if (builds(candidate) && (await check(candidate)).length > 0) best = candidate;
    }
  }
  return best;
}

function builds(graph) {
  try {
    build(graph);
    return true;
  } catch {
    return false;
  }
}

function source({ shells, fills, root }) {
  return [...shells, ...fills, `return ${root};`].join('\n');
}

/** The value in Node; `mark` replaces the marked objects. */
function build(graph, mark = {}) {
  const same = (value) => value;
  const marks = { no: same, fn: same, pr: same, args: (...list) => toArguments(...list), extra: plainly, ...mark };
  return new Function(...Object.keys(marks), `'use strict';${PRELUDE}\n${source(graph)}`)(...Object.values(marks));
}

function plainly(o, key, value) {
  Object.defineProperty(o, key, { value, writable: true, enumerable: true, configurable: true });
}

function toArguments() {
  return arguments;
}

/** The expected result of every crossing, for values with functions and promises or without. */
function oracle(graph, live) {
  const refused = new Set();
  const no = (value) => (refused.add(value), value);
  // The contract's `arguments` are a plain object; `structuredClone` refuses them.
  const args = (...list) => Object.defineProperty({ ...list }, 'length', { value: list.length, writable: true, configurable: true });
  // Properties of an array beside its elements do not cross, so they may have any value.
  const extra = () => {};
  const mark = live ? { no, fn: () => FUNCTION, pr: () => PROMISE, args, extra } : { no, fn: no, pr: no, args, extra };
  const original = build(graph, mark);
  const path = refusedPath(original, refused);
  return path === undefined ? { text: expected(original, structuredClone(original)) } : { path };
}

/** The failures of a value's crossings, as texts. */
async function check(graph) {
  const live = oracle(graph, true);
  const final = oracle(graph, false);
  const found = new Map();
  const say = (name, text) => void found.set(name, text);
  const make = () => build(graph);
  const where = ['globals', 'imports', 'args'][graph.shells.length % 3];
  const given = {
    say,
    show: (name, value) => say(name, describe(value)),
    answer: make,
    later: async () => make(),
    nested: () => ({ promise: Promise.resolve().then(make) }),
    fail: () => {
      throw make();
    },
    failLater: async () => {
      throw make();
    },
    echo: (value) => value,
    call: async (f) => describe(await f(make())),
  };
  const inputs = {
    globals: () => ({ globals: { v: make() } }),
    imports: () => ({ imports: { host: { v: make() } } }),
    args: () => ({ args: [make()] }),
  };
  const begin = async (where, input) => {
    const capabilities = { modules: { './describe.js': DESCRIBE }, ...input, globals: { ...given, ...input.globals } };
    const report = (value) => say('report', describe(value));
    return (options.cells ? cell : single)(program(graph, where), capabilities, report);
  };
  let settled;
  try {
    settled = await begin(where, inputs[where]());
  } catch (error) {
    const refusal = live.path !== undefined && refusedAs(live.path, `${error.name}: ${error.message}`);
    if (!refusal) return [`${where}: threw ${error.stack}`];
    // The same without an input, to see the other crossings.
    settled = await begin('none', {});
    say('input', `!${error.name}: ${error.message}`);
  }
  const { status, result, error, reports, logs, uncloned } = settled;
  // A cell's value may stay inside.
  const failed = error ?? (uncloned && { name: 'SerializationError', message: uncloned });
  say('result', failed === undefined ? describe(result) : `!${failed.name}: ${failed.message}`);
  if (reports.length > 0) say('reports', describe(reports[0]));
  if (logs.length > 0 && live.path === undefined && final.path === undefined) say('log', describe(logs[0].args[0]));
  return judge(found, live, final, { status, logs: logs.filter(({ level }) => level === 'error') });
}

/** The program as a run. */
function single(source, { args = [], ...capabilities }, report) {
  return runCode(source, { language: 'javascript', ...capabilities, execute: { args }, report });
}

/** The program as a cell of some session, and a call of the function that is its default export. */
async function cell(source, { args = [], ...capabilities }, report) {
  const place = resting.pop() ?? { session: runtime.session({ language: 'javascript' }), left: CASES_OF_SESSION };
  const { session } = place;
  try {
    session.update(capabilities);
    const { status, error } = await session.run(source.replace('export default async', 'export const main = async'), { report });
    if (status !== 'success') throw new Error(`${status}: ${error.stack ?? error.message}`);
    return await session.call({ name: 'main', report }, ...args);
  } finally {
    place.left -= 1;
    if (place.left > 0) resting.push(place);
    else await session.close();
  }
}

function judge(found, live, final, rest) {
  const wrong = [];
  const all = ['input', 'argument', 'echo', 'clone', 'report', 'answer', 'later', 'nested', 'thrown', 'rejected', 'called', 'returned', 'result'];
  const finals = ['clone', 'report', 'result', 'reports', 'log'];
  for (const name of [...all, ...[...found.keys()].filter((name) => !all.includes(name))]) {
    const { text, path } = finals.includes(name) ? final : live;
    const got = found.get(name) ?? '(nothing)';
    // Refused arguments prevent the call.
    if (name === 'called' && path !== undefined && got === '(nothing)') continue;
    if (path === undefined ? got === text : refusedAs(path, got.replace(/^!/, ''))) continue;
    wrong.push(`${name}: expected ${path === undefined ? `\n${text}` : `a refusal at ${path}`}\ngot\n${got}\n`);
  }
  if (rest.logs.length > 0) wrong.push(`logs of level error: ${JSON.stringify(rest.logs)}`);
  return wrong;
}

/** Whether an error names that path; keys that are no identifiers are quoted in more than one way. */
function refusedAs(path, got) {
  if (!/^SerializationError: .*cannot be cloned(; (await it first|call it, and return its value|return its (fields|values): .*))?$/s.test(got)) return false;
  return /[^\w.$[\]()]/.test(path) || path.split(/[.[]/).length > 20 || got.includes(`${path}: `);
}

function program(graph, where) {
  const input = { globals: 'v', imports: 'imported', args: 'given[0]', none: undefined }[where];
  return `import { describe } from './describe.js';
${where === 'imports' ? "import { v as imported } from 'host';" : ''}
${PRELUDE}
const no = (x) => x, fn = no, pr = no, extra = plainly;
function args() { return arguments; }
const make = () => {
${source(graph)}
};
const attempt = (name, f) => {
  try {
    const text = f();
    if (text !== undefined) say(name, text);
  } catch (e) {
    say(name, '!' + e.name + ': ' + e.message);
  }
};
const attemptLater = async (name, f) => {
  try {
    say(name, await f());
  } catch (e) {
    say(name, '!' + e.name + ': ' + e.message);
  }
};
export default async (...given) => {
  ${input === undefined ? '' : `attempt('input', () => describe(${input}));`}
  attempt('argument', () => show('argument', make()));
  attempt('echo', () => describe(echo(make())));
  attempt('clone', () => describe(structuredClone(make())));
  attempt('report', () => report(make()));
  console.log(make());
  attempt('answer', () => describe(answer()));
  await attemptLater('later', async () => describe(await later()));
  await attemptLater('nested', async () => describe(await nested().promise));
  const thrown = (e) => (typeof e === 'object' && e?.name === 'SerializationError' ? '!' + e.name + ': ' + e.message : describe(e));
  attempt('thrown', () => { try { fail(); } catch (e) { return thrown(e); } });
  await attemptLater('rejected', async () => { try { await failLater(); } catch (e) { return thrown(e); } });
  await attemptLater('returned', () => call((x) => { attempt('called', () => describe(x)); return make(); }));
  return make();
};
`;
}
