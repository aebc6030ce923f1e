// The codec alone: a value that is written and read again equals its structuredClone.

import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { test } from 'node:test';
import vm from 'node:vm';

const require = createRequire(import.meta.url);
const { Encoder } = require('../../bindings-node/dist/crossing/encode.js');
const { Decoder } = require('../../bindings-node/dist/crossing/decode.js');

const nobody = {
  hostFunction: () => 0,
  sandboxFunction: () => undefined,
  hostPromise: () => 0,
  sandboxPromise: () => undefined,
};

function encode(value) {
  const encoder = new Encoder();
  encoder.begin(nobody);
  encoder.value(value, 'root');
  return { nodes: Buffer.from(encoder.bytes.subarray(0, encoder.at)), blobs: { list: (encoder.blobs ?? []).map((blob) => new Uint8Array(blob)), more: () => false } };
}

function roundTrip(value) {
  const { nodes, blobs } = encode(value);
  return new Decoder(nodes, 0).message(nodes.length, blobs, nobody, 'root');
}

/** A small generator with a seed, so that a failure can be reproduced. */
function randomness(seed) {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
  return { below: (n) => Math.floor(next() * n), real: next };
}

const LEAVES = [
  (r) => r.below(2 ** 32) - 2 ** 31,
  (r) => (r.real() - 0.5) * 10 ** r.below(300),
  (r) => [0, -0, NaN, Infinity, -Infinity, 2 ** 31, -(2 ** 31) - 1, 2 ** 53][r.below(8)],
  (r) => [true, false, null, undefined][r.below(4)],
  (r) => (BigInt(r.below(2 ** 32)) << BigInt(r.below(3000))) * (r.below(2) ? 1n : -1n),
  (r) => text(r),
  (r) => new Date(r.below(2 ** 32) * 1000),
  (r) => new RegExp(['a+', '[^/]', '', '\\/', '\\u{1F600}'][r.below(5)], r.below(2) ? 'gu' : 'i'),
  (r) => new Uint8Array(Array.from({ length: r.below(20) }, () => r.below(256))),
  (r) => new Float64Array(Array.from({ length: r.below(5) }, () => r.real())),
  (r) => new DataView(new ArrayBuffer(r.below(9) + 8), 0, r.below(8)),
  (r) => new Uint16Array(r.below(5)).buffer,
  (r) => [new TypeError('t'), new Error('plain'), new RangeError('')][r.below(3)],
];

function text(r) {
  const pool = ['a', 'key', '_', '7', ' ', 'é', 'ß', '語', '😀', '\u0000', '\ud800', '\udc00', '__proto__', 'constructor'];
  return Array.from({ length: r.below(12) ** (r.below(20) ? 1 : 2) }, () => pool[r.below(pool.length)]).join('');
}

function value(r, depth, seen) {
  const kind = r.below(depth <= 0 ? 10 : 18);
  if (kind < 9) return LEAVES[r.below(LEAVES.length)](r);
  if (kind === 9 && seen.length > 0) return seen[r.below(seen.length)];
  const size = r.below(6);
  if (kind < 13) {
    const object = {};
    seen.push(object);
    for (let i = 0; i < size; i += 1) {
      Object.defineProperty(object, text(r), { value: value(r, depth - 1, seen), writable: true, enumerable: true, configurable: true });
    }
    return object;
  }
  if (kind < 15) {
    const array = [];
    seen.push(array);
    for (let i = 0; i < size; i += 1) {
      if (r.below(8)) array.push(value(r, depth - 1, seen));
      else array.length += 1;
    }
    return array;
  }
  if (kind < 17) {
    const map = new Map();
    seen.push(map);
    for (let i = 0; i < size; i += 1) map.set(value(r, depth - 1, seen), value(r, depth - 1, seen));
    return map;
  }
  const set = new Set();
  seen.push(set);
  for (let i = 0; i < size; i += 1) set.add(value(r, depth - 1, seen));
  return set;
}

/** Errors lose their stack on the way in, by contract; elsewhere the two must agree. */
function withoutStacks(root) {
  const todo = [root];
  const seen = new Set();
  while (todo.length > 0) {
    const item = todo.pop();
    if (typeof item !== 'object' || item === null || seen.has(item)) continue;
    seen.add(item);
    if (item instanceof Error) Object.defineProperty(item, 'stack', { value: '', enumerable: false });
    else if (item instanceof Map) todo.push(...item.keys(), ...item.values());
    else if (item instanceof Set) todo.push(...item);
    else if (!ArrayBuffer.isView(item)) todo.push(...Object.values(item));
  }
  return root;
}

test('round trips agree with structuredClone', () => {
  const seed = Number(process.env.ISOLANE_SEED ?? 1);
  console.log(`codec: ISOLANE_SEED=${seed}`);
  const r = randomness(seed);
  for (let i = 0; i < 3000; i += 1) {
    const original = value(r, 5, []);
    assert.deepStrictEqual(withoutStacks(roundTrip(original)), withoutStacks(structuredClone(original)), `value ${i} of seed ${seed}`);
  }
});

test('cut or damaged messages are refused, never misread into a crash', () => {
  const r = randomness(7);
  for (let i = 0; i < 2000; i += 1) {
    const { nodes, blobs } = encode(value(r, 3, []));
    if (r.below(2)) nodes[r.below(nodes.length)] = r.below(256);
    const cut = r.below(2) ? nodes.subarray(0, r.below(nodes.length)) : nodes;
    try {
      new Decoder(cut, 0).message(cut.length, blobs, nobody, 'root');
    } catch (error) {
      assert.ok(error instanceof Error);
    }
  }
});

test('dates keep being invalid, and empty things empty', () => {
  assert.ok(Number.isNaN(roundTrip(new Date(NaN)).getTime()));
  assert.deepStrictEqual(roundTrip([{}, [], new Map(), new Set(), '', 0n, new Uint8Array(0), new ArrayBuffer(0)]), [
    {}, [], new Map(), new Set(), '', 0n, new Uint8Array(0), new ArrayBuffer(0),
  ]);
});

test('identity and cycles are kept within a message', () => {
  const shared = { x: 1 };
  const cyclic = { shared, again: shared, list: [shared] };
  cyclic.self = cyclic;
  const copy = roundTrip(cyclic);
  assert.equal(copy.self, copy);
  assert.equal(copy.shared, copy.again);
  assert.equal(copy.list[0], copy.shared);
  assert.notEqual(copy.shared, shared);
});

test('a value 200,000 deep crosses without overflowing a stack', () => {
  for (const wrap of [(v) => ({ v }), (v) => [v], (v) => new Map([[v, 1]]), (v) => new Set([v])]) {
    let deep = 0;
    for (let i = 0; i < 200_000; i += 1) deep = wrap(deep);
    let depth = 0;
    for (let at = roundTrip(deep); at !== 0; depth += 1) {
      at = at instanceof Map ? [...at.keys()][0] : at instanceof Set ? [...at][0] : Array.isArray(at) ? at[0] : at.v;
    }
    assert.equal(depth, 200_000);
  }
});

test('huge sparse arrays cost as much as their elements', () => {
  const sparse = [];
  sparse[4_000_000_000] = 'far';
  sparse[3] = 'near';
  const { nodes } = encode(sparse);
  assert.ok(nodes.length < 100);
  assert.deepStrictEqual(roundTrip(sparse), sparse);
  assert.deepStrictEqual(roundTrip(new Array(2 ** 32 - 1)), new Array(2 ** 32 - 1));
});

test('an own __proto__ stays an own key, on either side', () => {
  const copy = roundTrip(JSON.parse('{"__proto__": {"polluted": true}, "constructor": 1, "toString": 2}'));
  assert.deepStrictEqual(Object.keys(copy), ['__proto__', 'constructor', 'toString']);
  assert.equal(Object.getPrototypeOf(copy), Object.prototype);
  assert.equal({}.polluted, undefined);
});

test('a view carries its own bytes, unless its buffer is in the message too', () => {
  const buffer = new Uint8Array([0, 1, 2, 3, 4, 5, 6, 7]).buffer;
  const alone = roundTrip(new Uint8Array(buffer, 2, 3));
  assert.deepStrictEqual([alone.byteOffset, alone.buffer.byteLength, [...alone]], [0, 3, [2, 3, 4]]);
  for (const make of [(view) => ({ view, buffer }), (view) => ({ buffer, view })]) {
    const { view, buffer: whole } = roundTrip(make(new Int16Array(buffer, 4, 2)));
    assert.equal(view.buffer, whole);
    assert.deepStrictEqual([view.byteOffset, view.length, whole.byteLength], [4, 2, 8]);
  }
  const pooled = roundTrip(Buffer.from('pooled'));
  assert.equal(pooled.buffer.byteLength, 6);
  assert.equal(pooled.constructor, Uint8Array);
  const shared = roundTrip(new Uint8Array(new SharedArrayBuffer(3)));
  assert.ok(shared.buffer instanceof ArrayBuffer);
});

test('boxed primitives arrive as primitives and do not disturb references', () => {
  const object = {};
  const copy = roundTrip([Object(1), Object('s'), Object(true), Object(5n), object, object]);
  assert.deepStrictEqual(copy.slice(0, 4), [1, 's', true, 5n]);
  assert.equal(copy[4], copy[5]);
});

test('values cross by kind, with any prototype and from any realm', () => {
  const foreign = vm.runInNewContext(`({
    object: { a: 1 }, array: [1, , 3], map: new Map([[1, 2]]), set: new Set([1]), date: new Date(5),
    regexp: /x/g, error: new TypeError('far'), bytes: new Uint8Array([1, 2]), bare: Object.create(null),
  })`);
  const copy = roundTrip(foreign);
  assert.equal(Object.getPrototypeOf(copy.object), Object.prototype);
  assert.ok(Array.isArray(copy.array) && copy.array instanceof Array && !(1 in copy.array));
  assert.ok(copy.map instanceof Map && copy.set instanceof Set && copy.date instanceof Date);
  assert.ok(copy.regexp instanceof RegExp && copy.bytes instanceof Uint8Array);
  assert.ok(copy.error instanceof TypeError && copy.error.message === 'far');
  class Mine extends Map {}
  assert.deepStrictEqual(roundTrip(new Mine([[1, 2]])), new Map([[1, 2]]));
  for (const prototype of [null, Object.prototype, Array.prototype]) {
    assert.deepStrictEqual(roundTrip(Object.setPrototypeOf(new Map([[1, 2]]), prototype)), new Map([[1, 2]]));
  }
  assert.deepStrictEqual(roundTrip(Object.setPrototypeOf([1, 2], null)), [1, 2]);
});

test('an error crosses as class, name, message and code', () => {
  class Quota extends RangeError {
    name = 'Quota';
    code = 'E_QUOTA';
    secret = 1;
  }
  const copy = roundTrip(new Quota('over', { cause: new Error('inner') }));
  assert.ok(copy instanceof RangeError);
  assert.deepStrictEqual([copy.name, copy.message, copy.code, copy.stack], ['Quota', 'over', 'E_QUOTA', 'Quota: over']);
  assert.deepStrictEqual([Object.keys(copy), copy.cause, copy.secret], [['code'], undefined, undefined]);
  const aborted = roundTrip(AbortSignal.abort().reason);
  assert.deepStrictEqual([aborted instanceof Error, aborted.name, aborted.code], [true, 'AbortError', 20]);
});

test('getters run once, and an error that they throw is the outcome', () => {
  let ran = 0;
  const copy = roundTrip({ get a() { ran += 1; return { ran }; } });
  assert.deepStrictEqual([copy, ran], [{ a: { ran: 1 } }, 1]);
  const mine = new Error('mine');
  assert.throws(() => encode([{ get a() { throw mine; } }]), (error) => error === mine);
  const vanishing = { get a() { delete this.b; return 1; }, b: 2, c: 3 };
  assert.deepStrictEqual(roundTrip(vanishing), { a: 1, c: 3 });
});

test('a value that cannot be cloned is named with its place', () => {
  class Pool {}
  const trap = () => assert.fail('a trap ran');
  const proxy = new Proxy({}, { get: trap, ownKeys: trap, getPrototypeOf: trap, has: trap, getOwnPropertyDescriptor: trap });
  const detached = new ArrayBuffer(4);
  structuredClone(detached, { transfer: [detached] });
  for (const [root, message] of [
    [{ db: { pool: new Pool() } }, 'root.db.pool: an instance of Pool'],
    [{ 'a b': [0, Symbol('s')] }, 'root["a b"][1]: a symbol'],
    [{ a: { [Symbol('ignored')]: 1, b: Object(Symbol('s')) } }, 'root.a.b: a symbol'],
    [new Map([['k', new WeakMap()]]), 'root.values()[0]: a WeakMap'],
    [new Map([['k', 1], [new WeakSet(), 1]]), 'root.keys()[1]: a WeakSet'],
    [new Set([1, new WeakRef({})]), 'root.values()[1]: a WeakRef'],
    [[proxy], 'root[0]: a Proxy'],
    [{ f: new Proxy(() => 1, { apply: trap }) }, 'root.f: a Proxy'],
    [Object.create(proxy), 'root: an object with a prototype of its own'],
    [[[function* () {}()]], 'root[0][0]: a generator'],
    [new SharedArrayBuffer(1), 'root: a SharedArrayBuffer'],
    [{ detached }, 'root.detached: a detached ArrayBuffer'],
    [Object.create({ a: 1 }), 'root: an object with a prototype of its own'],
    [new URL('http://localhost/'), 'root: an instance of URL'],
  ]) {
    assert.throws(() => encode(root), { name: 'SerializationError', message: `${message} cannot be cloned` });
  }
});

test('errors are read without taking the stack of this process, and its limit is left as it was', () => {
  const { nodes, blobs } = encode([new TypeError('one'), new TypeError('two')]);
  const message = () => new Decoder(nodes, 0).message(nodes.length, blobs, nobody, 'root');
  const read = () => message().map((error) => error.message);
  const { TypeError: Class } = globalThis;
  const limit = Object.getOwnPropertyDescriptor(Error, 'stackTraceLimit');
  const limits = [];
  globalThis.TypeError = class extends Class {
    constructor(message) {
      super(message);
      limits.push(Error.stackTraceLimit);
    }
  };
  try {
    assert.deepEqual([read(), limits], [['one', 'two'], [0, 0]]);
    assert.equal(Error.stackTraceLimit, limit.value);
    Object.defineProperty(Error, 'stackTraceLimit', { writable: false });
    assert.deepEqual(read(), ['one', 'two']);
  } finally {
    Object.defineProperty(Error, 'stackTraceLimit', limit);
    globalThis.TypeError = Class;
  }
});
