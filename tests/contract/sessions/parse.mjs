// Cases of the contract table of sessions.
//
// In: a folder of tables. Out: its cases, checked for form, not yet decoded (tags stay tags): the options of the session
// and a list of acts in their order. README.md has the format; a violation throws with file and line.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const LANGUAGES = { ts: 'typescript', js: 'javascript' };
const STEPS = ['update', 'names', 'fork', 'reset', 'close', 'closeRuntime', 'asked', 'answer', 'callKept', 'terminate',
  'terminateLate', 'reports',
  'expectReports', 'expectRunning', 'turns', 'stats'];

/** All cases below `folder`, in the order of file names and of headings. */
export function cases(folder) {
  const files = readdirSync(folder).filter((name) => name.endsWith('.md') && name !== 'README.md').sort();
  return files.flatMap((file) => casesOf(file, readFileSync(join(folder, file), 'utf8')));
}

/** The cases of one table, given as text. */
export function casesOf(file, text) {
  const found = [];
  const lines = text.split('\n');
  for (let at = 0; at < lines.length; at += 1) {
    const line = lines[at];
    const malformed = (why) => fail(file, at, why);
    if (line.startsWith('## ')) {
      const heading = line.slice(3).trim();
      if (found.some((other) => other.heading === heading)) malformed(`'${heading}' is there twice`);
      found.push({ file, heading, line: at + 1, prose: '', skip: {}, options: null, runtime: null, modules: {}, misuse: null, acts: [] });
    } else if (line.startsWith('```')) {
      const end = lines.indexOf('```', at + 1);
      if (found.length === 0 || end < 0) malformed('a fence outside of a case or without an end');
      addFence(found.at(-1), line.slice(3).trim(), lines.slice(at + 1, end).join('\n'), malformed);
      at = end;
    } else if (found.length > 0) {
      addProse(found.at(-1), line, malformed);
    }
  }
  found.forEach(checkWhole);
  return found;
}

function addFence(one, info, text, malformed) {
  const [kind, name, ...rest] = info.split(' ');
  const last = one.acts.at(-1);
  const json = () => parseJson(text, malformed);
  if (kind in LANGUAGES && name === undefined) {
    one.acts.push({ act: 'cell', language: LANGUAGES[kind], source: unescape(text), options: {}, result: null, misuse: null });
  } else if (kind in LANGUAGES && rest.length === 0) {
    if (one.acts.length > 0 || Object.hasOwn(one.modules, name)) malformed(`the module '${name}' is late, or there twice`);
    one.modules[name] = unescape(text);
  } else if (kind !== 'json' || rest.length > (name === 'result' ? 1 : 0)) {
    malformed(`unknown fence '${info}'`);
  } else if (name === 'options' || name === 'runtime') {
    if (one.acts.length > 0 || one[name]) malformed(`the ${name} are late, or there twice`);
    one[name] = json();
  } else if (name === 'call') {
    const { name: called, args = [], ...options } = json();
    one.acts.push({ act: 'call', name: called, args, options, result: null, misuse: null });
  } else if (name === 'steps') {
    one.acts.push({ act: 'steps', steps: checkSteps(json(), malformed) });
  } else if (name === 'result' && rest.length === 1) {
    one.acts.push({ act: 'result', of: rest[0], result: json() });
  } else if (name === 'misuse' && last === undefined) {
    one.misuse = json();
  } else if (['cell', 'result', 'misuse'].includes(name)) {
    addToCell(last, name, json(), malformed);
  } else {
    malformed(`unknown fence '${info}'`);
  }
}

/** Options, result or misuse of the cell right before. */
function addToCell(cell, name, json, malformed) {
  if (cell?.act !== 'cell' && cell?.act !== 'call') malformed(`a ${name} without a cell right before`);
  if (name === 'cell') {
    if (cell.act === 'call' || Object.keys(cell.options).length > 0 || cell.result) malformed('the options of a cell come once, right after it');
    cell.options = json;
  } else {
    if (cell.result || cell.misuse) malformed('a second result');
    cell[name] = json;
  }
}

function checkSteps(steps, malformed) {
  if (!Array.isArray(steps)) malformed('steps are a list');
  for (const step of steps) {
    if (!STEPS.some((name) => Object.hasOwn(step, name))) malformed(`unknown step ${JSON.stringify(step)}`);
  }
  return steps;
}

function addProse(one, line, malformed) {
  const skip = /^skip: (node|python|rust) \((.+)\)$/.exec(line);
  if (skip) one.skip[skip[1]] = skip[2];
  else if (line.startsWith('skip:')) malformed('a skip line is `skip: language (reason)`');
  else one.prose = `${one.prose}\n${line}`.trim();
}

function checkWhole({ file, line, heading, prose, misuse, acts }) {
  const malformed = (why) => fail(file, line - 1, `'${heading}' ${why}`);
  if (!prose) malformed('gives no rule');
  if (acts.length === 0 && !misuse) malformed('has neither an act nor a misuse');
  const named = acts.map((act) => act.options?.as).filter((name) => name !== undefined);
  const awaited = acts.filter(({ act }) => act === 'result').map(({ of }) => of);
  if (new Set(named).size !== named.length) malformed('has two cells of one name');
  if (named.toSorted().join() !== awaited.toSorted().join()) malformed('has a named cell without exactly one result, or the other way round');
  if (acts.some(({ options, result }) => options?.as !== undefined && result)) malformed('has a named cell that is awaited at once');
}

function parseJson(text, malformed) {
  try {
    return JSON.parse(text);
  } catch (error) {
    return malformed(error.message);
  }
}

/** `⟦uD800⟧` stands for that code unit or character. */
function unescape(source) {
  return source.replace(/⟦u([0-9A-Fa-f]+)⟧/g, (_, hex) => String.fromCodePoint(Number.parseInt(hex, 16)));
}

function fail(file, at, why) {
  throw new Error(`${file}:${at + 1}: ${why}`);
}
