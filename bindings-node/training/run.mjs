// Training: runs typical programs of agents, for a build that counts branches.
//
// In: the number of rounds. Out: nothing, or an error if a result differs from `expected.json`. Node.js produced those
// results from the same programs. Every round compiles each program again.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import process from 'node:process';

import { runCode, unwrap } from 'isolane';

const read = (name) => readFileSync(new URL(name, import.meta.url), 'utf8');
const PROGRAMS = Object.entries(JSON.parse(read('expected.json')));

for (let round = 0; round < Number(process.argv[2] ?? 1); round++) {
  for (const [filename, expected] of PROGRAMS) {
    const source = `${read(filename)}\n// round ${round}`;
    assert.deepEqual(unwrap(await runCode(source, { filename })), expected, filename);
  }
  await callHost(round);
  await crossOver(round);
  await runBriefly(round);
  await fail(round);
}

/** Host functions that answer at once, later, and many at a time; and a sandbox function that the host calls. */
async function callHost(round) {
  const source = `
    import { price, stock } from 'shop';
    let sum = ${round};
    for (let i = 0; i < 300; i++) sum += price({ sku: 'a' + i, count: i });
    for (let i = 0; i < 100; i++) sum += await stock(i);
    const all = await Promise.all(Array.from({ length: 300 }, (_, i) => stock(i)));
    report({ sum, all: all.length });
    console.log('sum', sum, all.slice(0, 3));
    export default (await each(async (n) => n + sum)) + all.reduce((a, b) => a + b, 0);`;
  const shop = { price: ({ sku, count }) => sku.length * count, stock: async (n) => n };
  const each = async (fn) => (await Promise.all([1, 2, 3].map(fn))).reduce((a, b) => a + b, 0);
  const options = { imports: { shop }, globals: { each }, report: () => undefined };
  const sum =
    round + Array.from({ length: 300 }, (_, i) => `a${i}`.length * i).reduce((a, b) => a + b, 0) + 4_950;
  assert.equal(unwrap(await runCode(source, options)), 6 + 3 * sum + 44_850);
}

/** Values of every kind, which the sandbox reads and returns. */
async function crossOver(round) {
  const rows = Array.from({ length: 400 }, (_, id) => ({
    id,
    name: `row ${id}`,
    ratio: id / 7,
    flags: [id % 2 === 0, null, undefined],
    place: { city: `c${id % 9}`, at: [id, -id] },
  }));
  const kinds = [
    new Map([['a', new Set([1, 2])]]),
    new Date(round),
    /a+/gi,
    2n ** 70n,
    new Uint8Array(300),
    new RangeError('r'),
  ];
  const source = `// ${round}
    export default (rows, kinds) => ({ rows: rows.filter((row) => row.id % 3), kinds });`;
  for (let i = 0; i < 4; i++) {
    const back = unwrap(
      await runCode(source, { language: 'javascript', execute: { fn: 'default', args: [rows, kinds] } }),
    );
    assert.deepEqual(
      back.rows,
      rows.filter(({ id }) => id % 3),
    );
    assert.deepEqual(back.kinds.slice(0, 5), kinds.slice(0, 5));
  }
}

/** Programs of one or a few lines, most of them new to the cache. */
async function runBriefly(round) {
  for (let i = 0; i < 60; i++) {
    assert.equal(unwrap(await runCode(`export default ${i} + ${round}`)), i + round);
    const source = `
      import { double } from './double.ts';
      const names: string[] = ['ann', 'bo'].map((name) => name + title + ${i % 5});
      export function main(n: number): { names: string[]; n: number } {
        return { names, n: double(n) };
      }`;
    const modules = { './double.ts': `export const double = (n: number): number => n * 2; // ${round}` };
    const options = { modules, globals: { title: '!' }, execute: { fn: 'main', args: [i] } };
    assert.deepEqual(unwrap(await runCode(source, options)), {
      names: [`ann!${i % 5}`, `bo!${i % 5}`],
      n: 2 * i,
    });
  }
}

/** Programs that fail. */
async function fail(round) {
  const statuses = [];
  for (const source of [
    `null.name // ${round}`,
    `const = ${round}`,
    `throw new TypeError('no ${round}')`,
  ]) {
    statuses.push((await runCode(source)).status);
  }
  const bomb = `const all = []; for (;;) all.push({ n: ${round} });`;
  statuses.push((await runCode(bomb, { memoryLimitBytes: 4 * 1024 * 1024 })).status);
  const loop = runCode(`for (;;) ${round};`);
  setImmediate(() => loop.terminate());
  statuses.push((await loop).status);
  assert.deepEqual(statuses, ['error', 'link_error', 'error', 'memory', 'terminated']);
}
