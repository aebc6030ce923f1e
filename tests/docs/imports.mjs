// The imports of isolane in the examples.
//
// In: blocks of the host in JavaScript or Python; the exports of the packages. Out: the imports that a block takes over
// from earlier blocks of its page, and the names of isolane that a block uses and nobody imports. A block of JavaScript
// may rely on the imports of earlier blocks; one of the README, and one of Python, stands alone.

import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

import { ROOT, blocks } from './markdown.mjs';

const BIN = fileURLToPath(new URL('.venv/bin/', ROOT));

/** TypeScript's errors for a name that nothing declares. */
const UNDECLARED = [2304, 2552, 18004];

/** Whether a block is a program of the host in that language: `js` or `py`. */
export const isHost = (language) => ({ tag }) => tag.startsWith(`${language} `) && /^\S+ (run|bundled|integrated)$/.test(tag);

/** The imports of isolane that a block in JavaScript takes over from earlier blocks of its page, on one line. */
export function takenImports({ page, line, text }) {
  if (page === 'README.md') return '';
  const taken = new Map();
  for (const block of blocks(page).filter(isHost('js')).filter((block) => block.line < line)) {
    for (const { name, from } of imported(block.text)) taken.set(name, from);
  }
  for (const { name } of imported(text)) taken.delete(name);
  return [...taken].map(([name, from]) => `import { ${name} } from '${from}'; `).join('');
}

/** The names of isolane that these blocks of JavaScript use, and neither declare nor import: `page:line: name`. */
export async function lackingImports(found) {
  const { default: ts } = await import('typescript-5');
  const parts = Object.keys(JSON.parse(readFileSync(new URL('package.json', ROOT), 'utf8')).exports).filter((path) => !path.endsWith('.json'));
  const names = new Set((await Promise.all(parts.map((part) => import(`isolane${part.slice(1)}`)))).flatMap(Object.keys));
  const files = new Map(found.map((block) => [`/${block.page}:${block.line}.mjs`, takenImports(block) + block.text]));
  const options = { allowJs: true, checkJs: true, noEmit: true, noResolve: true, target: ts.ScriptTarget.ESNext, module: ts.ModuleKind.ESNext, types: ['node'] };
  const host = ts.createCompilerHost(options);
  const { getSourceFile } = host;
  host.getCurrentDirectory = () => fileURLToPath(ROOT);
  host.getSourceFile = (file, ...rest) =>
    files.has(file) ? ts.createSourceFile(file, files.get(file), ...rest) : getSourceFile.call(host, file, ...rest);
  const program = ts.createProgram([...files.keys()], options, host);
  return [...files.keys()].flatMap((file) => {
    const { text } = program.getSourceFile(file);
    const undeclared = program.getSemanticDiagnostics(program.getSourceFile(file)).filter(({ code }) => UNDECLARED.includes(code));
    const used = new Set(undeclared.map(({ start, length }) => text.slice(start, start + length)));
    return [...used].filter((name) => names.has(name)).map((name) => `${file.slice(1, -'.mjs'.length)}: ${name}`);
  });
}

/** The names of isolane that these blocks of Python use, and neither declare nor import: `page:line: name`. */
export function lackingPythonImports(found) {
  const program = `import json, isolane, isolane.environment, isolane.executors, isolane.kit, isolane.notebook as notebook
parts = [isolane, isolane.environment, isolane.executors, isolane.kit, notebook]
print(json.dumps(["isolane", *(name for part in parts for name in part.__all__)]))`;
  const names = new Set(JSON.parse(execFileSync(`${BIN}python`, ['-c', program], { encoding: 'utf8' })));
  return found.flatMap(({ page, line, text }) => {
    const flags = ['check', '--isolated', '--no-cache', '--select', 'F821', '--output-format', 'json', '-'];
    const { stdout, stderr } = spawnSync(`${BIN}ruff`, flags, { input: text, encoding: 'utf8' });
    if (stderr !== '') throw new Error(stderr);
    const used = new Set(JSON.parse(stdout).map(({ message }) => /^Undefined name `(.+)`$/.exec(message)?.[1]));
    return [...used].filter((name) => names.has(name)).map((name) => `${page}:${line}: ${name}`);
  });
}

/** The names that a block imports from isolane, and from which part of the package. */
function imported(text) {
  return [...text.matchAll(/^import \{([^}]*)\} from '(isolane[^']*)';$/gm)].flatMap(([, names, from]) =>
    names.split(',').map((name) => name.trim()).filter(Boolean).map((name) => ({ name, from })),
  );
}
