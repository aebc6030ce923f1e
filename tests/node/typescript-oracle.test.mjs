// Erased types beside TypeScript's own emit: programs without errors have the same outcome.
//
// In: parts of programs, in all combinations. TypeScript 5.9 transpiles each, which is the last version whose compiler
// is a library; isolane runs its output as JavaScript, and the program itself as TypeScript. Both must have one status
// and one result. A combination that TypeScript refuses for its grammar is left out. One combination in three is compared;
// with `ISOLANE_ORACLE=all`, as the campaign has it, every one.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';

import ts from 'typescript-5';

import { isolation, runCode } from '../isolation.mjs';

const CEILING_MS = 120_000;
const EVERY = process.env.ISOLANE_ORACLE === 'all' ? 1 : 3;
const skip = isolation === 'process' && 'where it runs does not change how it compiles';

const compilerOptions = {
  target: ts.ScriptTarget.ESNext,
  module: ts.ModuleKind.ESNext,
  newLine: ts.NewLineKind.LineFeed,
};

/** The output of TypeScript for a program; nothing if it is none. */
function transpiled(source) {
  const { outputText, diagnostics } = ts.transpileModule(source, { compilerOptions, reportDiagnostics: true });
  return diagnostics.length > 0 ? undefined : outputText;
}

/**
 * Whether TypeScript's checker refuses a program for its grammar. The types are not checked: there is no library.
 */
function isRefused(source) {
  const file = ts.createSourceFile('program.ts', source, ts.ScriptTarget.ESNext, true);
  const host = {
    getSourceFile: (name) => (name === 'program.ts' ? file : undefined),
    getDefaultLibFileName: () => '',
    getCurrentDirectory: () => '',
    getCanonicalFileName: (name) => name,
    useCaseSensitiveFileNames: () => true,
    getNewLine: () => '\n',
    fileExists: () => false,
    readFile: () => undefined,
    writeFile: () => {},
  };
  const options = { ...compilerOptions, noLib: true, noResolve: true };
  const diagnostics = ts.createProgram(['program.ts'], options, host).getSemanticDiagnostics(file);
  const isOfGrammar = (code) => (code >= 1000 && code < 2000) || code >= 18_000 || code === 2300;
  return diagnostics.some(({ code }) => isOfGrammar(code));
}

/** The outcome of a run, without times and places. Only a program with types can say that a name is one. */
async function outcome(source, language) {
  const { status, result, error } = await runCode(source, { language });
  return { status, result, error: error && `${error.name}: ${error.message}`.replace(' (it is a type)', '') };
}

function* combined(parts) {
  const [first, ...rest] = parts;
  if (first === undefined) return yield '';
  for (const one of first) for (const more of combined(rest)) yield one + more;
}

/** Compares every `EVERY`th combination. Returns how many were programs. */
async function compare(parts, shape) {
  let programs = 0;
  let number = 0;
  for (const text of combined(parts)) {
    number += 1;
    if (number % EVERY !== 0) continue;
    const source = shape(text);
    const expected = transpiled(source);
    if (expected === undefined) continue;
    const [ours, theirs] = await Promise.all([outcome(source, 'typescript'), outcome(expected, 'javascript')]);
    if (!isDeepStrictEqual(ours, theirs) && isRefused(source)) continue;
    programs += 1;
    assert.deepEqual(ours, theirs, `${source}\n--- TypeScript makes of it\n${expected}`);
  }
  return programs;
}

const programs = (name, least, parts, shape) =>
  test(name, { timeout: CEILING_MS, skip }, async () => {
    const count = await compare(parts, shape);
    // A sample may have fewer programs than its share.
    assert(count >= least / EVERY / 2, `${count} programs`);
  });

programs(
  'statements end where their types ended',
  1_000,
  [
    ['a = b', 'a = () => b', 'let z: T = b', 'a = class {}'],
    ['', ' as T', ' satisfies T', '!', ' as unknown as T // note'],
    ['\n', '\ntype V = T\n', '\ninterface V {}\n', '\ndeclare const v: T\n'],
    ['(c)', '[c].d', '`c`', '/c/g.test("c")', '+c', '++c', '!c', '<T>(c)', '<T>[c]', '<V,>(c: V) => c', 'c!', '', ';[c] as T'],
  ],
  (text) => `
    type T = any;
    const calls: number[] = [];
    const b = Object.assign((...all: T[]) => { calls.push(all.length); return [7]; }, { 1: { d: 8 } });
    let c: number = 1, g: T = 2, a: T;
    function run() {
      ${text}
      return typeof a === 'function' ? 'a function' : /=>|class/.test(a) ? 'the text of a function' : a;
    }
    let result: T;
    try { result = run(); } catch (error: unknown) { result = (error as Error).message.replace(' (it is a type)', ''); }
    export default [result ?? 'nothing', c, calls];`,
);

programs(
  'statements of one line end in their list',
  40,
  [
    ['if (a) ', 'if (!a) ', 'for (const i of [1, 2]) ', 'while (a-- > 0) ', 'if (a) while (a-- > 1) '],
    ['b++ as T', 'b++!', '<T>b++', '(b as number)++', 'b += (a satisfies T)', 'b = <T>a as T'],
    ['\n', '\nelse b = 9 as T\n', ';'],
  ],
  (text) => `type T = any; let a = 3, b: number = 4;\n${text}\n;export default [a, b];`,
);

programs(
  'members of classes stay apart',
  1_500,
  [
    ['', 'public ', 'static ', 'readonly ', 'protected override '],
    ['a', 'get', 'set', 'static', 'async', 'in', 'readonly', "['a']", '#a', '*a() {}', 'async a<V>(): V {}', 'get a(): T { return 1 }'],
    ['', ': T', '?: T', ' = 1', ': T = k as T', ' = <T>k'],
    ['\n[k] = 2', '\nc', '\n*c() {}', '\nc() {}', '\nprivate [k]: T', '\nin: T', ';[d: string]: T', ''],
  ],
  (text) => `
    type T = any; const k = 'k';
    class B { a: T; k: T }
    class A extends B {
      x = 1
      ${text}
    }
    const names = (o: object) => Reflect.ownKeys(o).filter((name) => name !== 'prototype').map(String);
    let result: T;
    try { result = names(new A()); } catch (error: unknown) { result = (error as Error).message.replace(' (it is a type)', ''); }
    export default [result, names(A), names(A.prototype)];`,
);

programs(
  'functions keep their parameters, arrows and results',
  1_000,
  [
    ['', 'async '],
    ['', '<V>', '<\nV,\n>', '<const V extends T> /* note */ ', '<V>/*\n*/'],
    ['()', '(a: T)', '(a?: T, ...b: T[])', '({ a }: T = { a: 1 } as T)', '(\na: T, // note\n)'],
    ['', ': T', '\n: T', ': {\n a: 1 } | T', ': (b: T) =>\n T'],
    [' => a!', ' => ({ a: 1 }) as T', ' => { return <T>a }', ' => <T>{ a }', ' => <T>[a]', ' => <V>(a: V): V => a'],
  ],
  (text) => `
    type T = any; var a: T = { a: 5 };
    const f =${text};
    let result: T;
    try { result = await f({ a: 2 }, 3); } catch (error: unknown) { result = (error as Error).message.replace(' (it is a type)', ''); }
    export default [typeof result === 'function' ? result(6) : result ?? 'nothing', f.length, f.name];`,
);

programs(
  'declared functions lose their types alone',
  200,
  [
    ['', 'async ', 'function*', 'overloaded'],
    ['', '<V>', '<V extends T = T>'],
    ['()', '(this: T, a: T)', '(this: T,)', '(a?: T, b: T = a as T)', '({ a }: { a?: T } = {}, [b]: T[] = [a!])'],
    ['', ': T', ': asserts a is T', ': a is T', ': this'],
  ],
  (text) => {
    const generator = text.startsWith('function*');
    const over = text.startsWith('overloaded');
    const asynchronous = text.startsWith('async ');
    const rest = text.replace(/^(async |function\*|overloaded)/, '');
    const signature = `${asynchronous ? 'async ' : ''}function${generator ? '*' : ''} f${rest}`;
    return `
      type T = any;
      ${over ? `function f(): T\nfunction f(a: T): T\n` : ''}${signature} { return arguments.length ${generator ? '; yield 1 as T' : ''} }
      const value: T = f.call({ b: 1 } as T, { a: 2 }, [3]);
      export default [${generator ? '[...value]' : 'await value'}, f.length];`;
  },
);

programs(
  'operators keep their operands',
  1_000,
  [
    ['a', '-a', 'a!', '(a as T)', '<T>a', 'a as T', 'o?.p!.q', 'f<T>(a)', 'new C<T>()', 'await a', '(o as T).p!', 'f<T>`a`'],
    [' + ', ' * ', ' ** ', ' < ', ' == ', ' && ', ' ?? ', ' in ', ' instanceof ', ', ', ' ? b! : '],
    ['a', 'o.p as T', '<T>o', 'C<T>', 'o.r!', '(<T>f)(1)', 'o?.p!.r!()', 'o.s?.<T>(1)!'],
  ],
  (text) => `
    type T = any; let a: T = 2, b: T = 3; class C<V> { v?: V; valueOf() { return 4 } }
    const o = { p: { q: 5, r: () => 6 } as T, r: 7 as T, s: null as T };
    function f<V>(v: V, ...rest: T[]): V { return v }
    let result: T;
    try { result = (${text}); } catch (error: unknown) { result = (error as Error).message.replace(' (it is a type)', ''); }
    export default [typeof result === 'function' ? result.name : /=>|function|class/.test(result) ? 'the text of a function' : result instanceof C ? Object.keys(result) : result ?? 'nothing', a, b];`,
);

programs(
  'assignments and loops reach their targets',
  50,
  [
    ['(a as T) = 1', 'a! = 2', '(<T>a) = 3', '(a as T)++', '--a!', '[a as T, (b as T)] = [4, 5]', '({ a: a as T, b: (b as T) = 6 } = { a: 7 } as T)', '(o as T).p = 8', 'o!.p! += 9', 'delete (o as T).p', 'for (a as T of [1, 2]) b += a!', 'for (o.p! in { q: 1 }) b = o.p', 'for (const [k, v] of Object.entries(o) as T) b += k + v!', 'for (let i: number = 0 as T; i! < 2; i!++) b++', 'label: for (;;) { break label }'],
    ['', ';', '\n', '\n[b] = [10] as T'],
  ],
  (text) => `type T = any; let a: T = 0, b: T = 0; const o: T = { p: 1 };\n${text}\n;export default [a, b, o];`,
);

programs(
  'imports and exports of types go away',
  100,
  [
    ["import type { A } from 'nowhere'", "import { A } from 'nowhere'", "import { type A } from 'nowhere'", "import type A from 'nowhere'", "import A, { type B } from 'nowhere'", "import * as A from 'nowhere'"],
    ['\n', ';', "\nexport type { A }\n", "\nexport type * from 'nowhere'\n", '\nexport interface B2 { a: A }\n', '\nexport declare const d: A\n'],
    ['(c as A)', '[c satisfies A]', 'let e: A | typeof c', 'export type D = A', 'export { c, type A as E }'],
  ],
  (text) => `const c = 1\n${text}\n;export default c;`,
);

programs(
  'enums have the members of TypeScript',
  300,
  [
    ['', 'const ', 'export '],
    ['A = 1', 'A = -5', 'A = "x"', 'A = ~"3"', 'A = +"123"', 'A = n', 'A = t as any', '"A" = 1 << 3', 'A = `y${t}`', 'A = -0'],
    ['', ', B = A', ', B = E.A', ", ['B'] = E['A']", ', B = `${A}z`', ', B = f(A as any)', ', B = <any>A', ', /* , */ B = 7, // {\n C', ', B = ((A) => A)(3)'],
    ['', '} enum E { D = A', '} namespace E { export type Z = 1; '],
  ],
  (text) => {
    const [, head, body] = /^(const |export )?([^]*)$/.exec(text);
    const rest = head === 'const ' ? body.replaceAll('} enum', '} const enum') : body;
    return `
      const n = 40, t = 't'; function f(v: unknown) { return [v].length }
      ${head ?? ''}enum E { ${head === 'export ' ? rest.replaceAll('} enum', '} export enum') : rest} }
      export default [Object.entries(E), Object.is(E.A, 0)];`;
  },
);

programs(
  'namespaces have the members of TypeScript',
  300,
  [
    ['export let a = 1', 'export var a: number = 1, unset: any', 'export const { a, b: [q] = [2] }: any = { a: 1 }', 'export const [a = 1, ...q] = [] as any[]', 'export function a() { return 3 }', 'export class a { static s = 4 }', 'export enum a { M }', 'export namespace a { export const s = 5 }', 'let a = 6', 'export import a = Math.PI', 'export async function a() { return 7 }'],
    ['\n', ';'],
    ['export const c = () => typeof a', '{ let a = 8; seen.push(a) }', 'seen.push({ a }.a as any)', 'for (const a of [9]) seen.push(a)', 'function inner(a: number) { return a } seen.push(inner(10))', 'export namespace N { export const d = typeof a }', 'class K { a = typeof a } seen.push(new K().a)'],
    ['', '} namespace N { seen.push(typeof a); export const e = a', '} namespace M { export import n = N; seen.push(typeof n.a)'],
  ],
  (text) => `
    const seen: any[] = []; var a: any = 'outer';
    namespace N { ${text} }
    const show = (value: any): any => typeof value === 'function' ? [value.name, Object.entries(value)] : value;
    export default [seen.map(show), Object.entries(N).map(([name, value]) => [name, show(value)]), a];`,
);

programs(
  'exported variables are written through their namespace',
  60,
  [
    ['a = 2', 'a += 2', 'a++', '--a', '[a] = [3]', '({ a } = { a: 4 })', '({ a = 5 } = {} as any)', '({ b: a = 6 } = {} as any)', '[...(a as any)] = [7]', 'for (a of [8, 9]);', 'for (a in { k: 1 });', '(a as any) = 10', 'a! = 11', 'f`${a}`', 'a ??= 12', 'delete ({ a }).a'],
    ['\n', ';'],
    ['seen.push(a)', 'seen.push({ a })', 'seen.push(N.a)', 'seen.push([...[a]], `${a}`)'],
  ],
  (text) => `
    const seen: any[] = []; const f = (...all: any[]) => seen.push(all);
    namespace N { export let a: any = 1; function run() { ${text} } run(); run() }
    export default [seen, N.a];`,
);

programs(
  'parameters become properties',
  100,
  [
    ['', ' extends B'],
    ['', 'a = 1; ', '#p = 2; ', 'static s = 3; ', "b = 'initial'; "],
    ['readonly b: any', 'private b = 4', 'public b?: any, protected readonly c = b', 'override b: any = 5, d = 6', 'public get: any, private async = 7'],
    ['', 'f(this); ', "'use strict'; f(1); "],
    ['', 'this.b ??= 8'],
  ],
  (text) => {
    const [, head, fields, parameters, first, last] =
      /^( extends B)?((?:a = 1; |#p = 2; |static s = 3; |b = 'initial'; )?)([^;]*?)((?:f\(this\); |'use strict'; f\(1\); )?)((?:this\.b \?\?= 8)?)$/.exec(text);
    const body = head ? `${first.replace('f(this)', 'f(0)')}super();` : first;
    return `
      const seen: any[] = []; const f = (value: any) => seen.push(typeof value === 'object' ? Object.entries(value) : value);
      class B { base = 9; constructor() { f(this) } }
      class A${head ?? ''} { ${fields}constructor(${parameters}) { ${body} f(this);\n${last} } }
      export default [Object.entries(new (A as any)()), Object.entries(new (A as any)(10, 11)), seen];`;
  },
);

programs(
  'aliases name what they stand for',
  60,
  [
    ['import a = N.x', 'import a = N.M.y', 'import a = N.T', 'import a = N.M', 'import a = N.Only', 'export import a = N.T', 'export import a = N.x', 'import M = N.M; import a = M.y'],
    ['\n(1)', ';', '\n[2]\n', '\n'],
    ['export default typeof N', 'let t: a; export default 1', 'export default [typeof a]', 'export { a as b }; export default 2'],
  ],
  (text) => `namespace N { export const x = 1; export type T = 2; export namespace M { export const y = 3 } export namespace Only { export type U = 4 } }
    ${text}`,
);

programs(
  'syntax that produces code produces the same code',
  40,
  [
    ['enum E { A, B = 5, C }', "enum E { A = 'x', B = 'y' }", 'const enum E { A = 1 << 2, B }', 'namespace E { export const A = 1; export function B() { return A } }', 'class E { static A = 1; constructor(readonly b: number, private c = 2) {} static B = new E(3) }'],
    ['\n', '\ntype F = typeof E\n', '\nconst g = E as any\n;'],
    ['export default [E.A, JSON.stringify(E.B), Object.keys(E)]', 'export default <any>E.A', 'export default (E as any).B?.b ?? 1'],
  ],
  (text) => text,
);
