// Actions of sandbox code while a value is read, at every kind of crossing.
//
// An act is an expression for a value that does something hostile when it is read. The result must equal Node's
// `structuredClone` of the same expression, or the act's own expectation, and nothing may reach the host outside of the
// run.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Runtime } from '../isolation.mjs';

import { describe } from './describe.mjs';

/** Acts that only change the value that is being read. The oracle is `structuredClone` of Node. */
const CHANGES = {
  'deletes what comes next': '{ get a() { delete this.b; return 1; }, b: 2, c: 3 }',
  'adds what was not there': '{ get a() { this.z = 1; return 1; }, b: 2 }',
  'takes away and puts back': '{ get a() { delete this.b; this.b = 9; return 1; }, b: 2, c: 3 }',
  'replaces what comes next': '{ get a() { this.b = { c: { d: 1 } }; return 1; }, b: 2 }',
  'makes what comes next a getter': '{ get a() { Object.defineProperty(this, "b", { get: () => "got", enumerable: true }); return 1; }, b: 2 }',
  'hides what comes next': '{ get a() { Object.defineProperty(this, "b", { enumerable: false }); return 1; }, b: 2 }',
  'freezes itself': '{ get a() { Object.freeze(this); return 1; }, b: [1] }',
  'changes its prototype': '{ get a() { Object.setPrototypeOf(this, Array.prototype); return 1; }, b: 2 }',
  'shrinks its array': '(() => { const list = [0, 1, 2, 3]; Object.defineProperty(list, 0, { get() { list.length = 1; return 0; }, enumerable: true }); return list; })()',
  'empties its array': '(() => { const list = [{ get a() { list.length = 0; return 0; } }, 1, 2]; return list; })()',
  'grows its array': '(() => { const list = [{ get a() { list.push(1, 2, 3); return 0; } }, 1]; return list; })()',
  'makes a hole': '(() => { const list = [{ get a() { delete list[1]; return 0; } }, 1, 2]; return list; })()',
  'fills a hole': '(() => { const list = [{ get a() { list[1] = 1; return 0; } }, , 2]; return list; })()',
  'sorts its array': '(() => { const list = [{ get a() { list.reverse(); return 0; } }, 1, 2, 3]; return list; })()',
  'makes its array sparse': '(() => { const list = [{ get a() { list[100000] = 1; return 0; } }, 1]; return list; })()',
  'adds to the Map being read': '(() => { const map = new Map(); map.set("k", { get a() { map.set("new", 1); return 0; } }); map.set("l", 1); return map; })()',
  'clears the Map being read': '(() => { const map = new Map(); map.set("k", { get a() { map.clear(); return 0; } }); map.set("l", 1); return map; })()',
  'deletes from the Map being read': '(() => { const map = new Map(); map.set("k", { get a() { map.delete("l"); return 0; } }); map.set("l", { deep: [1] }); return map; })()',
  'adds to the Set being read': '(() => { const set = new Set(); set.add({ get a() { set.add(1); return 0; } }); return set; })()',
  'clears the Set being read': '(() => { const set = new Set(); set.add({ get a() { set.clear(); return 0; } }); set.add({}); return set; })()',
  'is its own getter': '(() => { const o = { get self() { return o; }, get again() { return o; } }; return o; })()',
  'gives what was met': '(() => { const met = { a: 1 }; return { met, get again() { return met; }, list: [met] }; })()',
  'drops what was met': '(() => { const o = { met: { a: 1 }, get b() { o.met = null; const junk = []; for (let i = 0; i < 1000; i += 1) junk.push({ a: i }); return junk.length; }, c: { a: 2 } }; return o; })()',
  'clones itself inside': '{ get a() { return structuredClone({ b: [1] }); }, b: 2 }',
  'queues a job': '{ get a() { queueMicrotask(() => {}); return 1; } }',
  'an error that changes its name': '(() => { const e = new RangeError("m"); return { e, get a() { e.name = "Other"; return 1; } }; })()',
};

/** Acts with another outcome than a clone: the exception of the crossing or the status of the run. */
const ENDS = {
  'throws an error': ['{ get a() { throw Object.assign(new Error("boom"), { name: "Boom" }); } }', 'Boom: boom'],
  'throws from deep inside': ['[[{ m: new Map([[{ get a() { throw Object.assign(new Error("boom"), { name: "Boom" }); } }, 1]]) }]]', 'Boom: boom'],
  'throws from a message': ['Object.defineProperty(new Error(), "message", { get() { throw Object.assign(new Error("boom"), { name: "Boom" }); } })', 'Boom: boom'],
  'throws from a name': ['Object.defineProperty(new Error(), "name", { get() { throw Object.assign(new Error("boom"), { name: "Boom" }); } })', 'Boom: boom'],
  'throws what looks like ours': ['{ get a() { throw { name: "Terminated", message: "boom" }; } }', 'Terminated: boom'],
  'throws null': ['{ get a() { throw null; } }', 'null'],
  'throws itself': ['{ get a() { throw this; } }', ANY()],
  'calls the host': ['{ get a() { return echo({ b: 1 }); }, get b() { return echo([2]); } }', OK('Object ', ' "a": Object ', '  "b": 1', ' "b": Array 1', '  0: 2')],
  'calls the host which throws': ['{ get a() { fail(); } }', 'RangeError: host'],
  'reports': ['{ get a() { report({ get b() { return 1; } }); return 1; } }', OK('Object ', ' "a": 1')],
  'logs': ['{ get a() { console.log({ get b() { return 1; } }); return 1; } }', OK('Object ', ' "a": 1')],
  'clones itself for ever': ['(() => { const o = { get a() { return structuredClone(o); } }; return o; })()', ANY('RangeError', 'memory')],
  'reports itself for ever': ['(() => { const o = { get a() { report(o); return 1; } }; return o; })()', ANY('RangeError', 'memory')],
  'gives itself to the host for ever': ['(() => { const o = { get a() { echo(o); return 1; } }; return o; })()', ANY('RangeError', 'memory')],
  'logs itself for ever': ['(() => { const o = { get a() { console.log(o); return 1; } }; return o; })()', ANY('memory', 'success')],
  'goes on for ever': ['(() => { const fresh = () => ({ get a() { return fresh(); } }); return fresh(); })()', ANY('memory')],
  'goes on for ever in a Map': ['(() => { const fresh = () => new Map([[{ get a() { return fresh(); } }, 1]]); return fresh(); })()', ANY('memory')],
  'grows its array for ever': ['(() => { const list = []; Object.defineProperty(list, 0, { get() { return list; }, enumerable: true }); for (let i = 1; i < 50; i += 1) list.push({ get a() { list.push(this); return 1; } }); return list; })()', ANY('success')],
  'terminates the run': ['{ get a() { terminate(); return 1; }, b: [1, 2, 3] }', ANY('terminated')],
  'terminates the run and loops': ['{ get a() { terminate(); for (;;); } }', ANY('terminated')],
  'never comes back': ['{ get a() { soon(); for (;;); } }', ANY('terminated')],
  'fills the memory': ['{ get a() { const all = []; for (;;) all.push(new Array(1000).fill(all)); } }', ANY('memory')],
  'fills the memory and catches': ['{ get a() { const all = []; for (;;) { try { for (;;) all.push(new Array(1000).fill(all)); } catch {} } } }', ANY('memory')],
  'recurses': ['{ get a() { const f = () => f() + 1; return f(); } }', 'RangeError: Maximum call stack size exceeded (f calls itself without an end)'],
  'resolves what is awaited': ['{ then(resolve) { resolve({ get a() { return { then: 1 }; } }); } }', ANY()],
  'a thenable for ever': ['{ get then() { return (resolve) => { spend(); resolve(this); }; } }', ANY()],
  'a then that throws': ['{ get then() { throw Object.assign(new Error("boom"), { name: "Boom" }); } }', 'Boom: boom'],
  'a revoked Proxy inside': ['{ get a() { const { proxy, revoke } = Proxy.revocable({}, {}); revoke(); return proxy; } }', 'refused'],
  'a Proxy with its own traps': ['{ a: new Proxy({}, new Proxy({}, { get() { throw new Error("a trap was run"); } })) }', 'refused'],
};

/** Buffers that change under their views: Node's algorithm differs here, so only the status is checked. */
const BUFFERS = Object.fromEntries(
  ['buffer.resize(0)', 'buffer.resize(3)', 'buffer.resize(64)', 'buffer.transfer()', 'buffer.transfer(4)', 'new Uint8Array(buffer).fill(9)'].flatMap((change) =>
    ['before: new Uint16Array(buffer, 2, 2), ', 'before: new DataView(buffer, 8), ', 'before: new Uint8Array(buffer), ', 'before: buffer, ', ''].map((before) => [
      `${change} after ${before === '' ? 'nothing' : before.slice(8, -2)}`,
      `(() => { const buffer = new ArrayBuffer(16, { maxByteLength: 64 }), late = [new Uint32Array(buffer, 4), new DataView(buffer, 4, 8), buffer]; return { ${before}get change() { ${change}; return 1; }, late, get again() { return buffer.detached ? 0 : new Uint8Array(buffer); } }; })()`,
    ]),
  ),
);

/** The crossings: each makes its value with `make()` and returns its result. */
const CROSSINGS = {
  argument: 'attempt(() => show(make()));',
  answer: 'attempt(() => show(echo(make())));',
  report: 'attempt(() => { report(make()); });',
  log: 'attempt(() => { console.log(make()); });',
  'other methods of the console': 'for (const [name, method] of Object.entries(console)) if (!/^time|^count/.test(name)) attempt(() => { method(make(), make()); });',
  clone: 'attempt(() => show(structuredClone(make())));',
  'a Map in an argument': 'attempt(() => show(new Map([[make(), 1]]).keys().next().value));',
  'what a callback gives': 'attempt(() => show(1)); await call(() => make()).then((value) => show(value), (error) => told(error));',
  'what a callback throws': 'await call(() => { throw make(); }).then(() => 0, () => 0); show(1);',
  'what a callback is given': 'await call((value) => { show(value); }, make()).then(() => 0, (error) => told(error));',
  'a promise in an argument': 'await settle({ promise: Promise.resolve([make()]) }).then(([value]) => show(value), (error) => told(error));',
  'a rejected promise in an argument': 'await settle({ promise: Promise.reject([make()]) }).then(() => 0, () => 0); show(1);',
  'a throw in a job': 'queueMicrotask(() => { throw make(); }); await null; show(1);',
  'an unhandled rejection': 'Promise.reject(make()); await null; show(1);',
  'the specifier of an import': 'await import(make()).then(() => 0, () => 0); show(1);',
  'the options of an import': 'await import("./nothing.js", make()).then(() => 0, () => 0); show(1);',
  'the options of structuredClone': 'attempt(() => { structuredClone(1, make()); }); show(1);',
  'a label': 'attempt(() => { console.count(make()); console.time(make()); console.timeEnd(make()); }); show(1);',
};
const ENDINGS = { result: 'export default make();', 'a call of the export': 'export default () => make();', 'an async export': 'export default async () => [make()];', thrown: 'throw make();', rejected: 'await Promise.reject(make());' };

/** Crossings that show or drop a value without cloning it, or that do not report failures. */
const QUIET = new Set(['other methods of the console', 'what a callback throws', 'a rejected promise in an argument', 'a throw in a job', 'an unhandled rejection', 'the specifier of an import', 'the options of an import', 'the options of structuredClone', 'a label', 'thrown', 'rejected']);
const runtime = new Runtime({ maxConcurrentRuns: 4 });
const intrinsics = JSON.stringify([Object.prototype, Array.prototype, Promise.prototype].map((object) => Reflect.ownKeys(object).map(String)));
const strays = [];
process.on('unhandledRejection', (reason) => strays.push(reason));
process.on('uncaughtException', (error) => strays.push(error));
test.after(() => runtime.close());

for (const [crossing, steps] of Object.entries({ ...CROSSINGS, ...ENDINGS })) {
  test(`hostile acts: ${crossing}`, { timeout: 120_000 }, async () => {
    const ending = crossing in ENDINGS;
    const wrong = [];
    const work = [
      ...Object.entries(CHANGES).map(([name, act]) => [name, act, oracle(act)]),
      ...Object.entries(ENDS).map(([name, [act, expected]]) => [name, act, expected]),
      ...Object.entries(BUFFERS).map(([name, act]) => [name, act, ANY('success', 'SerializationError')]),
    ];
    await each(work, async ([name, act, expected]) => {
      const got = await outcome(crossing, steps, act, ending);
      const why = judge(crossing, got, expected);
      if (why !== undefined) wrong.push(`${name}: ${why}`);
    });
    assert.deepEqual(wrong, []);
    assert.deepEqual(strays, []);
    assert.equal(JSON.stringify([Object.prototype, Array.prototype, Promise.prototype].map((object) => Reflect.ownKeys(object).map(String))), intrinsics);
  });
}

function OK(...lines) {
  return { text: lines.join('\n') };
}

/** Any of these, as a status or the name of an error; without any, the language decides. */
function ANY(...allowed) {
  return { allowed };
}

function oracle(act) {
  return { text: describe(structuredClone(new Function(`return ${act}`)())) };
}

function judge(crossing, { status, error, texts, leaks }, expected) {
  if (leaks !== undefined) return `a text of the host: ${leaks}`;
  if (!['success', 'error', 'memory', 'terminated'].includes(status)) return `status ${status}`;
  if (error?.name === 'InternalError') return JSON.stringify(error);
  const last = texts.at(-1);
  const errors = texts.flatMap((text) => /^!(\w+)/.exec(text)?.[1] ?? []).concat(status === 'error' ? error.name : []);
  if (typeof expected === 'string') {
    if (QUIET.has(crossing)) return undefined;
    const told = texts.find((text) => text.startsWith('!')) ?? (status === 'error' ? `!${error.name}: ${error.message}` : undefined);
    if (expected === 'refused' && crossing === 'log') return /"\[Proxy\]"$/.test(last) ? undefined : last;
    // A console never throws: the error replaces the getter's value.
    const shown = [expected, expected.split(': ').at(-1)].map((text) => `[Getter threw ${text}]`);
    if (crossing === 'log' && expected !== 'refused') return shown.some((text) => last?.includes(text)) ? undefined : `${last} instead of ${expected}`;
    if (expected === 'refused') return /^!SerializationError: .*a Proxy cannot be cloned$/.test(told ?? '') ? undefined : `${told} instead of a refusal`;
    // A thenable's own failure belongs to the code that awaits it; elsewhere `then` is read as any getter.
    if (expected === 'null') return /^!(Error: )?null/.test(told ?? '') ? undefined : `${told} instead of null`;
    return told === `!${expected}` ? undefined : `${told} instead of ${expected}`;
  }
  if (expected.allowed !== undefined) {
    const { allowed } = expected;
    if (['memory', 'terminated'].includes(status)) return allowed.length === 0 || allowed.includes(status) ? undefined : `${status} ${error.message}`;
    if (allowed.length === 0 || QUIET.has(crossing)) return undefined;
    const fits = errors.length === 0 ? allowed.includes('success') || crossing === 'log' : errors.every((name) => allowed.includes(name));
    return fits ? undefined : `${errors} instead of ${allowed}`;
  }
  if (QUIET.has(crossing)) return ['success', 'error'].includes(status) ? undefined : `${status} ${error.message}`;
  if (status !== 'success') return `${status} ${error.name}: ${error.message}`;
  return last === expected.text ? undefined : `${last}\ninstead of\n${expected.text}`;
}

async function outcome(crossing, steps, act, ending) {
  const texts = [];
  const show = (value) => void texts.push(describe(value));
  const source = `
    const make = () => (${act});
    let spent = 0;
    const spend = () => { spent += 1; if (spent > 100) throw new Error('spent'); };
    const told = (error) => tell(error?.name === undefined ? '!' + error : '!' + error.name + ': ' + error.message);
    const attempt = (f) => { try { f(); } catch (error) { told(error); } };
    ${steps}
    ${ending ? '' : 'export default 1;'}`;
  const run = runtime.runCode(source, {
    language: 'javascript',
    memoryLimitBytes: 12 << 20,
    globals: {
      show,
      tell: (text) => void texts.push(text),
      echo: (value) => value,
      fail: () => {
        throw new RangeError('host');
      },
      call: async (f, ...args) => f(...args),
      settle: async ({ promise }) => promise,
      terminate: () => run.terminate('by the act'),
      soon: () => void setTimeout(() => run.terminate('by the act'), 1),
    },
    report: crossing === 'report' ? show : () => {},
  });
  const { status, result, error, logs } = await run;
  if (ending && status === 'success') show(crossing === 'an async export' ? result[0] : result);
  if (crossing === 'log' && logs.length > 0) show(logs.at(-1).args[0]);
  const all = [error, logs.map(({ args }) => args), texts].map((part) => {
    try {
      return JSON.stringify(part) ?? '';
    } catch {
      return '';
    }
  });
  const leaks = all.find((text) => /node:|file:\/\/|\.mjs|\/tests\/|\/bindings-node\//.test(text));
  return { status, error, texts, leaks: leaks?.slice(0, 300) };
}

async function each(list, work) {
  const items = list[Symbol.iterator]();
  await Promise.all(
    Array.from({ length: 8 }, async () => {
      for (let item = items.next(); !item.done; item = items.next()) await work(item.value);
    }),
  );
}
