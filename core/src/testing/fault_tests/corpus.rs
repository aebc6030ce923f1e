//! Programs that together use every family of builtins and every way across the boundary.
//!
//! Each runs as TypeScript with the host functions of `stage.rs` as globals, has the same result every time, and makes
//! less than a few thousand requests for memory, because each request is refused once.

/// A program of the corpus.
pub(super) struct Program {
    pub(super) name: &'static str,
    pub(super) source: &'static str,
    pub(super) modules: &'static [(&'static str, &'static str)],
}

const fn entry(name: &'static str, source: &'static str) -> Program {
    Program { name, source, modules: &[] }
}

const fn graph(
    name: &'static str,
    source: &'static str,
    modules: &'static [(&'static str, &'static str)],
) -> Program {
    Program { name, source, modules }
}

/// Describes every builtin that code can reach, and the behavior of some of them.
pub(super) const SELF_CHECK: Program = entry(
    "the self-check",
    "const own = Reflect.ownKeys, at = Reflect.getOwnPropertyDescriptor, seen = new Map<any, number>(), lines: string[] = [];
    const name = (v: any): string => {
        if (v === null || (typeof v !== 'object' && typeof v !== 'function')) return typeof v === 'symbol' ? v.toString() : `${typeof v} ${String(v)}`;
        if (!seen.has(v)) { seen.set(v, seen.size); queue.push(v) } return `#${seen.get(v)}` };
    const queue: any[] = [], roots = [globalThis, console, report, function* () {}, async () => {}, async function* () {}, [][Symbol.iterator](), ''[Symbol.iterator](),
        new Map().entries(), new Set().values(), 'a'.matchAll(/a/g), [].values().map((x) => x), Iterator.from({ next() { return { done: true } } } as any), (function () { return arguments })()];
    roots.forEach(name);
    for (let v; (v = queue.shift()); ) { const props = own(v).map((key) => { const d = at(v, key)!; const flags = [d.writable, d.enumerable, d.configurable].map(Number).join('');
        return `${String(key)}:${flags}:${'value' in d ? name(d.value) : name(d.get) + '/' + name(d.set)}` });
        lines.push(`${seen.get(v)} ${typeof v} ${Object.prototype.toString.call(v)} ^${name(Reflect.getPrototypeOf(v))} ${Object.isExtensible(v)} ${props.join(' ')}`) }
    const does = [[3, 1, 2].sort().map((x) => x * 2), /(?<a>b)+/.exec('abb'), JSON.stringify({ a: [1, { b: 2 }] }), 2n ** 70n, new Date(0).toISOString(), `${[1, 2]}`,
        structuredClone({ m: new Map([[1, new Set([2])]]) }), new Uint8Array([1, 2]).map((x) => x + 1), [...'ä€😀'].length, Object.keys(globalThis), echo({ a: { b: [] } })];
    export default { lines, does }",
);

pub(super) const CORPUS: &[Program] = &[
    entry("nothing", "export default undefined"),
    entry(
        "objects",
        "const o = { a: 1, get b() { return 2 }, ['c' + 1]: 3, ...{ d: 4 } };
        Object.defineProperty(o, 'hidden', { value: 5 }); Object.freeze(o);
        export default [Object.entries(o), Object.groupBy([1, 2, 3], (n) => n % 2 ? 'odd' : 'even'),
            Object.fromEntries([['x', 1]]), Object.getOwnPropertyDescriptors(o).b.get.name,
            Object.assign({}, { z: 1 }, null), Object.isFrozen(o), Object.keys('ab')]",
    ),
    entry(
        "arrays",
        "const a = Array.from({ length: 20 }, (_, i) => (i * 7) % 11);
        export default [a.map((x) => x + 1), a.filter((x) => x > 5), a.flatMap((x) => [x, [x]]),
            a.toSorted(), a.toSpliced(1, 2, 3), a.with(0, 9), [...a].reverse(), a.reduce((x, y) => x + y),
            [...a].sort((x, y) => y - x), a.slice(2).concat([[1]], 2), [...a].splice(3, 4), a.lastIndexOf(3),
            [...a].fill(1, 3), [...a].copyWithin(0, 5), a.join('-'), a.findLast((x) => x < 3), a.entries().next(),
            [1, [2, [3, [4]]]].flat(Infinity), Array.of(1, 2), [3, , 1], a.includes(4)]",
    ),
    entry(
        "strings",
        "const s = 'The quick brown fox jümps';
        export default [s.split(' '), s.toUpperCase(), s.replaceAll('o', (m) => m + m), s.padStart(40, 'ab'),
            s.normalize('NFD').length, [...s].length, s.at(-1), s.codePointAt(3), 'abc'.repeat(20), s.slice(3, -2),
            s.localeCompare('z'), s.search(/q/), String.raw`a${1}\\n`, s.substring(2, 8).trim(), s.indexOf('fox'),
            s.toWellFormed(), s.concat('!', s), 'a-b-c'.split('-', 2), '\\ud800x', s.matchAll(/o/g).toArray().length]",
    ),
    entry(
        "ropes and long strings",
        "let s = ''; for (let i = 0; i < 300; i++) s += i + ','; let t = 'ab'; for (let i = 0; i < 8; i++) t += t;
        export default [s.length, s.slice(-10), t.length, (s + t).charCodeAt(700), `${s}${t}`.lastIndexOf('b')]",
    ),
    entry(
        "numbers and math",
        "export default [(255).toString(36), (0.1).toFixed(20), (1e21).toPrecision(5), (12345.678).toExponential(3),
            parseFloat('3.14abc'), parseInt('ff', 16), Number('0b101'), Math.hypot(3, 4), Math.max(...[1, 5, 2]),
            Math.sumPrecise?.([1, 2]), Number.MAX_SAFE_INTEGER, -0, NaN, (25).toString(2), Math.fround(5.5)]",
    ),
    entry(
        "bigints",
        "const a = 3n ** 200n, b = -(2n ** 130n) + 7n;
        export default [a, b, a * b, a / 12345678901234567890n, a % b, a << 70n, a >> 3n, a & b, a | b, a ^ b, ~a,
            BigInt.asUintN(64, b), BigInt.asIntN(8, 255n), a.toString(), a.toString(36), BigInt('0xff'), a > b, -a]",
    ),
    entry(
        "symbols",
        "const s = Symbol('s'), o = { [s]: 1, [Symbol.toPrimitive]: (h: string) => h + '!', [Symbol.toStringTag]: 'T' };
        export default [s.toString(), s.description, Symbol.for('k') === Symbol.for('k'), `${o}`,
            Object.prototype.toString.call(o), Object.getOwnPropertySymbols(o).length, Symbol.keyFor(Symbol.for('z'))]",
    ),
    entry(
        "regular expressions",
        "const re = /(?<year>\\d{4})-(?<month>\\d\\d)/dgu;
        export default ['2024-05 2025-06'.replace(re, '$<month>/$<year>'), [...'2024-05 2025-06'.matchAll(re)],
            /a(?=b)|(?<!x)c/i.exec('xcabC'), 'aXbX'.split(/x/i), new RegExp('[a-z]+', 'v').test('q'), /\\p{L}+/u.exec('äöü'),
            RegExp.escape?.('a.b'), /(a+)+b/.test('aaaaaaaab'), 'x'.match(/(y)?x/), /^.{2}$/s.test('a\\n'), re.flags]",
    ),
    entry(
        "json",
        "const o = { a: [1, 'two', null, { b: true }], c: 'é\\u2028', d: { toJSON: () => 'J' }, u: undefined };
        export default [JSON.stringify(o), JSON.stringify(o, null, 2), JSON.stringify(o, ['a']),
            JSON.stringify(o, (k, v) => typeof v === 'number' ? v + 1 : v), JSON.parse(JSON.stringify(o)),
            JSON.parse('[1,{\"x\":[2]}]', (k, v) => Array.isArray(v) ? v.length : v)]",
    ),
    entry(
        "json that is none",
        "const texts = ['{', '[1,', '\"x', 'nul', '[\\n\\n@]']; const found = [];
        for (const text of texts) try { JSON.parse(text) } catch (e) { found.push(e instanceof SyntaxError) }
        export default found",
    ),
    entry(
        "dates",
        "const d = new Date(Date.UTC(2024, 1, 29, 12, 30, 15, 250));
        export default [d, d.toISOString(), d.toJSON(), d.toUTCString(), Date.parse('2020-01-01T00:00:00Z'),
            new Date(NaN), new Date(d.getTime() + 864e5).getUTCDate(), d[Symbol.toPrimitive]('number'), d.setUTCMonth(5)]",
    ),
    entry(
        "maps and sets",
        "const m = new Map<any, any>([[1, 'a'], ['1', 'b'], [{}, 3]]), s = new Set([1, 2, 3, 'x', m]);
        m.delete(1); m.set(NaN, 1); for (let i = 0; i < 40; i++) m.set('k' + i, { i });
        export default [m, s, Map.groupBy([1, 2, 3], (n) => n > 1), s.union(new Set([9])), [...s.keys()].length,
            s.intersection(new Set([1])), s.difference(new Set([1])), s.isSubsetOf(s), [...m.entries()].length]",
    ),
    entry(
        "weak things",
        "const k = {}, wm = new WeakMap([[k, 1]]), ws = new WeakSet([k]), wr = new WeakRef(k);
        const reg = new FinalizationRegistry(() => {}); reg.register({}, 1); reg.register(k, 2, k); reg.unregister(k);
        for (let i = 0; i < 30; i++) { const o = { i }; wm.set(o, o); ws.add(o); new WeakRef(o) }
        export default [wm.get(k), ws.has(k), wr.deref() === k, wm.delete(k)]",
    ),
    entry(
        "proxies and reflect",
        "const seen: string[] = []; const p: any = new Proxy(function f() {}, new Proxy({}, { get: (_, trap: string) => {
            seen.push(trap); return undefined } }));
        p.x = 1; p.x; 'x' in p; delete p.x; Object.keys(p); p(); new p(); Object.isExtensible(p); Object.getPrototypeOf(p);
        const { proxy, revoke } = Proxy.revocable({}, {}); revoke(); let dead = ''; try { (proxy as any).x } catch (e) { dead = 'dead' }
        export default [seen, dead, Reflect.ownKeys({ b: 1, a: 2 }), Reflect.apply(Math.max, null, [1, 3]),
            Reflect.construct(Array, [3]).length]",
    ),
    entry(
        "functions and closures",
        "function outer(a: number, b = a + 1, ...rest: number[]) { let n = 0; return () => [a, b, ++n, ...rest, arguments.length] }
        const bound = outer.bind(null, 1, 2); const f = bound(3, 4); f();
        const curry = (f: any, ...xs: any[]): any => xs.length >= 3 ? f(...xs) : (...ys: any[]) => curry(f, ...xs, ...ys);
        export default [f(), bound.name, bound.length, curry((a: any, b: any, c: any) => a + b + c)(1)(2)(3),
            (function () { return [...arguments] }).apply(null, [1, 2]), outer.toString().length > 10]",
    ),
    entry(
        "deep recursion",
        "const f = (n: number): number => n ? 1 + f(n - 1) : 0; let caught = '';
        try { (function g(): any { return [g()] })() } catch (e) { caught = (e as Error).name }
        export default [f(500), caught]",
    ),
    entry(
        "classes",
        "class A { #p = 1; static count = 0; static #secret = 's'; static { A.count++ }
            get p() { return this.#p } set p(v) { this.#p = v } #m() { return this.#p * 2 } m() { return this.#m() }
            static s() { return A.#secret } static has(o: any) { return #p in o } *[Symbol.iterator]() { yield this.#p } }
        class B extends A { constructor(public x = 5) { super(); this.p += 1 } m() { return super.m() + 1 } }
        const C = class extends Array { top() { return this.at(-1) } }; const c = C.from([1, 2, 3]) as any;
        export default [new B().m(), [...new B()], A.s(), A.has(new B()), A.count, c.top(), new (class { [`k${1}`] = 1 })().k1, new B().x]",
    ),
    entry(
        "generators",
        "function* g(n: number): any { try { const got = yield n; yield* [got, ...inner()]; return 'r' } finally { yield 'f' } }
        function* inner() { yield 1; yield 2 }
        const it = g(5); const seen = [it.next(), it.next('got'), it.next(), it.return('early'), it.next()];
        const t = g(1); t.next(); let thrown; try { t.throw(new Error('x')); t.next() } catch (e) { thrown = (e as Error).message }
        export default [seen, thrown, [...inner()], Array.from(inner(), (x) => x * 2)]",
    ),
    entry(
        "iterator helpers",
        "class Twos { n = 0; next() { return { done: this.n >= 10, value: this.n += 2 } } return() { return {} } }
        export default [Iterator.from(new Twos() as any).map((x) => x + 1).filter((x) => x % 3).take(3).toArray(),
            [1, 2, 3].values().flatMap((x) => [x, x]).drop(1).reduce((a, b) => a + b), [1, 2].values().some((x) => x > 1),
            new Set([1]).values().every((x) => x > 5), [5].values().find((x) => x === 5), Iterator.concat?.([1], [2]).toArray()]",
    ),
    entry(
        "async functions",
        "const tick = (n: number) => new Promise<number>((r) => queueMicrotask(() => r(n)));
        async function f(n: number): Promise<number> { try { await tick(n); if (n > 3) throw new TypeError('big'); return n } finally { await null } }
        const seen = []; for (const n of [1, 2, 5]) try { seen.push(await f(n)) } catch (e) { seen.push((e as Error).name) }
        export default seen",
    ),
    entry(
        "promises",
        "const p = Promise.withResolvers<number>(); p.resolve(1);
        export default await Promise.all([Promise.all([1, p.promise, Promise.resolve(3)]), Promise.allSettled([p.promise, Promise.reject(2)]),
            Promise.race([new Promise(() => {}), 4]), Promise.any([Promise.reject(1), 5]), Promise.try(() => 6),
            Promise.any([Promise.reject(1)]).catch((e) => e.errors), Promise.reject(new Error('r')).catch((e) => e.message).finally(() => 0),
            { then: (r: any) => r(7) }])",
    ),
    entry(
        "promises without timers",
        "let chain: Promise<any> = Promise.resolve(0); for (let i = 0; i < 30; i++) chain = chain.then((n) => n + i);
        class P extends Promise<any> {} const sub = P.resolve(1).then((x) => x + 1);
        export default [await chain, await sub, sub instanceof P, await Promise.all(Array.from({ length: 20 }, async (_, i) => i))]",
    ),
    entry(
        "async generators",
        "async function* g() { try { yield 1; yield Promise.resolve(2); yield* [3, Promise.resolve(4)]; await null } finally { await 0 } }
        const seen = []; for await (const x of g()) seen.push(x); for await (const x of [Promise.resolve(9)]) seen.push(x);
        const it = g(); const all = await Promise.all([it.next(), it.next(), it.return(7 as any), it.next()]);
        for await (const x of g()) if (x === 2) break;
        export default [seen, all, await Array.fromAsync(g())]",
    ),
    entry(
        "typed arrays",
        "const buffer = new ArrayBuffer(64, { maxByteLength: 256 }), u8 = new Uint8Array(buffer), f = new Float64Array([1.5, 2.5]);
        u8.set([1, 2, 3], 5); buffer.resize(128); const moved = new ArrayBuffer(8).transfer(16);
        export default [u8.subarray(4, 9), f.map((x) => x * 2), Int16Array.from([1, -1]), new Uint8ClampedArray([300]), moved.byteLength,
            new BigInt64Array([5n]), [...f.entries()], u8.length, new Float32Array(3).fill(0.5), f.toSorted((a, b) => b - a),
            new Uint16Array(f), u8.slice(5, 8).join(), Uint8Array.of(9, 8).toReversed(), new Float16Array([1]), u8.indexOf(3)]",
    ),
    entry(
        "data views",
        "const v = new DataView(new ArrayBuffer(32), 4, 20); v.setInt16(0, -5); v.setFloat64(2, Math.PI, true); v.setBigUint64(10, 2n ** 60n);
        export default [v, v.getInt16(0), v.getFloat64(2, true), v.getBigUint64(10), v.byteOffset, v.buffer]",
    ),
    entry(
        "larger buffers",
        "const a = new Uint8Array(100_000).fill(7), b = a.slice(50_000); const c = new ArrayBuffer(70_000);
        export default [a.reduce((x, y) => x + y), b.length, c.slice(1).byteLength, structuredClone(a.subarray(0, 10))]",
    ),
    entry(
        "uris and escapes",
        "export default [encodeURIComponent('ä b&c/€'), decodeURIComponent('%C3%A4%20'), encodeURI('http://x/ä?q=1'), escape('ü€'), unescape('%u20AC'),
            (() => { try { decodeURI('%') } catch (e) { return (e as Error).name } })()]",
    ),
    entry(
        "errors",
        "class Mine extends RangeError { constructor(m: string) { super(m, { cause: new Error('c') }); this.name = 'Mine' } }
        function thrower(n: number): any { if (!n) throw new Mine('deep'); return thrower(n - 1) }
        let found; try { thrower(3) } catch (e) { found = e } const lines = String((found as Error).stack).split('\\n').length;
        export default [found, lines, new AggregateError([1, new Error('in')], 'm').errors, Error.isError?.(found), `${found}`,
            new SuppressedError(1, 2, 's').message, (found as any).cause.message]",
    ),
    entry("a thrown error", "function f() { throw new TypeError('thrown ' + [1, 2]) } class X { m() { f() } } new X().m()"),
    entry("a thrown object", "throw { code: 5, list: [1, 2, 3], when: new Date(0), nested: { f() {} } }"),
    entry("a thrown string", "await null; throw 'plain ' + 'text'"),
    entry("a rejected export", "export default (async () => { await null; throw Object.assign(new Error('late'), { code: 'E1' }) })()"),
    entry("an error of the engine", "const o: any = null; export default o.x.y"),
    entry("a missing export", "export const one = 1, two = 2; export function three() {}\nconst four = 4; export { four as 'a b' }"),
    entry("an export that cannot be cloned", "export default { deep: [{ f() {} }] }"),
    entry(
        "unhandled rejections",
        "Promise.reject(new Error('never handled')); Promise.reject({ odd: [1] }); queueMicrotask(() => { throw new RangeError('bare') });
        const late = Promise.reject(1); await null; late.catch(() => {}); export default 'done'",
    ),
    entry(
        "structured clones",
        "const o: any = { a: [1, { b: new Map([[1, new Set([2])]]) }], d: new Date(5), r: /x/gi, e: new RangeError('e'), big: 10n ** 30n }; o.self = o;
        let refused = ''; try { structuredClone({ f() {} }) } catch (e) { refused = (e as Error).message }
        const copy = structuredClone(o); export default [copy.self === copy, copy.e.name, copy, refused, structuredClone(new Uint16Array([1, 2]).buffer)]",
    ),
    entry(
        "console",
        "console.log('text', 1, { a: [1] }, new Map([[1, 2]]), () => 1, Symbol('s'), Promise.resolve(), new Proxy({}, {}), new (class Q {})());
        console.info(); console.warn(null, undefined); console.error(new Error('logged')); console.debug(10n); console.table([{ a: 1 }]);
        console.assert(false, 'assertion', 1); console.assert(0); console.count(); console.count('x'); console.countReset('x'); console.countReset('y');
        console.group('g'); console.groupEnd(); console.time('t'); console.timeLog('none'); console.trace('tr'); console.dir({ d: 1 });
        export default 'logged'",
    ),
    entry(
        "reports",
        "report({ step: 1, list: [1, 2, 3] }); report('text'); report(new Uint8Array([1, 2])); let refused = '';
        try { report(() => 1) } catch (e) { refused = (e as Error).message } try { report({ p: Promise.resolve() }) } catch (e) { refused += (e as Error).message }
        export default refused",
    ),
    entry(
        "host functions, synchronous",
        "const same = { x: 1 }; const [a, b] = echo(same, same) as any; let caught;
        try { fail('no') } catch (e) { caught = [(e as Error).name, (e as Error).message, e instanceof TypeError, (e as any).code] }
        export default [a === b, caught, echo(1, 'two', [3]), echo.name, echo.length, typeof echo]",
    ),
    entry(
        "host functions that are started",
        "const both = await Promise.all([start(1), start({ two: [2] })]); start('nobody waits'); let refused;
        try { start(Symbol()) } catch (e) { refused = (e as Error).name } export default [both, refused, start.length, echo(start)]",
    ),
    entry(
        "host functions, asynchronous",
        "const both = await Promise.all([later(1), later({ two: [2] })]); let caught;
        try { await failLater('no') } catch (e) { caught = (e as Error).message } export default [both, caught]",
    ),
    entry(
        "host values of every kind",
        "const v = values() as any; export default [v, Object.keys(v), v.map instanceof Map, v.error instanceof RangeError, v.bytes.length, v.shared[0] === v.shared[1]]",
    ),
    entry(
        "callbacks",
        "const log: any[] = []; const got = await callback((...args: any[]) => { log.push(args); return { seen: args.length } });
        let failed; try { await callback(() => { throw new RangeError('from the callback') }) } catch (e) { failed = (e as Error).message }
        const late = await callback(async (x: any) => { await null; return [x] }); export default [got, log, failed, late]",
    ),
    entry(
        "callbacks that call the host",
        "export default await callback(async (x: any) => { const [y] = echo(x) as any; return [y, await later(y), await callback(() => 'inner')] })",
    ),
    entry(
        "promises that cross",
        "const inside = new Promise((r) => queueMicrotask(() => r({ deep: [1] }))); const bad = (async () => { throw new Error('bad') })();
        let caught; try { await settled(bad) } catch (e) { caught = (e as Error).message } export default [await settled(inside), caught]",
    ),
    entry(
        "getters at the crossing",
        "const o = { get a() { return echo('in a getter') }, b: { get c() { return { d: 1 } } } };
        let caught; try { echo({ get x(): any { throw new Error('getter') } }) } catch (e) { caught = (e as Error).message } export default [echo(o), caught]",
    ),
    entry(
        "functions given back",
        "const f = () => 1; const [g, h] = echo(f, later) as any; export default [f === g, h === later, typeof h]",
    ),
    entry(
        "wide and deep values",
        "let deep: any = null; for (let i = 0; i < 150; i++) deep = i % 2 ? [deep] : { deep };
        const wide: any = {}; for (let i = 0; i < 120; i++) wide['key' + i] = i; const [back] = echo([deep, wide]) as any;
        export default [JSON.stringify(back).length, Object.keys(wide).length, { deep, wide, holes: [, 1, , 2], sparse: Object.assign([], { 5000: 1 }) }]",
    ),
    entry(
        "values out of every kind",
        "const shared = { s: 1 }, loop: any = { shared }; loop.loop = loop; const bytes = new Uint8Array([1, 2, 3, 4]);
        export default { loop, shared, bytes, view: new DataView(bytes.buffer, 1, 2), half: bytes.subarray(2), text: 'ü\\ud800', minus: -0,
            no: undefined, nil: null, nan: NaN, inf: -Infinity, big: -(2n ** 70n), date: new Date(1), bad: new Date(NaN), re: /a\\/b/dgimsuy,
            map: new Map<any, any>([[shared, [loop]]]), set: new Set(['a', shared]), err: Object.assign(new EvalError('ee'), { code: 4 }),
            boxed: [Object(1), Object('s'), Object(true), Object(1n)], null: Object.create(null), args: (function (..._: any[]) { return arguments })(1, 2) }",
    ),
    entry(
        "an exported function",
        "export default async function (...args: unknown[]) { return [args.length, await later('x'), this === undefined] }",
    ),
    entry(
        "a thenable export",
        "export default { then(resolve: (x: any) => void) { queueMicrotask(() => resolve({ then: (r: any) => r('twice') })) } }",
    ),
    entry(
        "destructuring and control",
        "const { a = 1, b: { c: [, d] = [], ...e } = {} as any, ...rest } = { b: { c: [1, 2], x: 1 }, y: 2 } as any; let n = 0;
        outer: for (let i = 0; ; i++) { for (const k in { p: 1, q: 2 }) { if (i > 3) break outer; if (k === 'q') continue outer; n++ } }
        switch (n) { case 4: n += 10; default: n++ } do { n-- } while (n > 12); a ||= 5; var v = (1, 2) ?? 3;
        const tag = (s: TemplateStringsArray, ...x: any[]) => s.raw.join('|') + x.join(); export default [a, d, e, rest, n, v, tag`a${1}b${2}\\n`, a?.b?.[0]?.(), 2 ** 3]"
    ),
    entry(
        "using",
        "const log: string[] = []; const res = (n: string) => ({ [Symbol.dispose]() { log.push('d' + n) }, async [Symbol.asyncDispose]() { await null; log.push('a' + n) } });
        { using a = res('1'); using b = res('2'); log.push('body') } { await using c = res('3') } let both;
        try { using x = { [Symbol.dispose]() { throw new Error('second') } }; throw new Error('first') } catch (e) { both = (e as any).constructor.name }
        const stack = new DisposableStack(); stack.use(res('4')); stack.defer(() => log.push('deferred')); stack.dispose();
        const later_ = new AsyncDisposableStack(); later_.use(res('5')); await later_.disposeAsync(); export default [log, both]",
    ),
    entry(
        "typescript",
        "enum Color { Red, Green = 'g', Blue = 1 << 2 } const enum K { A = 1 } namespace Space { export const x = 1; export namespace In { export function f() { return x } } }
        interface I { a?: number } type T<X> = X extends string ? 1 : 2; abstract class P { constructor(private readonly q: number, protected r = 2) {} get sum() { return this.q + this.r } }
        class Q extends P implements I { a = <number>1; override get sum() { return super.sum + 1 } } import Alias = Space.In; function over(x: string): void; function over(x: any) { return x! }
        export default [Color.Red, Color[0], Color.Blue, K.A, Alias.f(), new Q(1).sum, over(1) satisfies unknown, ({} as T<string>)]",
    ),
    graph(
        "a graph with a cycle",
        "import a, { b as c, list } from './a.ts'; import * as ns from './b.js'; import { echo as host } from 'bridge';
        export * from './b.js'; export { a as renamed }; export default [a, c(), list, Object.keys(ns), ns.fromA(), host(1), import.meta.url]",
        &[
            ("./a.ts", "import { fromA } from './b.js'; export default 'A' as string; export function b() { return fromA() } export let list: number[] = [1]; list.push(2); export const meta = import.meta"),
            ("./b.js", "import a from './a.ts'; export function fromA() { return a } export const [x, y] = [1, 2]; export class K {}"),
        ],
    ),
    graph(
        "dynamic imports",
        "const m = await import('./lazy.ts'); const [again, bridge] = await Promise.all([import('./lazy.ts'), import('bridge')]); const failed = [];
        for (const s of ['./none.ts', './broken.ts', './throws.ts', 'nope']) try { await import(s) } catch (e) { failed.push((e as Error).name) }
        export default [m.default, again === m, Object.keys(bridge), failed]",
        &[
            ("./lazy.ts", "export default await Promise.resolve('lazy' as const); export const { z } = await import('./deep.js')"),
            ("./deep.js", "export const z = 26"),
            ("./broken.ts", "export default ("),
            ("./throws.ts", "throw new RangeError('while it loads')"),
        ],
    ),
    graph(
        "top-level await across modules",
        "import { first } from './one.ts'; import { second } from './two.ts'; const third = await later(first + second); export default [first, second, third]",
        &[
            ("./one.ts", "export const first: number = await new Promise<number>((r) => queueMicrotask(() => r(1)))"),
            ("./two.ts", "import { first } from './one.ts'; await null; export const second = first + ((await later(1)) as number[])[0]"),
        ],
    ),
    graph("a module that throws", "import './bad.ts'; export default 1", &[("./bad.ts", "const f = () => { throw new SyntaxError('own') }\nf()")]),
    graph("a name that is not exported", "import { nope } from './m.js'; export default nope", &[("./m.js", "export const yes = 1")]),
    entry(
        "labels and the global object",
        "(globalThis as any).left = { behind: [1, 2] }; for (let i = 0; i < 60; i++) (globalThis as any)['g' + i] = Symbol('g' + i);
        Object.defineProperty(globalThis, 'getter', { get: () => 'got', configurable: true }); (Array.prototype as any).mine = 1; delete (globalThis as any).escape;
        export default [(globalThis as any).left.behind, (globalThis as any).getter, typeof escape, ([] as any).mine]",
    ),
    entry(
        "tampered intrinsics",
        "const keep = Array.prototype.push; (Array.prototype as any)[Symbol.iterator] = function* () { yield 'evil' }; (Promise.prototype as any).then = null;
        Object.defineProperty(Object.prototype, 'inherited', { get() { return 'i' }, configurable: true }); Map.prototype.set = null as any; Error.prototype.name = 'E2';
        const [v] = [1] as any; export default { v, m: new Set([1]), list: [1, 2], e: new Error('t'), echoed: echo({ a: 1 }) }",
    ),
    entry(
        "sorting and comparing",
        "const words = 'the quick brown fox jumps over the lazy dog'.split(' '); const people = words.map((name, age) => ({ name, age, tags: [name[0]] }));
        export default [words.sort(), people.sort((a, b) => a.name.localeCompare(b.name) || a.age - b.age).map((p) => p.age), [10, 9, 1].sort(),
            people.filter((p) => p.tags.includes('t')), new Set(words).size, Object.entries(Object.groupBy(words, (w) => w.length))]",
    ),
    entry(
        "locale methods",
        "const date = new Date(0); const name = 'i'.repeat(9) + String(date.getTime());
        export default [(1.5).toLocaleString('de'), (2n).toLocaleString(name), [1.5, [date]].toLocaleString(undefined, {}), new Uint8Array(3).toLocaleString(['de']),
            date.toLocaleDateString('und').length, date.toLocaleTimeString([], { hour: 'numeric' }).length, name.localeCompare('j', 'sv'), name.toLocaleUpperCase('tr')]",
    ),
    entry(
        "an agent's code",
        "interface Row { id: number; price: number; tags: string[] } const rows: Row[] = Array.from({ length: 25 }, (_, id) => ({ id, price: id * 1.5, tags: ['t' + (id % 3)] }));
        const byTag = new Map<string, Row[]>(); for (const row of rows) for (const tag of row.tags) (byTag.get(tag) ?? byTag.set(tag, []).get(tag)!).push(row);
        const summary = [...byTag].map(([tag, list]) => ({ tag, total: list.reduce((sum, { price }) => sum + price, 0).toFixed(2) }));
        for (const s of summary) { console.log(`${s.tag}: ${s.total}`); report(s) } const [checked] = (await later(summary)) as any;
        export default { checked, text: JSON.stringify(summary), md: summary.map((s) => `| ${s.tag} | ${s.total} |`).join('\\n') }",
    ),
    entry(
        "spread and arguments",
        "const f = (...xs: any[]) => xs.length; const big = Array.from({ length: 300 }, (_, i) => i);
        export default [f(...big), Math.max(...big), [...big, ...big].length, { ...big.slice(0, 3), ...'ab' }, f.apply(null, big), new Date(...([2020, 1] as [number, number])).getMonth(), String.fromCodePoint(...[97, 128512])]",
    ),
    entry(
        "getters, setters, prototypes",
        "const base = { get v() { return (this as any).w * 2 }, set v(x) { (this as any).w = x } }, o = Object.create(base, { w: { value: 1, writable: true } }); o.v = 21;
        function Old(this: any, x: number) { this.x = x } Old.prototype.m = function () { return this.x }; const i = new (Old as any)(3); Object.setPrototypeOf(i, { m: () => 'other' });
        export default [o.v, i.m(), Object.getPrototypeOf(o) === base, i instanceof Old, base.isPrototypeOf(o), o.hasOwnProperty('v'), Object.hasOwn(o, 'w')]",
    ),
    entry(
        "collecting cycles",
        "for (let i = 0; i < 60; i++) { const a: any = { i }, b = { a, list: [a] }; a.b = b; a.f = () => b; a.g = (function* () { yield a })(); a.g.next(); a.p = new Promise((r) => { a.r = r }) }
        export default 'collected'",
    ),
];
