// Costs of sessions beside those of other sandboxes, each of which keeps a context of its own, from Node.
//
// In: `--quick` for few samples, and the packages of `peers/`. Out: a table in Markdown, which says what is left out:
// isolated-vm has to be compiled. Each figure of a peer has that of isolane beside it, measured right before. A ratio
// above 1 is in isolane's favour. None of the peers can undo a cell, and the first two run on the caller's thread.

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

import { Session } from 'isolane';
import typescript from 'typescript-5';

import { HEAD, row, time } from './measure.mjs';

const PACKAGES = createRequire(new URL('peers/package.json', import.meta.url));

/** 50 lines in a function, because the peers refuse to declare a name twice. */
const FIFTY = typescript.transpile(readFileSync(new URL('fifty.ts', import.meta.url), 'utf8'), {
  target: typescript.ScriptTarget.ESNext,
  module: typescript.ModuleKind.ESNext,
}).replace('export default', 'return');
const fifty = (edition) => `(() => {${FIFTY.replace('edition = 0', `edition = ${edition}`)}})().edition`;

/** A sandbox: `open` makes a session of it, in which `run` runs a cell and gives its value. */
const isolane = {
  open() {
    const session = new Session({ language: 'javascript' });
    const run = async (source) => {
      const { status, error, result } = await session.run(source);
      if (status !== 'success') throw new Error(`${status}: ${error.message}`);
      return result;
    };
    return { run, close: () => session.close() };
  },
};

const PEERS = {
  async 'quickjs-emscripten'(name) {
    const engine = await PACKAGES(name).getQuickJS();
    return {
      open() {
        const context = engine.newContext();
        const run = (source) => context.unwrapResult(context.evalCode(source)).consume(context.dump);
        return { run, close: () => context.dispose() };
      },
    };
  },
  async 'quickjs-wasi'(name) {
    const { QuickJS } = await import(PACKAGES.resolve(name));
    const wasm = await WebAssembly.compile(readFileSync(PACKAGES.resolve(`${name}/quickjs.wasm`)));
    return {
      async open() {
        const engine = await QuickJS.create({ wasm });
        const run = (source) => engine.evalCode(source).consume((value) => engine.dump(value));
        return { run, close: () => engine.dispose() };
      },
    };
  },
  async 'isolated-vm'(name) {
    const { Isolate } = PACKAGES(name);
    return {
      async open() {
        const isolate = new Isolate({ memoryLimit: 64 });
        const context = await isolate.createContext();
        return { run: (source) => context.eval(source), close: () => isolate.dispose() };
      },
    };
  },
};

let editions = 0;
const rows = [];
const missing = [];
for (const [name, load] of Object.entries(PEERS)) {
  const peer = await load(name).catch((error) => {
    if (error.code !== 'MODULE_NOT_FOUND') throw error;
    missing.push(name);
  });
  if (peer) rows.push(...await beside(name, peer));
}
if (rows.length === 0) throw new Error(`none of ${missing.join(', ')} is installed`);
console.log(`### Sessions beside other sandboxes, from Node\n\n${HEAD}\n${rows.join('\n')}\n`);
if (missing.length > 0) console.log(`Left out, because it is not installed: ${missing.join(', ')}.\n`);

async function beside(name, peer) {
  const rows = [];
  for (const [what, measure] of [
    ['a session with its first cell, `1 + 1`, and its end', first],
    ['a later cell, `x + 1`', (sandbox) => later(sandbox, () => ['x + 1', 2])],
    ['a later cell, never seen', (sandbox) => later(sandbox, (edition) => [`x + ${edition}`, 1 + edition])],
    ['50 lines, never seen', (sandbox) => later(sandbox, (edition) => [fifty(edition), edition])],
  ]) {
    const ours = await measure(isolane);
    rows.push(row(`${name}: ${what}`, await measure(peer), 'isolane', ours));
  }
  return rows;
}

async function first({ open }) {
  return time(async () => {
    const session = await open();
    check(await session.run('1 + 1'), 2);
    await session.close();
  });
}

async function later({ open }, cell) {
  const session = await open();
  await session.run('let x = 1');
  const cost = await time(async (_, [source, value]) => check(await session.run(source), value), () => {
    editions += 1;
    return cell(editions);
  });
  await session.close();
  return cost;
}

function check(value, expected) {
  if (value !== expected) throw new Error(`${value} instead of ${expected}`);
}
