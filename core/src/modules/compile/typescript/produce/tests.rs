//! The code of enums, namespaces, aliases and parameter properties.

use crate::{
    data::{outcome::Position, source::Language},
    modules::compile::{CompiledModule, compile, module::Code, text::lines::Lines},
};

fn compiled(text: &str) -> CompiledModule {
    let module = compile(text, Language::TypeScript, &[], usize::MAX);
    module.unwrap_or_else(|error| panic!("{text}: {}", error.message))
}

/// Texts with their code, in which white space does not count.
const PRODUCED: &[(&str, &str)] = &[
    (
        "enum E { A, B = 5, C, D = -0, F = C | A, G }",
        r#"var E;(function (E) { E[E["A"] = 0] = "A"; E[E["B"] = 5] = "B"; E[E["C"] = 6] = "C"; E[E["D"] = 0] = "D"; E[E["F"] = E.C | E.A] = "F"; E[E["G"] = 7] = "G"; })(E || (E = {}));"#,
    ),
    (
        "enum E { X = +'123', Z = -'5', W = ~'3', S = 's', T = S, U = `${T}`, V = 'a' + f() }",
        r#"var E;(function (E) { E[E["X"] = +'123'] = "X"; E[E["Z"] = -'5'] = "Z"; E[E["W"] = ~'3'] = "W"; E["S"] = 's'; E["T"] = E.S; E["U"] = `${E.T}`; E["V"] = 'a' + f(); })(E || (E = {}));"#,
    ),
    (
        "enum E { A } enum E { B = A, C } enum F { A = E.C, B }",
        r#"var E;(function (E) { E[E["A"] = 0] = "A"; })(E || (E = {})); ;(function (E) { E[E["B"] = E.A] = "B"; E[E["C"] = 1] = "C"; })(E || (E = {})); var F;(function (F) { F[F["A"] = E.C] = "A"; F[F["B"] = 2] = "B"; })(F || (F = {}));"#,
    ),
    (
        "enum E { 'a\\\r\nb\u{2028}\\'' = 1, [`c\n`] = 2, ['d'] = <any>3 as number }",
        r"var E;(function (E) { E[E['ab\u2028\''] = 1] = 'ab\u2028\''; E[E[`c\n`] = 2] = `c\n`; E[E['d'] = 3] = 'd'; })(E || (E = {}));",
    ),
    (
        "const x = 5, s = 'a'; enum E { A = x, B, C = s } enum F { A = B.length } enum B {}",
        r#"const x = 5, s = 'a'; var E;(function (E) { E[E["A"] = x] = "A"; E[E["B"] = 6] = "B"; E["C"] = s; })(E || (E = {})); var F;(function (F) { F[F["A"] = B.length] = "A"; })(F || (F = {})); var B;(function (B) {})(B || (B = {}));"#,
    ),
    (
        "enum A { A, B = A, C = (A => A)(1), D = (() => { let A; return B })() }",
        r#"var A;(function (ns_1) { ns_1[ns_1["A"] = 0] = "A"; ns_1[ns_1["B"] = ns_1.A] = "B"; ns_1[ns_1["C"] = (A => A)(1)] = "C"; ns_1[ns_1["D"] = (() => { let A; return ns_1.B })()] = "D"; })(A || (A = {}));"#,
    ),
    (
        "export enum E { A } export enum E { B } { enum E { C } }",
        r#"export var E;(function (E) { E[E["A"] = 0] = "A"; })(E || (E = {})); ;(function (E) { E[E["B"] = 0] = "B"; })(E || (E = {})); { let E;(function (E) { E[E["C"] = 0] = "C"; })(E || (E = {})); }"#,
    ),
    (
        "namespace N { export let a = 1, b, c: T = a\n(d) }",
        "var N;(function (N) { ;N.a = 1, N.c = N.a\n(d); })(N || (N = {}));",
    ),
    (
        "namespace N { export let a = 1, b\n(c); export let d; export var [e, , f = a, ...g]: T = h, i }",
        "var N;(function (N) { ;N.a = 1 ;\n(c); ;[N.e, , N.f = N.a, ...N.g] = h ; })(N || (N = {}));",
    ),
    (
        "namespace N { export const { a, b = a, [a]: { c }, d: e = 1, ...f }: T = g as any, h = a }",
        "var N;(function (N) { ;({ a: N.a, b: N.b = N.a, [N.a]: { c: N.c }, d: N.e = 1, ...N.f } = g ), N.h = N.a; })(N || (N = {}));",
    ),
    (
        "namespace N { export let a = 1; ({ a, b: a } = { a }); ({ a = 2 } = {}); a++; a(); a`a`; typeof a; for (a of [a]) { let a; a } (a as any)! = 1 }",
        "var N;(function (N) { ;N.a = 1; ({ a: N.a, b: N.a } = { a: N.a }); ({ a: N.a = 2 } = {}); N.a++; N.a(); N.a`a`; typeof N.a; for (N.a of [N.a]) { let a; a } (N.a ) = 1 })(N || (N = {}));",
    ),
    (
        "namespace N { export async function f() { f } export abstract class C { x = C; abstract y: 1 } export function g(): void; export function g() {} } namespace N { f(C, g) }",
        "var N;(function (N) { async function f() { f } N.f = f; class C { x = C; } N.C = C; function g() {} N.g = g; })(N || (N = {})); ;(function (N) { N.f(N.C, N.g) })(N || (N = {}));",
    ),
    (
        "namespace A.B { export const x = 1 } namespace A { export namespace B { x } B }",
        "var A;(function (A) {let B;(function (B) { ;B.x = 1 ;})(B = A.B || (A.B = {}));})(A || (A = {})); ;(function (A) { let B;(function (B) { B.x })(B = A.B || (A.B = {})); B })(A || (A = {}));",
    ),
    (
        "namespace N { export const a = 1; let N = a; function f(a) { return a } { var b = a } } namespace N { a; b; f }",
        "var N;(function (ns_1) { ;ns_1.a = 1; let N = ns_1.a; function f(a) { return a } { var b = ns_1.a } })(N || (N = {})); ;(function (N) { N.a; b; f })(N || (N = {}));",
    ),
    (
        "const ns_1 = 1; namespace N { export const a = ns_1; class N {} }",
        "const ns_1 = 1; var N;(function (ns_2) { ;ns_2.a = ns_1; class N {} })(N || (N = {}));",
    ),
    (
        "function f() {} namespace f { export const a = 1 } class C {} namespace C { export enum E { A } } export default class D {} namespace D { 1 }",
        r#"function f() {} ;(function (f) { ;f.a = 1 ;})(f || (f = {})); class C {} ;(function (C) { let E;(function (E) { E[E["A"] = 0] = "A"; })(E = C.E || (C.E = {})); })(C || (C = {})); export default class D {} ;(function (D) { 1 })(D || (D = {}));"#,
    ),
    (
        "enum E { A } namespace E { export type T = 1 } namespace T { interface I {} } namespace D { declare let a: 1 } declare namespace F { let a: 1 }",
        r#"var E;(function (E) { E[E["A"] = 0] = "A"; })(E || (E = {})); var D;(function (D) {})(D || (D = {}));"#,
    ),
    (
        "namespace A { export interface P {} export const v = 1 } import P = A.P; export import Q = A.P; import v = A.v\n(v); import u = A.v; export import w = A.v; let p: P; export { P }",
        "var A;(function (A) { ;A.v = 1 ;})(A || (A = {})); var v = A.v;\n(v); export var w = A.v; let p;",
    ),
    (
        "namespace N { export namespace M { export const x = 1 } export import a = M.x; import b = M.x; a; b } namespace N { import c = M.x; c; a }",
        "var N;(function (N) { let M;(function (M) { ;M.x = 1 ;})(M = N.M || (N.M = {})); ;N.a = M.x; var b = M.x; N.a; b })(N || (N = {})); ;(function (N) { var c = N.M.x; c; N.a })(N || (N = {}));",
    ),
    (
        "class A { y = 1; constructor(readonly x: number, private z = 2) { f() } }",
        "class A {x;z; y = 1; constructor(x, z = 2) {;this.x = x;this.z = z; f() } }",
    ),
    (
        "class A extends B { constructor(override x) { 'use strict'; f(); super(x)\n g() } }",
        "class A extends B {x; constructor(x) { 'use strict'; f(); super(x);this.x = x;\n g() } }",
    ),
    (
        "class A extends B { constructor(a); constructor(public a?: T) { try { (super()) } finally {} } }",
        "class A extends B {a; constructor(a) { try { (super());this.a = a; } finally {} } }",
    ),
    (
        "class A { constructor(public a) { 'use strict' } }",
        "class A {a; constructor(a) { 'use strict';this.a = a; } }",
    ),
    (
        "a\nenum E {}\nb\nnamespace f {1}\nfunction f() {}",
        "a\nvar E;(function (E) {})(E || (E = {}));\nb\n;(function (f) {1})(f || (f = {}));\nfunction f() {}",
    ),
];

/// Without the white space that has no meaning here.
fn squeezed(code: &str) -> String {
    let words: Vec<_> = code.split(' ').filter(|word| !word.is_empty()).collect();
    [" ;", "; ", "{ ", " }", " )", "( ", " ,", ". ", " ]"]
        .iter()
        .fold(words.join(" "), |code, around| code.replace(around, around.trim()))
}

#[test]
fn declarations_are_written_anew_in_place() {
    for (text, expected) in PRODUCED {
        let module = compiled(text);
        let code = module.code().replace("\r\n", "");
        assert_eq!(
            squeezed(&code.replace('\n', " ")),
            squeezed(&expected.replace('\n', " ")),
            "{text}"
        );
        assert_eq!(text.matches('\n').count(), module.code().matches('\n').count(), "{text}");
        let run = compile(module.code(), Language::JavaScript, &[], usize::MAX).expect("a program");
        assert_eq!(run.record.exports, module.record.exports, "{text}");
    }
}

#[test]
fn long_names_are_not_repeated() {
    let name = "n".repeat(10_000);
    let text = format!("namespace {name} {{ export let a = 1; {} }}", "a;".repeat(10_000));
    assert!(compiled(&text).code().len() < 150_000);
    let text = format!(
        "enum {name} {{ {} }}",
        (0..10_000).fold(String::new(), |all, n| all + &format!("a{n},"))
    );
    assert!(compiled(&text).code().len() < 600_000);
}

#[test]
fn nesting_is_bounded() {
    for (open, close) in [("namespace N {", "}"), ("enum E { A = (() => {", "})() }")] {
        let text = |depth| format!("{}1{}", open.repeat(depth), close.repeat(depth));
        compiled(&text(32));
        let error =
            compile(&text(33), Language::TypeScript, &[], usize::MAX).expect_err("too deep");
        assert_eq!(error.message, "Enums and namespaces are nested more than 32 deep");
    }
}

#[test]
fn places_behind_insertions_lead_back() {
    for text in [
        "enum E { A, B } here",
        "enum É { 'é' = 1, B = 2 } /* \u{2028} */ let é; here",
        "namespace N {\n export let a = 1; a; a; here }",
        "class A { constructor(public a) { here } }",
        "enum E {\r\n A, // a\u{2028} B }\r here",
        "import a = N.b; a; here",
    ] {
        let module = compiled(text);
        let mut lines = Lines::new(text, &module.line_terminators);
        let place = text.find("here").expect("there");
        let wanted = lines.position(place);
        let engine_line = |line| Some((line, lines.engine_line(line)?));
        let mut engine_lines = (1..=wanted.line).filter_map(engine_line);
        let found = engine_lines.find(|(_, range)| range.contains(&place));
        let (line, range) = found.expect("its line");
        let Code::Edited(edited) = &module.code else { panic!("{text}") };
        let at = module.code().find("here").expect("it stays");
        let start = edited.edits.code(range.start);
        let column = u32::try_from(at - start + 1).expect("a short line");
        assert_eq!(module.original(line, column), Some(wanted), "{text:?}");
        assert_eq!(module.original(99, 1), None);
    }
    // Inserted text is at the place where it was inserted.
    let module = compiled("let a;\nenum E { A }");
    assert_eq!(module.original(2, 13), Some(Position { line: 2, column: 8 }));
}
