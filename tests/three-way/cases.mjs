// One random case: a program, its inputs, and operations on its run.
//
// In: the seed and the number of the case. Out: `{ number, kind, source, language, modules, options, python }`, with
// options in tagged JSON as in the contract table. `python` is false where Python refuses a value, or changes one on
// its way through, by ruling.

import { PROGRAM_HOST, randomProgram } from './programs.mjs';
import { randomness } from './random.mjs';
import { asSource, freshNames, quoted } from './source.mjs';
import { randomText, randomValue, randomValues } from './values.mjs';

const KINDS = { passing: 26, building: 16, program: 34, nesting: 6, linking: 6, graph: 5, ending: 3, calling: 3, refused: 1 };

export function randomCase(seed, number) {
  const random = randomness(seed, number);
  const kind = random.weighted(KINDS);
  const language = random.chance(0.6) ? 'typescript' : 'javascript';
  const made = MAKERS[kind](random, language === 'typescript');
  const { source, options = {}, modules = {}, python = true } = made;
  if (random.chance(0.3)) options.filename ??= random.pick(['code.ts', 'lib/main.js', '/absolute.ts', 'a b.mjs', '語.ts']);
  return { number, kind, language, source, modules, options: { language, ...options }, python };
}

const MAKERS = { passing, building, program, nesting, linking, graph, ending, calling, refused };

/** The host functions of those names, as the value of an option. */
function host(names) {
  return Object.fromEntries(names.map((name) => [name, { $fn: name }]));
}

function profile(random, usual) {
  return random.chance(0.2) ? 'every' : usual;
}

/** Values enter by everything that carries values, and leave. */
function passing(random) {
  const chosen = profile(random, 'echoed');
  const count = random.between(1, 3);
  const values = randomValues(random, chosen, count);
  const names = random.list(count, (i) => `in${i}`);
  const options = { globals: host(['echo', 'args', 'later', 'call', 'failValue', 'fail']), report: true, imports: {} };
  const lines = [];
  // In this order, because a reference comes after its object: globals are read first.
  const inGlobals = random.below(count + 1);
  const specifier = random.pick(['data', '@scope/pkg', 'node:fs', 'a b']);
  names.forEach((name, i) => {
    if (i < inGlobals) options.globals[name] = values[i];
    else (options.imports[specifier] ??= {})[name] = values[i];
  });
  if (inGlobals < count) lines.push(`import { ${names.slice(inGlobals).join(', ')} } from ${quoted(specifier)};`);
  const args = random.chance(0.3) ? randomValues(random, chosen, random.between(1, 2)).map(renamed) : [];
  const carried = () => carry(random, random.pick([...names, `{ ${names.join(', ')} }`, `[${names.join(', ')}]`, ...(names.length > 1 ? [`new Map([['k', ${names[0]}]])`] : [])]), chosen);
  for (let left = random.below(4); left > 0; left -= 1) lines.push(`${carried()};`);
  if (args.length > 0) {
    options.execute = { args, ...(random.chance(0.3) ? { fn: 'main' } : {}) };
    const [before, after] = options.execute.fn === undefined ? ['export default ', ''] : ['', ' export { main };'];
    lines.push(`${before}async function main(...given) { report(given); return [given, ${random.chance(0.5) ? 'await later(given)' : names[0]}]; }${after}`);
  } else if (chosen === 'every' && random.chance(0.3)) {
    // Not for Python: there the text of an object that is no Error depends on its way through the run.
    lines.push(`throw ${names[0]};`);
  } else {
    lines.push(`export default ${carried()};`);
  }
  return { source: lines.join('\n'), options, python: chosen !== 'every' };
}

/** A value whose shared parts have unique names, because all values of a run are one message. */
function renamed(value) {
  return JSON.parse(JSON.stringify(value).replace(/"(\$id|\$ref)":"o/g, '"$1":"a'));
}

/** An expression that uses the value in some crossing. */
function carry(random, value, chosen) {
  const ways = [
    () => value,
    () => `report(${value})`,
    () => `console.${random.pick(['log', 'error'])}(${value}, ${value})`,
    () => `echo(${value})`,
    () => `args(${value}, ${value})`,
    () => `await later(${value})`,
    () => `await call((x) => x, ${value})`,
    () => `structuredClone(${value})`,
    () => `await call(async () => { throw new Error('inside'); }).catch((e) => [e.name, ${value}])`,
    () => `echo(echo(${value}))`,
  ];
  if (chosen === 'every') ways.push(() => `(() => { try { failValue(${value}); } catch (e) { return [e, e === ${value}]; } })()`);
  return random.pick(ways)();
}

/** Code builds values and hands them out. */
function building(random) {
  const chosen = profile(random, 'outgoing');
  const names = freshNames();
  const lines = random.chance(0.15) ? [random.pick(TAMPERING)] : [];
  const build = () => {
    const { before, expression } = asSource(randomValue(random, chosen), names);
    lines.push(...before);
    names.known.clear();
    return expression;
  };
  for (let left = random.below(3); left > 0; left -= 1) {
    const value = build();
    lines.push(`${random.pick(['report', 'console.warn', 'console.log', ...(chosen === 'every' ? ['echo'] : [])])}(${value});`);
  }
  const value = build();
  const more = [
    () => `(() => { const buffer = new ArrayBuffer(16); const view = new ${random.pick(['Uint16Array', 'DataView', 'Float64Array'])}(buffer, 8, 1); return { view, ${random.chance(0.5) ? 'buffer, ' : ''}again: view, bytes: new Uint8Array(buffer, 2, 3).fill(7) }; })()`,
    () => `(() => { let deep = ${random.between(0, 9)}; for (let i = 0; i < ${random.pick([10, 60, 1500])}; i++) deep = i % 3 ? [deep] : { deep }; return deep; })()`,
    () => `Object.defineProperty({ shown: 1, [Symbol('s')]: 2 }, 'hidden', { value: 3 })`,
    () => `({ get once() { return { at: 1 }; } })`,
    () => `({ get bad() { throw new ${random.pick(['TypeError', 'RangeError'])}('in a getter'); } })`,
    () => `[new Number(1), new String('s'), new Boolean(false), Object(5n)]`,
    () => `Object.assign(new (class extends Array {})(), [1, 2])`,
    () => `({ nested: { ${random.pick(['f() {}', 'p: Promise.resolve(1)', 's: Symbol("x")', 'c: new (class Pool {})()', 'w: new WeakMap()', 'g: (function* () {})()'])} } })`,
    () => `new Proxy({}, {})`,
    () => `import.meta`,
    () => `${quoted(random.pick(['x', 'é', '語', '😀', '\ud800']))}.repeat(${random.between(100, 70000)})`,
    () => `(() => { for (let i = 0; i < ${random.between(50, 400)}; i++) { report([i, 'x'.repeat(i)]); console.log(i, { i }); } return 'many'; })()`,
    () => `(() => { let sum = 0; for (let i = 0; i < ${random.between(50, 500)}; i++) sum += echo(i); return sum; })()`,
    () => `await (async () => { let sum = 0; for (let i = 0; i < ${random.between(2, 30)}; i++) sum += await later(i); return sum; })()`,
    () => `await Promise.all(Array.from({ length: ${random.between(2, 100)} }, (_, i) => later(i)))`,
    () => `Array.from({ length: ${random.between(100, 3000)} }, (_, i) => ({ i, s: String(i) }))`,
  ];
  const made = random.chance(0.3) ? random.pick(more)() : value;
  const ending = random.weighted({ value: 8, thrown: 1, rejected: 1, logged: 1, reported: 1 });
  const endings = {
    value: `export default ${made};`,
    thrown: `throw ${made};`,
    rejected: `export default Promise.reject(${made});`,
    logged: `console.info(${made});\nexport default 1;`,
    reported: `report(${made});\nexport default 1;`,
  };
  lines.push(endings[ending]);
  return { source: lines.join('\n'), options: { globals: host(['echo', 'later']), report: true }, python: chosen !== 'every' };
}

/** Changes that code may make to the language before a value is read out of it. */
const TAMPERING = [
  "Array.prototype[Symbol.iterator] = function* () { yield 'tampered'; };",
  "Object.prototype.toJSON = Object.prototype.inherited = () => 1;",
  "Map.prototype[Symbol.iterator] = Set.prototype[Symbol.iterator] = Map.prototype.forEach = () => { throw new Error('read'); };",
  "Error.prototype.name = 'Tampered';",
  "Date.prototype.getTime = Date.prototype.valueOf = Date.prototype.toString = () => 5;",
  "Object.keys = Object.entries = Reflect.ownKeys = () => ['x'];",
  "Object.defineProperty(Object.prototype, '1', { get() { return 'inherited'; }, configurable: true });",
  "Object.defineProperty(Object.prototype, 'code', { value: 9, configurable: true });",
  "Object.prototype.then = undefined; Array.prototype.toString = () => { throw new Error('text'); };",
  "Object.setPrototypeOf(Uint8Array.prototype, null); Object.setPrototypeOf(Map.prototype, Set.prototype);",
  "delete Error.prototype.message; delete globalThis.Error; delete globalThis.Object; delete globalThis.JSON;",
  "Object.defineProperty(Uint8Array.prototype, 'length', { get() { throw new Error('length'); } });",
  "RegExp.prototype.exec = String.prototype.replace = () => { throw new Error('text'); };",
  "class Mine extends Map { get size() { throw new Error('size'); } } report(new Mine([[1, 2]]));",
  "Object.freeze(Object.prototype); Object.freeze(Array.prototype);",
  "report((function () { return arguments; })(1, 2)); report(Object.freeze([1, [2]])); report(Object.create(null));",
];

/** Functions and promises inside values, crossing in both directions. */
function nesting(random) {
  const inner = { list: [{ $fn: 'echo' }, { $fn: 'makeAdder' }], p: { $promise: randomValue(random, 'same', 2) }, r: { $rejected: { $error: { class: 'TypeError', name: 'TypeError', message: randomText(random, false) } } } };
  const globals = { ...host(['echo', 'args', 'later', 'call', 'callTwice', 'keep', 'callKept', 'isSame', 'fnLater', 'makeAdder', 'settle', 'laterFail']), tools: { add: { $fn: 'add' }, inner } };
  const text = () => quoted(randomText(random, false));
  const value = () => asSource(randomValue(random, 'same', 1), freshNames()).expression.replace(/\bv\d+\b/g, 'null');
  const statements = [
    () => `report(tools.add(${random.below(9)}, ${random.below(9)}));`,
    () => 'report([tools.add.name, tools.add.length, typeof tools.add, Object.hasOwn(tools.add, "prototype")]);',
    () => 'try { new tools.add(1, 2); } catch (e) { report([e.name, e.message]); }',
    () => 'report(await tools.inner.p);',
    () => 'report(await tools.inner.r.catch((e) => [e.name, e.message, e instanceof TypeError]));',
    () => 'report([isSame(tools.inner.list[0]), isSame(tools.add), tools.inner.list[0] === echo]);',
    () => 'f = (x) => x; report([echo(f) === f, args(f, f)[0] === args(f)[0], typeof echo(f)]);',
    () => `report(await args(Promise.resolve(${value()}))[0]);`,
    () => `report(await echo({ p: later(${value()}) }).p);`,
    () => 'report(await fnLater().promise);',
    () => `report(await call((g) => g(${random.below(9)}, 22), tools.add));`,
    () => `report(await call((o) => o.g(20, 22), { g: tools.add }));`,
    () => `report(await call((x) => Promise.reject(new RangeError(${text()})), 1).catch((e) => [e.name, e.message]));`,
    () => `keep((x) => { report(x); return [x, x]; }); report(await callKept(${value()}));`,
    () => `report(tools.inner.list[1](${random.below(99)})(${random.below(99)}));`,
    () => `report(await callTwice((x) => (x === 1 ? later(x + 1) : x + 10), 1));`,
    () => 'report(await (await call(() => (x) => [x, 1]))?.(5));',
    () => 'console.log(tools.add, Promise.resolve(1), Symbol("s"), class Named {}, (x) => x);',
    () => 'try { report(tools); } catch (e) { report([e.name, e.message]); }',
    () => 'try { report([{ deep: Promise.resolve(1) }]); } catch (e) { report([e.name, e.message]); }',
    () => 'try { structuredClone(tools.add); } catch (e) { report([e.name, e.message]); }',
    () => 'try { tools.add = 1; report(typeof tools.add); } catch (e) { report([e.name, e.message]); }',
    () => 'try { tools = 1; } catch (e) { report([e.name, e.message]); }',
    () => 'try { args(new (class Own {})()); } catch (e) { report([e.name, e.message]); }',
    () => `await laterFail(${text()}).catch((e) => report(e.message));`,
    () => `Promise.reject(new Error(${text()})); await settle();`,
    () => `queueMicrotask(() => { throw new Error(${text()}); });`,
  ];
  const endings = ['export default tools.inner.p;', 'export default [tools.inner.p];', 'export default tools;', 'export default tools.inner.r;', 'export default { f };', 'export default await later(5);', 'export default call(async () => 7);', 'export default 1;'];
  // Handled at once: whether it has rejected by the end would depend on time.
  const lines = ['let f;', 'tools.inner.r.catch(() => {});', ...random.list(random.between(1, 6), () => random.pick(statements)()), random.pick(endings)];
  return { source: lines.join('\n'), options: { globals, report: true } };
}

/** Code computes. */
function program(random, typescript) {
  const { source, args } = randomProgram(random, typescript);
  const options = { globals: host(PROGRAM_HOST), report: true };
  if (args.length > 0) options.execute = { args };
  return { source, options };
}

/** Modules that fit together, or do not. */
function linking(random, typescript) {
  const end = typescript ? 'ts' : 'js';
  const modules = {
    [`./a.${end}`]: random.pick(['export const a = 1;', 'export const a = 1; export default class {}', "export { b as a } from './b.js';", "export * from './b.js'; export const a = 2;", "import { a as self } from './a.js'; export const a = typeof self;"]),
    './b.js': random.pick(["export const b = 'b'; export let count = 0; export const up = () => ++count;", "throw new Error('in b');", 'export const b = nowhere;', 'export function b() { return b.name; }', "export const b = await Promise.resolve(5);\n\n  export const x = ;", "import './a.js'; export var b = 1;"]),
    './lib/c.js': random.pick(["export { a } from '../a.js'; export const c = import.meta.url;", "import data from 'data'; export const c = data;", "export const c = 1; c = 2;", "export const c = await import('../b.js').then((m) => m, (e) => e.message);"]),
  };
  for (const key of Object.keys(modules)) if (random.chance(0.15)) delete modules[key];
  const lines = random.list(random.between(1, 4), () =>
    random.pick([
      `import { a } from './a.js';\nreport(a);`,
      `import * as b from './b.js';\nreport(b);`,
      `import { c as c${random.below(99)} } from './lib/c.js';`,
      `import { missing } from './b.js';\nmissing;`,
      `import nothing from './nothing.js';\nnothing;`,
      `import shop, { orders } from 'shop';\nreport([shop, orders]);`,
      `import { order } from 'shop';\nreport(order);`,
      `import { shop } from 'shops';\nshop;`,
      `import 'fs';`,
      `import x from 'https://example.org/x.js';\nx;`,
      `report(await import('./b.js').catch((e) => [e.name, e.message]));`,
      `report(await import(${quoted(randomText(random, false))}).catch((e) => [e.name, e.message]));`,
      `await import('./lib/c.js');`,
      `export { a } from './a.js';`,
      `export * from './b.js';`,
      `const s = ${randomSyntax(random)};\nreport(s);`,
      `import type { T } from './types.js';`,
      `let twice; let twice;`,
      `console.log('before');`,
    ]),
  );
  lines.push(random.pick(['export default 1;', 'export const named = 2;', 'export default (x) => x;', 'export { nobody };', '']));
  const options = { imports: { shop: { default: 'the shop', orders: [1, 2] }, data: { default: { d: 1 } } }, report: true };
  if (random.chance(0.3)) options.execute = { fn: random.pick(['named', 'default', 'other', 'a']) };
  return { source: lines.join('\n'), modules, options };
}

/** A graph of modules whose names and files are mostly right. */
function graph(random, typescript) {
  const count = random.between(2, 6);
  const keyOf = (n) => `${['./', './lib/', './lib/deep/'][n % 3]}m${n}.${typescript && n % 2 ? 'ts' : 'js'}`;
  const from = (folder, key) => {
    const up = '../'.repeat(folder);
    const path = key.slice(2).replace(/ts$/, (end) => (random.chance(0.5) ? 'js' : end));
    return random.chance(0.1) ? `${up || './'}x/../${path}` : `${up || './'}${path}`;
  };
  const importsOf = (n, folder) =>
    random.list(random.between(0, 3), (i) => {
      const other = random.below(count);
      const specifier = quoted(from(folder, random.chance(0.04) ? './nowhere.js' : keyOf(other)));
      const name = random.chance(0.04) ? 'misspelled' : `e${other}`;
      const as = `i${n}_${i}`;
      return random.pick([
        `import { ${name} as ${as} } from ${specifier}; log.push(() => typeof ${as});`,
        `import ${as} from ${specifier}; log.push(() => typeof ${as});`,
        `import * as ${as} from ${specifier}; log.push(() => Object.keys(${as}).join());`,
        `import ${specifier};`,
        `export { ${name} as r${n}_${i} } from ${specifier};`,
        `export * from ${specifier};`,
        `log.push((await import(${specifier}).catch((e${typescript ? ': any' : ''}) => ({ failed: e.message }))).failed ?? 'in');`,
        `import ${as}, { ${name} as also_${as} } from ${specifier}; log.push(() => [typeof ${as}, typeof also_${as}].join());`,
      ]);
    });
  const body = (n) => [
    `const log${typescript ? ': any[]' : ''} = [];`,
    ...importsOf(n, keyOf(n).split('/').length - 2),
    `export ${random.pick(['const', 'let', 'var'])} e${n}${typescript && n % 2 ? ': number' : ''} = ${n};`,
    ...(random.chance(0.5) ? [`export default ${random.pick(['class {}', 'function () {}', String(n), '() => import.meta.url'])};`] : []),
    ...(random.chance(0.08) ? [random.pick(['null.x;', 'throw new Error("at rest");', 'export const e0 = "again";', 'const log = 1;', 'await 0;'])] : []),
    `report([import.meta.url, ...log.map((x${typescript && n % 2 ? ': any' : ''}) => { try { return typeof x === 'function' ? x() : x; } catch (e) { return String(e); } })]);`,
  ];
  const strip = (lines, isTypeScript) => lines.map((line) => (isTypeScript ? line : line.replaceAll(': any[]', '').replaceAll(': any', '').replaceAll(': number', '')));
  const modules = Object.fromEntries(random.list(count, (n) => [keyOf(n), strip(body(n), keyOf(n).endsWith('ts')).join('\n')]));
  const entry = strip(body(99).map((line) => line.replace('e99', 'entry')), typescript);
  return { source: [...entry, 'export { entry as default };'].join('\n').replace(/export default [^;]*;\n/, ''), modules, options: { report: true } };
}

/** An initializer that may not parse. */
function randomSyntax(random) {
  return random.pick(['1', '1 +', '(', "'open", '`${', '{ a: 1', 'function () {', '/[/', '1__0', '08n', '"\\u{110000}"', 'yield', 'a => {', 'class { #a; #a; }', 'new.target', '#x in {}', 'await', 'enum', '@dec class {}', '\\u0061wait', '<T>x', '1 as const', 'null!', '語 = 1', '"😀" + ;']);
}

/** Runs that do not end by themselves. */
function ending(random) {
  const { before, expression } = asSource(randomValue(random, 'outgoing', 2), freshNames());
  const start = `${before.join('\n')}\nreport(${expression});\nconsole.log('so far');\n`;
  const globals = host(['terminate', 'later', 'never', 'echo', 'settle']);
  switch (random.below(6)) {
    case 0:
      return { source: `${start}const all = [];\ntry { for (;;) all.push(new Array(500).fill(all.length)); } catch { report('caught'); }`, options: { globals, report: true, memoryLimitBytes: random.between(6, 12) * 2 ** 20 } };
    case 1:
      return { source: `${start}let text = 'x';\nfor (;;) { text += text.toUpperCase() + text.length; }`, options: { globals, report: true, memoryLimitBytes: 8 * 2 ** 20 } };
    case 2:
      return { source: `${start}new Uint8Array(2 ** 30);\nexport default 1;`, options: { globals, report: true, memoryLimitBytes: 8 * 2 ** 20 } };
    case 3:
      return { source: `${start}function stop() { try { terminate(${random.chance(0.2) ? '' : quoted(randomText(random, false))}); } finally { report('after'); } }\nfor (let i = 0; ; i++) if (i === ${random.below(2000)}) stop();`, options: { globals, report: true } };
    case 4:
      return { source: `${start}await later(1);\nterminate(${quoted(randomText(random, false))});\nfor (;;);`, options: { globals, report: true } };
    default:
      return { source: `${start}const f = (n) => [n, ...f(n + 1)];\nexport default f(0);`, options: { globals, report: true } };
  }
}

/** All uses of `execute`. */
function calling(random) {
  const source = random.pick([
    'export default function (...given) { return [this === undefined, given.length, given]; }',
    'export const main = async (a, b = 5) => ({ a, b });\nexport default main;',
    'export class main { constructor() { report(1); } }\nexport default new main().constructor.name;',
    'export const main = 5;\nexport default null;',
    'export default { then(resolve) { resolve({ then: (again) => again("settled") }); } };',
    'export default { then: 5 };',
    'export default { get then() { throw new RangeError("a getter"); } };',
    'export function* main() { yield 1; }\nexport { main as default };',
    'const secret = 1;\nexport { secret as "quoted name", secret as default };',
  ]);
  const execute = {};
  if (random.chance(0.5)) execute.fn = random.pick(['main', 'default', 'quoted name', 'nothing', 'toString']);
  if (random.chance(0.6)) execute.args = randomValues(random, 'echoed', random.below(3));
  return { source, options: { execute, report: true } };
}

/** Options that are refused before anything starts. Each language has its own words for it. */
function refused(random) {
  const options = random.pick([
    { globals: { [random.pick(['let', 'a b', '1', 'undefined', 'NaN', 'await', 'globalThis', ''])]: 1 } },
    { globals: { db: { $entries: [['pool', { $instance: 'Pool' }]] } } },
    { globals: { list: [1, { $symbol: 's' }] } },
    { imports: { [random.pick(['./relative', '/absolute', 'scheme:x', ''])]: { a: 1 } } },
    { memoryLimitBytes: random.pick([0, -1, 1.5, { $number: 'NaN' }, 2 ** 53]) },
    { execute: { fn: '' } },
    { filename: '' },
    { modules: { [random.pick(['bare', '../up.js', './a/../../b.js', '/x.js'])]: '1' } },
    { languages: 'typescript' },
    { execute: { arguments: [] } },
  ]);
  return { source: 'export default 1;', options, python: false };
}
