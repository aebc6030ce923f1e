// The text of a value: as Node's own console shows it, for all that crosses and for objects of the host.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inspect } from 'node:util';

import { describe, runCode } from 'isolane';

/** The text of Node's console in one line. */
const shown = (value) => inspect(value, { depth: 2, breakLength: Infinity, compact: true });

class Acc {
  total = 3;
  get twice() {
    throw new Error('ran');
  }
}

const circle = { list: [1] };
circle.self = circle;
const shared = { a: 1 };

const VALUES = [
  undefined,
  null,
  true,
  -0,
  1e21,
  1.5e-7,
  5n,
  NaN,
  [1, [2, [3, [4, [5]]]]],
  Array.from({ length: 100 }, (_, index) => index),
  Array.from({ length: 101 }, () => 1),
  [Array.from({ length: 3000 }, () => 1), 'after'],
  { 'a-b': 1, $: 2, _x: 3, '': 4, 5: 6 },
  new Map([[{ k: 1 }, new Set(['x'])]]),
  new Set(Array.from({ length: 150 }, (_, index) => index)),
  new Map(Array.from({ length: 150 }, (_, index) => [index, index])),
  new Date(0),
  [new Date('2026-11-28'), new Date(NaN)],
  new Date(-1e14),
  [, 1, , ,],
  new Array(3),
  Object.assign(new Array(5), { 3: 'x' }),
  /a\/b/gi,
  new Uint8Array(3),
  new Float32Array([0.5, -0]),
  ["it's", 'say "it\'s"', 'a\nb', '\u0007'],
  circle,
  [shared, shared],
  {},
  [],
  [[], {}, new Map(), new Set()],
  new Acc(),
  { deep: [new Acc()] },
  [Symbol('s')],
  new Proxy({ a: 1 }, {}),
];

for (const [number, value] of VALUES.entries()) {
  test(`value ${number} is shown as by Node's console`, () => {
    assert.equal(describe(value), shown(value));
  });
}

test('a string is bare, and quoted inside of something', () => {
  assert.equal(describe("it's"), "it's");
  assert.equal(describe(["it's"]), `[ "it's" ]`);
});

test('functions, promises and errors have a short text', () => {
  function scan() {}
  assert.equal(describe([scan, () => 1, Promise.resolve(), new TypeError('no')]), '[ [Function: scan], [Function (anonymous)], [Promise], [TypeError: no] ]');
});

test('neither a getter of a class nor a trap runs', () => {
  const proxy = new Proxy(
    {},
    {
      get() {
        throw new Error('ran');
      },
      ownKeys() {
        throw new Error('ran');
      },
    },
  );
  assert.equal(describe([proxy]), '[ {} ]');
  assert.equal(describe({ [inspect.custom]: () => 'ran', a: new Acc() }).includes('ran'), false);
});

test('the text has a limit', () => {
  assert.equal(describe('x'.repeat(20_000)).length, 9_998);
  assert.ok(Buffer.byteLength(describe(['é'.repeat(1000)], { limit: 100 })) <= 100);
  assert.equal(describe(new Acc(), { limit: 8 }), 'Acc {…');
  assert.equal(describe([1, 2, 3], { limit: 1 }).length <= 1, true);
});

test('misuse of the limit is told', () => {
  assert.throws(() => describe(1, { limit: 0 }), { name: 'RangeError', message: /^limit must be a whole number from 1/ });
  assert.throws(() => describe(1, { limit: '9' }), { name: 'TypeError', message: "limit must be a number, got '9'" });
  assert.throws(() => describe(1, { limits: 9 }), { name: 'TypeError', message: /did you mean 'limit'/ });
});

test('results have texts', async () => {
  const { result } = await runCode('export default { when: new Date(0), n: 2n ** 70n, list: new Map([["a", /x/]]) }');
  assert.equal(describe(result), "{ when: 1970-01-01T00:00:00.000Z, n: 1180591620717411303424n, list: Map(1) { 'a' => /x/ } }");
});

test('a handle says its class', async () => {
  const run = runCode('export default 1');
  assert.match(Object.prototype.toString.call(run), /^\[object \w+\]$/);
  assert.equal(Object.prototype.toString.call(run), `[object ${run[Symbol.toStringTag]}]`);
  await run;
});
