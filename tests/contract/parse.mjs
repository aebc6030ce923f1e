// Cases of the contract tables.
//
// In: a folder of tables. Out: its cases, checked for form, not yet decoded (tags stay tags). README.md has the format;
// a violation throws with file and line.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const LANGUAGES = { ts: 'typescript', js: 'javascript' };
const JSON_FENCES = ['options', 'handle', 'result', 'misuse'];

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
    if (line.startsWith('## ')) {
      const heading = line.slice(3).trim();
      if (found.some((other) => other.heading === heading)) fail(file, at, `'${heading}' is there twice`);
      found.push({ file, heading, line: at + 1, prose: '', skip: {}, entry: null, modules: {}, options: {} });
    } else if (line.startsWith('```')) {
      const end = lines.indexOf('```', at + 1);
      if (found.length === 0 || end < 0) fail(file, at, 'a fence outside of a case or without an end');
      addFence(found.at(-1), line.slice(3).trim(), lines.slice(at + 1, end).join('\n'), (why) => fail(file, at, why));
      at = end;
    } else if (found.length > 0) {
      addProse(found.at(-1), line, (why) => fail(file, at, why));
    }
  }
  found.forEach(checkWhole);
  return found;
}

function addFence(found, info, text, malformed) {
  const [kind, name, ...rest] = info.split(' ');
  if (rest.length > 0) malformed(`unknown fence '${info}'`);
  if (kind in LANGUAGES && name === undefined) {
    if (found.entry) malformed('a second entry');
    found.entry = { language: LANGUAGES[kind], source: unescape(text) };
  } else if (kind in LANGUAGES) {
    if (Object.hasOwn(found.modules, name)) malformed(`a second module '${name}'`);
    found.modules[name] = unescape(text);
  } else if (kind === 'json' && JSON_FENCES.includes(name)) {
    if (name === 'options' ? Object.keys(found.options).length > 0 : name in found) malformed(`a second ${name}`);
    found[name] = parseJson(text, malformed);
  } else {
    malformed(`unknown fence '${info}'`);
  }
}

function addProse(found, line, malformed) {
  const skip = /^skip: (node|python|rust) \((.+)\)$/.exec(line);
  if (skip) found.skip[skip[1]] = skip[2];
  else if (line.startsWith('skip:')) malformed('a skip line is `skip: language (reason)`');
  else found.prose = `${found.prose}\n${line}`.trim();
}

function checkWhole({ file, line, heading, entry, prose, result, misuse, handle = [] }) {
  const malformed = (why) => fail(file, line - 1, `'${heading}' ${why}`);
  if (!entry) malformed('has no entry');
  if (!prose) malformed('gives no rule');
  if ((result === undefined) === (misuse === undefined)) malformed('has to have either a result or a misuse');
  if (!Array.isArray(handle)) malformed('has handle steps that are no list');
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
