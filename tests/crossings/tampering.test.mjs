// Every intrinsic that sandbox code can reach, tampered with before every kind of crossing: the crossing is the same as
// without tampering, and our code calls none of the planted functions.
//
// The program under test uses syntax alone after the tampering, and promises only where it is marked: lookups of the
// language itself (`then`, `constructor` of a promise) are the sandbox's own affair.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Runtime } from '../isolation.mjs';

import { describe } from './describe.mjs';

const AT_ONCE = 16;
const CEILING_MS = 60_000;
/** For runs of which some never settle, which is no failure. */
const STALL_MS = 5_000;

/** The objects to tamper with, by name. */
const OBJECTS = `{
  Object, 'Object.prototype': Object.prototype, Reflect, Function, 'Function.prototype': Function.prototype, Array, 'Array.prototype': Array.prototype,
  Promise, 'Promise.prototype': Promise.prototype, Map, 'Map.prototype': Map.prototype, Set, 'Set.prototype': Set.prototype,
  'Date.prototype': Date.prototype, RegExp, 'RegExp.prototype': RegExp.prototype, Error, 'Error.prototype': Error.prototype,
  'TypeError.prototype': TypeError.prototype, 'RangeError.prototype': RangeError.prototype, Symbol, 'Symbol.prototype': Symbol.prototype,
  String, 'String.prototype': String.prototype, Number, 'Number.prototype': Number.prototype, BigInt, 'BigInt.prototype': BigInt.prototype,
  'Boolean.prototype': Boolean.prototype, JSON, ArrayBuffer, 'ArrayBuffer.prototype': ArrayBuffer.prototype,
  TypedArray: Object.getPrototypeOf(Uint8Array), 'TypedArray.prototype': Object.getPrototypeOf(Uint8Array.prototype),
  Uint8Array, 'Uint8Array.prototype': Uint8Array.prototype, 'DataView.prototype': DataView.prototype, 'Iterator.prototype': Iterator.prototype,
  'array iterator': Object.getPrototypeOf([].values()), 'map iterator': Object.getPrototypeOf(new Map().entries()), Math, globalThis, console,
}`;

/** Names that crossings might look up on prototypes without them. They are planted there. */
const PLANTED = [
  'get', 'set', 'value', 'writable', 'enumerable', 'configurable', 'then', 'catch', 'finally', 'length', 'name', 'message', 'code', 'stack', 'cause', 'errors', 'toJSON',
  'constructor', 'prototype', 'transfer', 'buffer', 'byteLength', 'byteOffset', 'size', 'index', 'lastIndex', 'source', 'flags', 'done', 'next', 'return', 'throw', 'raw',
  'prepareStackTrace', 'captureStackTrace', 'stackTraceLimit', 'with', 'default', 'type', 'a', 'list', '0', '1', '2', '5', '4294967294', '-1', '',
];
const PLANTED_SYMBOLS = ['iterator', 'asyncIterator', 'toStringTag', 'toPrimitive', 'species', 'hasInstance', 'isConcatSpreadable', 'unscopables', 'dispose', 'asyncDispose'];
const PLANTED_IN = ['Object.prototype', 'Array.prototype', 'Function.prototype', 'Error.prototype', 'Map.prototype', 'Promise.prototype', 'Error', 'Promise'];

/** Ways to tamper with the property `key` of `o`; `hit(name)` notes that something ran. */
const WAYS = {
  'a function that throws': 'D(o, key, { value: function () { hit(); throw new TypeError("tampered"); }, writable: true, enumerable: false, configurable: true });',
  'an accessor that throws': 'D(o, key, { get() { hit(); throw new TypeError("tampered"); }, set() { hit(); throw new TypeError("tampered"); }, enumerable: false, configurable: true });',
  undefined: 'D(o, key, { value: undefined, writable: false, enumerable: false, configurable: true });',
  'an enumerable number': 'D(o, key, { value: 7, writable: true, enumerable: true, configurable: true });',
  nothing: 'delete o[key];',
};

const PRELUDE = `
const D = Object.defineProperty;
const objects = ${OBJECTS};
const clone = structuredClone;
const { log, count } = console;
let hits = 0;
const hit = () => { hits += 1; };
const make = () => {
  const buffer = new Uint8Array([1, 2, 3, 4]).buffer;
  const error = new RangeError('why');
  error.code = 'E';
  const shared = { deep: [[[{}]]] };
  const value = {
    a: 1, list: [1, , 'three', undefined], map: new Map([['k', shared], [shared, 2]]), set: new Set([1, 'x']), date: new Date(5), pattern: /a+/gi, error,
    buffer, view: new Uint16Array(buffer, 2, 1), alone: new Float64Array([0.5]), data: new DataView(new ArrayBuffer(3), 1), big: -(2n ** 70n), boxed: [Object('s'), Object(1n)],
    text: '\\ud800é', numbers: [NaN, -0, Infinity, 1e300], ['__proto__']: 1, constructor: 2, then: 3, bare: Object.assign(Object.create(null), { b: 1 }), get got() { return shared; },
  };
  value.self = value;
  return value;
};
const [one, two, three, four, five, six] = [make(), make(), make(), make(), make(), make()];
const thrown = new TypeError('own');
const refused = { deep: { f() {} } };
const label = 'label';
const symbol = Symbol.iterator;
const f = (x) => { say('called', x); return five; };
`;

const STEPS = `
say('forged', { name: 'Terminated', message: 'MemoryLimit' });
say('argument', one);
say('answer', answer());
say('clone', clone(two));
report(three);
log(four);
count(label);
try { fail(); } catch (error) { say('caught', error); }
try { clone(refused); } catch (error) { say('refused', error); }
try { say('unsaid', refused.deep.f, symbol); } catch (error) { say('refused argument', error); }
`;

const ENDINGS = {
  result: `${STEPS} const hitsOfSteps = hits; say('hits', hitsOfSteps); export default six;`,
  throw: `${STEPS} const hitsOfSteps = hits; say('hits', hitsOfSteps); throw thrown;`,
  // The language looks up properties of promises; those hits are ignored.
  promises: `${STEPS} say('hits', hits); keep(f); say('later', await later()); try { await laterFail(); } catch (error) { say('rejected', error); } say('returned', await callKept()); export default 1;`,
};

/** The objects of which every key is tampered with alone, by the ending that it could affect. */
const KEY_BY_KEY = { result: /^/, throw: /Error/, promises: /^Promise/ };

const runtime = new Runtime({ maxConcurrentRuns: 4 });
const before = fingerprint();

for (const [ending, steps] of Object.entries(ENDINGS)) {
  test(`nothing that is tampered with changes a crossing: ${ending}`, { timeout: 120_000 }, async (t) => {
    const untampered = await outcome(`${PRELUDE}${steps}`);
    assert.equal(untampered.status, ending === 'throw' ? 'error' : 'success', JSON.stringify(untampered));
    assert.equal(untampered.said.hits, '0');
    const wrong = [];
    let ran = 0;
    await each(tamperings(await keys(), KEY_BY_KEY[ending]), async ({ name, text, language }) => {
      const got = await outcome(`${PRELUDE}${text}\n${steps}`, mayStall(ending, language) ? STALL_MS : CEILING_MS);
      ran += 1;
      const why = judge(got, untampered, ending, language);
      if (why !== undefined) wrong.push(`${name}: ${why}`);
      if (fingerprint() !== before) wrong.push(`${name}: the host's intrinsics have changed`);
    });
    t.diagnostic(`${ran} programs`);
    assert.deepEqual(wrong, []);
  });
}

test.after(() => runtime.close());

/** The keys of every object in the sandbox. */
async function keys() {
  const source = `const objects = ${OBJECTS}; const text = (key) => (typeof key === 'symbol' ? key.description.replace('Symbol.', '@@') : key);
    export default Object.entries(objects).map(([name, o]) => [name, Reflect.ownKeys(o).map(text)]);`;
  return (await runtime.runCode(source)).result;
}

/** Every object with all its keys in each way; those in `keyByKey` also one key at a time. */
function* tamperings(all, keyByKey) {
  const key = (name) => (name.startsWith('@@') ? `Symbol.${name.slice(2)}` : JSON.stringify(name));
  for (const [object, names] of all) {
    const planted = PLANTED_IN.includes(object) ? [...PLANTED, ...PLANTED_SYMBOLS.map((name) => `@@${name}`)] : [];
    for (const name of keyByKey.test(object) ? new Set([...names, ...planted]) : []) {
      for (const [way, text] of Object.entries(WAYS).slice(0, 2)) {
        yield {
          name: `${object}[${name}] is ${way}`,
          text: `try { const o = objects[${JSON.stringify(object)}], key = ${key(name)}; ${text} } catch {}`,
          language: languageLooksUp(object, name),
        };
      }
    }
    for (const [way, text] of Object.entries(WAYS)) {
      if (object === 'console') continue;
      yield { name: `all of ${object} is ${way}`, text: `{ const o = objects[${JSON.stringify(object)}]; const keys = Reflect.ownKeys(o); for (let i = 0; i < keys.length; i += 1) { const key = keys[i]; try { ${text} } catch {} } }`, language: inherited(object) ? 'all' : undefined };
    }
    yield { name: `${object} has a Proxy as its prototype`, text: `try { Object.setPrototypeOf(objects[${JSON.stringify(object)}], new Proxy({}, { get(target, key) { hit(); throw new TypeError('tampered'); }, has() { hit(); return true; }, getOwnPropertyDescriptor() { hit(); }, set() { hit(); } })); } catch {}`, language: inherited(object) ? 'all' : undefined };
    yield { name: `${object} is frozen`, text: `try { Object.freeze(objects[${JSON.stringify(object)}]); } catch {}` };
  }
}

/** The language's own lookups, or an error's own inheritance, of a tampered property. */
function languageLooksUp(object, name) {
  if (/^(Promise|Promise\.prototype)$/.test(object) || name === 'then') return 'promises';
  if (name === 'constructor' || name === '@@species') return 'promises';
  if (/Error/.test(object) && ['name', 'message', 'code', 'stack', 'cause'].includes(name)) return 'errors';
  if (/^(Object|Function)\.prototype$/.test(object) && ['name', 'message', 'code', 'stack'].includes(name)) return 'errors';
  return undefined;
}

/** Whether errors and promises inherit from it. */
function inherited(object) {
  return /Error|Promise|^(Object|Function)\.prototype$/.test(object);
}

/** Whether only what nothing of the language touches is compared. */
function isLoose(ending, language) {
  return language === 'all' || language === 'errors' || (ending === 'promises' && language === 'promises');
}

/** Whether awaiting itself may be tampered with. */
function mayStall(ending, language) {
  return ending === 'promises' && isLoose(ending, language);
}

/** The difference between an outcome and the one without tampering. */
function judge(got, untampered, ending, language) {
  if (/node:|file:\/\/|\.mjs|tests\/|InternalError/.test(got.texts)) return `a text of the host: ${got.texts}`;
  // An await's lookups and an error's inheritance are the sandbox's own affair: then only the rest is compared.
  const loose = isLoose(ending, language);
  // Where awaiting itself is tampered with, it may never settle: such a run is ended as stalled.
  const stalled = ending === 'promises' && got.status === 'terminated' && got.texts.includes('stalled');
  if (!['success', 'error'].includes(got.status) && !(loose && stalled)) return `status ${got.status}: ${got.texts}`;
  if (!loose) {
    if (got.status !== untampered.status) return `status ${got.status}: ${got.texts}`;
    for (const step of Object.keys(untampered.said)) if (got.said[step] !== untampered.said[step]) return `${step}:\n${got.said[step]}\ninstead of\n${untampered.said[step]}`;
    if (got.ended !== untampered.ended) return `ended as\n${got.ended}\ninstead of\n${untampered.ended}`;
    return undefined;
  }
  // A value with an error in it may now throw when it is read; one without must be unchanged.
  return got.said.forged === untampered.said.forged ? undefined : `forged:\n${got.said.forged}`;
}

async function outcome(source, ceilingMs = CEILING_MS) {
  const said = {};
  let kept;
  const example = () => ({ list: [1, , 3], map: new Map([[1, { a: 1 }]]), set: new Set([1]), date: new Date(1), pattern: /x/g, error: new TypeError('host'), view: new Uint8Array([1, 2]), big: -5n, text: '\ud800', ['__proto__']: 1 });
  const run = runtime.runCode(source, {
    language: 'javascript',
    memoryLimitBytes: 32 << 20,
    globals: {
      say: (step, value) => void (said[step] = step === 'hits' ? String(value) : describe(value)),
      answer: example,
      later: async () => example(),
      fail: () => {
        throw Object.assign(new RangeError('host'), { code: 5 });
      },
      laterFail: async () => {
        throw new RangeError('host');
      },
      keep: (f) => void (kept = f),
      callKept: async () => kept(example()),
    },
    report: (value) => void (said.report = describe(value)),
  });
  // A run whose callback the host holds may wait for ever; only one that awaits a tampered value does.
  const ceiling = setTimeout(() => run.terminate('stalled'), ceilingMs);
  const { status, result, error, logs } = await run;
  clearTimeout(ceiling);
  said.log = logs[0] === undefined ? undefined : describe(logs[0].args);
  said.count = logs[1] === undefined ? undefined : describe(logs[1].args);
  const ended = status === 'success' ? describe(result) : JSON.stringify({ ...error, stack: undefined, line: undefined, column: undefined });
  const texts = JSON.stringify([error, logs.filter(({ level }) => level === 'error').map(({ args }) => args)]);
  return { status, said, ended, texts };
}

async function each(list, work) {
  const items = list[Symbol.iterator]();
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      for (let item = items.next(); !item.done; item = items.next()) await work(item.value);
    }),
  );
}

/** The host's own intrinsics, as far as a crossing could change them. */
function fingerprint() {
  const objects = [Object.prototype, Array.prototype, Function.prototype, Promise.prototype, Error.prototype, Map.prototype, RegExp.prototype];
  return JSON.stringify(objects.map((object) => Reflect.ownKeys(object).map(String)));
}
