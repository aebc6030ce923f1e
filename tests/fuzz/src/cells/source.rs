//! Sources of cells made of choices: declarations, changes, hazards and ends that mostly parse.
//!
//! In: choices. Out: a source. Few names, so that cells find, change and declare anew the names of others.

use std::fmt::Write;

use arbitrary::Unstructured;

/// The names that cells share. Updates hand over globals of some of them.
pub(super) const NAMES: [&str; 8] = ["v0", "v1", "v2", "v3", "v4", "given", "a", "undefined"];

const VALUES: &[&str] = &[
    "$i",
    "'t$i'",
    "$n",
    "[$i, $n]",
    "{ a: $i, b: [$n] }",
    "new Map([[$i, $n]])",
    "new Set([$n])",
    "(() => { let n = $i; return () => ++n; })()",
    "(async (x) => { await x; return $n; })",
    "(function* () { for (let i = $i; ; i += 1) yield i; })()",
    "(async function* () { for (;;) yield await $n; })()",
    "new (class Held { #n = $i; step() { return ++this.#n; } get n() { return this.#n; } })()",
    "echo($n)",
    "echo(() => $n)[0]",
    "later($i)",
    "await later($n)",
    "soon($n)",
    "await soon(() => $n)",
    "ask($i)",
    "await ask($n)",
    "await $n",
    "await 0",
    "new Uint8Array($i).fill($i)",
    "new Proxy($n, {})",
    "Promise.reject($n)",
    "new Promise(() => {})",
    "new WeakRef([$n])",
    "import('./m.ts')",
    "await import('./n.js')",
    "Symbol('s$i')",
    "$in",
    "'x'.repeat($i$i$i)",
];

const STATEMENTS: &[&str] = &[
    "let $d = $v;",
    "const $d = $v;",
    "var $d = $v;",
    "var $d;",
    "function $d() { return [$n, $i]; }",
    "async function $d(x) { await x; $n = $v; return $n; }",
    "function* $d() { yield* $n; }",
    "class $d { static made = $i; n = $n; }",
    "enum $d { A, B = $i }",
    "namespace $d { export const x = $i; }",
    "const { a: $d = $i, ...$d } = { a: $n, c: $i };",
    "using $d = { [Symbol.dispose]() { report($n); } };",
    "export const $d = $v;",
    "import { n as $d, inc as $d, log as $d } from './m.ts';",
    "import * as $d from './n.js';",
    "import $d, { a as $d } from 'kit';",
    "type T$i = typeof $n;",
    "$n = $v;",
    "$n();",
    "$n($n);",
    "$n.next();",
    "await $n.next();",
    "$n.step();",
    "$n.push($n);",
    "$n.a = $v;",
    "$n.inc();",
    "echo(() => { $n = $v; return $n; }, async (x) => { $n = await x; });",
    "later(() => $n).then((f) => f[0]()).catch(() => 0);",
    "soon($n).then((x) => { $n = x; for (let i = 0; i < $i$i; i += 1) v0 = i; });",
    "try { $n = fail($v); } catch (e) { $n = e; }",
    "try { forget($n); } catch (e) { report(e); }",
    "report($n);",
    "console.log($n, $v);",
    "console.count('c$i'); console.time('t$i'); console.group($n);",
    "globalThis.g$i = $v;",
    "delete globalThis.g$i;",
    "Array.prototype.tampered = $v;",
    "Array.prototype[Symbol.iterator] = $v;",
    "Object.prototype.then = $v;",
    "Object.defineProperty(Object.prototype, 'a', { get() { $n = $v; return 1; }, set() { throw $n; }, configurable: true });",
    "Promise.prototype.then = $v;",
    "Promise.prototype.constructor = $v;",
    "Object.defineProperty(Promise, Symbol.species, { value: $v, configurable: true });",
    "Function.prototype.call = $v;",
    "Map.prototype.size$i = $v;",
    "globalThis.Promise = $v;",
    "Symbol.prototype.description$i = $v;",
    "Promise.reject(new Error('left $i'));",
    "Promise.resolve($i).then((n) => { globalThis.g0 = n; $n = n; });",
    "queueMicrotask(() => { $n = $v0; throw $n; });",
    "new FinalizationRegistry((held) => report(held)).register([$i], $i);",
    "structuredClone($n);",
    "for (let i = 0; i < $i$i; i += 1) $n += $n;",
    "if ($n) { $n = $v; } else { let a = $v; }",
    "$v;",
    "[$n, $n]",
    "($n)",
];

const ENDS: &[&str] = &[
    "throw new RangeError('$i');",
    "throw $n;",
    "for (;;);",
    "for (;;) await null;",
    "for (;;) await soon($i);",
    "await new Promise(() => {});",
    "{ const all = []; for (;;) all.push(new Array(500).fill(all)); }",
    "{ let s = 'x'; for (;;) s += s; }",
    "{ const all = []; for (;;) all.push(new ArrayBuffer(9999)); }",
    "for (;;) report('x'.repeat(999));",
    "for (;;) console.log($n);",
    "(function f() { f(); })();",
    "(function f() { try { f(); } catch { $n = $v; } })();",
    "let = ;",
    "import { missing } from './m.ts';",
    "import nothing from './nowhere.js';",
    "return $v;",
    "export default $v;",
    "const $d = $d0;",
    "$n.reverse.call({ length: 2 ** 27 });",
    "'use strict'; { a: $v }",
];

const MODULES: [&str; 6] = [
    "export let n = 0; export const inc = () => { n += 1; }; export const log = [];",
    "export let n = 7; export const inc = () => { for (;;); }; export const log = [n];",
    "import { loads } from './n.js'; export let n = loads; export const inc = 1, log = 2;",
    "export let n = await later(1), inc = () => n++, log;",
    "export let n, inc, log; throw new Error('in a module');",
    "export let n = ; ",
];

/// One of the texts that `./m.ts` may have.
pub(super) fn module(choices: &mut Unstructured<'_>) -> String {
    choices.choose(&MODULES).map_or("", |text| *text).to_owned()
}

/// A module that has `./m.ts` as its dependency, and the other way round if an update makes it so.
pub(super) const DEPENDENT: &str =
    "import * as m from './m.ts'; export const loads = 1; export default m; export { m };";

/// One of the shared names.
pub(super) fn name(choices: &mut Unstructured<'_>) -> String {
    choices.choose(&NAMES).map_or(NAMES[0], |name| *name).to_owned()
}

/// A source.
pub(super) fn write(choices: &mut Unstructured<'_>) -> String {
    let mut source = Source { choices, text: String::new(), declared: Vec::new(), depth: 0 };
    for _ in 0..=source.choose(4) {
        source.one_of(STATEMENTS);
        source.text.push('\n');
    }
    if source.choose(4) == 0 {
        source.one_of(ENDS);
    }
    source.text
}

struct Source<'c, 'b> {
    choices: &'c mut Unstructured<'b>,
    text: String,
    /// The names that the cell declares, each once.
    declared: Vec<&'static str>,
    depth: u32,
}

impl Source<'_, '_> {
    fn choose(&mut self, count: usize) -> usize {
        self.choices.int_in_range(0..=count - 1).unwrap_or(0)
    }

    fn one_of(&mut self, templates: &[&str]) {
        let chosen = templates[self.choose(templates.len())];
        self.expand(chosen);
    }

    /// A template in which `$n` is a name, `$d` one that the cell has not declared, `$v` a value and `$i` a digit.
    fn expand(&mut self, template: &str) {
        let mut pieces = template.split('$');
        self.text.push_str(pieces.next().unwrap_or_default());
        for piece in pieces {
            match piece.as_bytes().first() {
                Some(b'v') if self.depth < 4 => {
                    self.depth += 1;
                    self.one_of(VALUES);
                    self.depth -= 1;
                }
                Some(b'd') => self.declaration(),
                Some(b'i') => {
                    let digit = self.choose(10);
                    // Writing to a string cannot fail.
                    let _ = write!(self.text, "{digit}");
                }
                _ => {
                    let name = NAMES[self.choose(NAMES.len())];
                    self.text.push_str(name);
                }
            }
            self.text.push_str(piece.get(1..).unwrap_or_default());
        }
    }

    fn declaration(&mut self) {
        let first = self.choose(NAMES.len());
        let free = NAMES.iter().cycle().skip(first).take(NAMES.len());
        let name = free.copied().find(|name| !self.declared.contains(name));
        let name = name.unwrap_or(NAMES[first]);
        self.declared.push(name);
        self.text.push_str(name);
    }
}
