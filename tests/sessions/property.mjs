// Random cells with random ends, beside a session in which only the cells ran that count.
//
// In: `--cells` (2,000), `--seed`; ISOLANE_ISOLATION. Out: the number of cells of each end; a non-zero exit code and the
// cells of the first session whose state differs. The cells declare, change, throw, loop, fill the memory, wait for the
// host, suspend generators and change prototypes. Those that are rolled back must leave nothing: a second session gets
// the other cells alone, and every result, every name and every value must be the same.

import { isDeepStrictEqual, parseArgs } from 'node:util';

import { Runtime, isolation } from '../isolation.mjs';

const { values: options } = parseArgs({
  options: { cells: { type: 'string', default: '2000' }, seed: { type: 'string', default: '1' } },
});
const CELLS_OF_A_SESSION = 40;
const MEMORY = 6 * 1024 * 1024;
const NAMES = 6;
const MODULE = 'export let n = 0; export const inc = () => { n += 1; }; export const log = [];';
const LOOP_MS = 8;

/** A cell that shows every name and changes nothing. */
const DIGEST = `(() => {
  const show = (x, depth) => {
    if (typeof x === 'bigint') return x + 'n';
    if (typeof x === 'function') return 'function ' + x.name + ' ' + x.made;
    if (typeof x !== 'object' || x === null) return typeof x + ' ' + String(x);
    if (depth > 3) return '…';
    if (x instanceof Map) return ['Map', [...x].map(([k, v]) => [show(k, depth + 1), show(v, depth + 1)])];
    if (x instanceof Set) return ['Set', [...x].map((v) => show(v, depth + 1))];
    if (x instanceof Promise) return 'Promise';
    return [Object.prototype.toString.call(x), 'n' in x ? x.n : '', Object.keys(x).map((key) => [key, show(x[key], depth + 1)])];
  };
  const of = (read) => { try { return show(read(), 0); } catch (e) { return e.name + ': ' + e.message; } };
  return JSON.stringify([
    ${Array.from({ length: NAMES }, (_, index) => `of(() => v${index})`).join(', ')},
    of(() => n), of(() => log), of(() => given), of(() => globalThis.g0), of(() => globalThis.g1), of(() => globalThis.g2),
    of(() => [].tampered), of(() => Map.prototype.size0), of(() => Map.prototype.size1), Object.keys(globalThis),
  ]);
})()`;

const runtime = new Runtime();
const ends = new Map();
let done = 0;
let resets = 0;
for (let seed = Number(options.seed); done < Number(options.cells); seed += 1) {
  const difference = await play(seed);
  if (difference !== undefined) {
    console.error(`seed ${seed}: ${difference}`);
    process.exitCode = 1;
    break;
  }
}
await runtime.close();
if (resets > 2 + done / 1_000) {
  console.error(`${resets} sessions were reset`);
  process.exitCode = 1;
}
const counts = [...ends].map(([end, count]) => `${count} ${end}`).sort().join(', ');
console.log(`property of sessions${isolation === 'process' ? ' in processes' : ''}: ${done} cells (${counts})`);

/** Plays a session of random cells; the difference to its oracle, if there is one. */
async function play(seed) {
  const random = generator(seed);
  const pick = (list) => list[random() % list.length];
  let current;
  let session = open(() => current.terminate('stopped'));
  const kept = [];
  for (let index = 0; index < CELLS_OF_A_SESSION; index += 1) {
    const source = cell(random, pick);
    current = session.run(source, { filename: `cell-${index}.ts`, timeoutMs: source.includes('/* overdue */') ? LOOP_MS : 20_000 });
    const result = await current;
    done += 1;
    const end = `${result.error?.name === 'Timeout' ? 'overdue' : result.status} and ${result.session}`;
    ends.set(end, (ends.get(end) ?? 0) + 1);
    // One that was ended before its first instruction has done nothing.
    if (result.session === 'kept' && result.status !== 'terminated') kept.push({ source, index, seen: seen(result) });
    if (result.session === 'reset') {
      // A thread that gets no processor for 200 ms cannot go back. No cell counts then, and there may be few of these.
      kept.length = 0;
      resets += 1;
    }
    if (isolation === 'thread' && random() % 40 === 0) {
      const copy = await session.fork().catch(() => undefined);
      if (copy !== undefined) {
        await session.run('for (const name of Object.keys(globalThis)) delete globalThis[name]; delete Array.prototype.tampered;');
        await session.close();
        session = copy;
      }
    }
  }
  const found = [seen(await session.run(DIGEST)), await session.names()];
  await session.close();
  const oracle = open(() => undefined);
  for (const { source, index, seen: before } of kept) {
    const again = seen(await oracle.run(source, { filename: `cell-${index}.ts` }));
    if (!isDeepStrictEqual(again, before)) {
      return `cell ${index} gave ${JSON.stringify(before)}, replayed ${JSON.stringify(again)}\n${listing(kept)}`;
    }
  }
  const wanted = [seen(await oracle.run(DIGEST)), await oracle.names()];
  await oracle.close();
  if (isDeepStrictEqual(found, wanted)) return undefined;
  return `the session has ${JSON.stringify(found)}\nreplayed ${JSON.stringify(wanted)}\n${listing(kept)}`;
}

function open(stop) {
  return runtime.session({
    memoryLimitBytes: MEMORY,
    modules: { './m.ts': MODULE },
    globals: { later: async (n) => n * 2, now: (n) => n + 1, stop, given: { by: 'host' } },
  });
}

function seen({ status, session, text, error, logs }) {
  return { status, session, text, error: error && [error.name, error.message, error.line], logs: logs.map(({ args }) => args) };
}

function listing(kept) {
  return kept.map(({ source, index }) => `// cell ${index}\n${source}`).join('\n');
}

/** The source of a random cell. */
function cell(random, pick) {
  const number = () => random() % 10;
  const name = () => `v${random() % NAMES}`;
  const value = () => pick([
    () => `${number()}`,
    () => `'t${number()}'`,
    () => `[${number()}, ${number()}]`,
    () => `{ a: ${number()}, b: [${number()}] }`,
    () => `new Map([[${number()}, ${number()}]])`,
    () => `new Set([${number()}])`,
    () => `(() => { let n = ${number()}; return () => ++n; })()`,
    () => `(function* () { for (let i = ${number()}; ; i += 1) yield i; })()`,
    () => `new (class Held { #n = ${number()}; step() { return ++this.#n; } get n() { return this.#n; } })()`,
    () => `now(${number()})`,
    () => `await later(${number()})`,
    () => `later(${number()})`,
    () => `new Uint8Array(${number()}).fill(${number()})`,
    () => name(),
    () => `await ${name()}`,
    () => `${number()}n`,
  ])();
  const statement = () => pick([
    () => `let ${name()} = ${value()};`,
    () => `const ${name()} = ${value()};`,
    () => `var ${name()} = ${value()};`,
    () => `var ${name()};`,
    () => `function ${name()}() { return [${name()}, ${number()}]; }`,
    () => `class ${name()} { static made = ${number()}; n = ${number()}; }`,
    () => `enum ${name()} { A, B = ${number()} }`,
    () => `const { a: ${name()} = ${number()}, ...${name()} } = { a: ${pick(['undefined', number()])}, c: ${number()} };`,
    () => `${name()} = ${value()};`,
    () => `${name()}.push(${number()});`,
    () => `${name()}.set(${number()}, ${value()});`,
    () => `${name()}.add(${number()});`,
    () => `${name()}();`,
    () => `${name()}.next();`,
    () => `${name()}.step();`,
    () => `${name()}.a = ${value()};`,
    () => `console.count('c${number() % 3}');`,
    () => `console.log(${name()});`,
    () => `globalThis.g${number() % 3} = ${number()};`,
    () => `delete globalThis.g${number() % 3};`,
    () => `Array.prototype.tampered = ${number()};`,
    () => `delete Array.prototype.tampered;`,
    () => `Object.prototype.toJSON = undefined; Map.prototype.size${number() % 2} = ${number()};`,
    () => `import { n, inc, log } from './m'; inc(); log.push(n);`,
    () => `Promise.reject(new Error('left ${number()}'));`,
    () => `Promise.resolve(${number()}).then((n) => { globalThis.g0 = n; });`,
    () => `${name()};`,
    () => `[${name()}, ${number()}]`,
  ])();
  const end = () => pick([
    () => `throw new RangeError('${number()}');`,
    () => `stop(); for (;;);`,
    () => `stop(); await later(1); await new Promise(() => {});`,
    () => `/* overdue */ for (;;);`,
    () => `{ const all = []; for (;;) all.push(new Array(500).fill(all)); }`,
    () => `{ let s = 'x'; for (;;) s += s; }`,
    () => `let = ;`,
    () => `import { missing } from './m';`,
    () => `return ${value()};`,
  ])();
  // A name may be declared once in a cell.
  const declared = new Set();
  const lines = [];
  for (let left = 1 + (random() % 4); left > 0; left -= 1) {
    const line = statement();
    const names = /^(let|const|var|function|class|enum|import)\b/.test(line) ? declares(line) : [];
    if (names.some((one) => declared.has(one)) || new Set(names).size < names.length) continue;
    for (const one of names) declared.add(one);
    lines.push(line);
  }
  if (random() % 5 === 0) lines.splice(random() % (lines.length + 1), 0, end());
  return lines.join('\n');
}

/** The names that a statement declares. */
function declares(line) {
  if (line.startsWith('import')) return ['n', 'inc', 'log'];
  if (line.startsWith('const {')) return line.slice(0, line.indexOf('} =')).match(/\bv\d\b/g);
  return [/^\w+ (\w+)/.exec(line)[1]];
}

/** Numbers that a seed determines. */
function generator(seed) {
  let state = (seed * 2_654_435_761) >>> 0 || 1;
  return () => {
    state ^= state << 13;
    state >>>= 0;
    state ^= state >>> 17;
    state ^= state << 5;
    state >>>= 0;
    return state >>> 3;
  };
}
