//! The compiler's rules, one by one: erased code, code that stays, refused code, positions of errors.

use std::time::{Duration, Instant};

use super::{
    module::Code,
    text::lines::{Lines, Silent},
    *,
};
use crate::data::{outcome::Position, source::Language};

fn ts(text: &str) -> CompiledModule {
    compile(text, Language::TypeScript, &[], usize::MAX).expect("it compiles")
}

fn js(text: &str) -> CompiledModule {
    compile(text, Language::JavaScript, &[], usize::MAX).expect("it compiles")
}

fn error(text: &str, language: Language) -> (String, u32, u32) {
    let error = compile(text, language, &[], usize::MAX).expect_err("it is refused");
    assert_eq!(error.name, "SyntaxError");
    let position = error.position.unwrap_or(Position { line: 0, column: 0 });
    (error.message, position.line, position.column)
}

fn ts_error(text: &str) -> (String, u32, u32) {
    error(text, Language::TypeScript)
}

fn requests(module: &CompiledModule) -> Vec<String> {
    let name = |name: &ImportedName| {
        let imported = match &name.imported {
            Imported::Name(name) => name.as_str(),
            Imported::Namespace => "*",
        };
        format!("{imported}{}", if name.unused { "?" } else { "" })
    };
    let names = |request: &Request| request.names.iter().map(name).collect::<Vec<_>>().join(",");
    module.record().requests.iter().map(|r| format!("{} {}", r.specifier, names(r))).collect()
}

fn exports(module: &CompiledModule) -> Vec<&str> {
    module.record().exports.iter().map(|export| export.name.as_str()).collect()
}

fn types(module: &CompiledModule) -> Vec<&str> {
    let mut types: Vec<_> = module.record().type_exports.iter().map(String::as_str).collect();
    types.sort_unstable();
    types
}

#[test]
fn what_typescript_adds_at_run_time_stays() {
    assert_eq!(exports(&ts("export const enum E { A }")), ["E"]);
    assert_eq!(exports(&ts("export enum E { A } export enum E { B }")), ["E"]);
    assert_eq!(exports(&ts("namespace N { export const b = 1 } export import a = N.b;")), ["a"]);
}

#[test]
fn javascript_runs_as_it_stands() {
    let text = "// c\nimport a from 'a';\nexport   const b = a , c = import.meta;\nimport('x')";
    let module = js(text);
    assert_eq!(module.code(), text);
    assert_eq!(requests(&module), ["a default"]);
    assert_eq!(exports(&module), ["b", "c"]);
    assert_eq!(js("").code(), "");
    assert!(module.size_bytes() > text.len() && ts(text).size_bytes() > 2 * text.len());
    assert_eq!(js("\u{feff}#!shebang\n1").code(), "#!shebang\n1");
    assert_eq!(error("let a: number", Language::JavaScript).1, 1);
    assert!(compile("<a/>", Language::JavaScript, &[], usize::MAX).is_err());
    assert!(compile("<a></a>", Language::TypeScript, &[], usize::MAX).is_err());
}

#[test]
fn imports_used_only_as_types_erase() {
    for (text, expected) in [
        ("import { T } from 'x'; let a: T;", &[][..]),
        ("import { T, v } from 'x'; let a: T = v;", &["x v"]),
        (
            "import type { T } from 'x'; import { type U } from 'y'; import d, { type V } from 'z'; d",
            &["z default"],
        ),
        ("import D from 'x'; let a: typeof D;", &[]),
        ("import * as N from 'x'; let a: N.T;", &[]),
        ("import * as N from 'x'; import T = N.T; let a: T;", &[]),
        ("import * as N from 'x'; import v = N.v; v();", &["x *"]),
        ("import { I } from 'x'; class A implements I {}", &[]),
        ("import { B } from 'x'; class A extends B {}", &["x B"]),
        ("import { v } from 'x'; a = { v };", &["x v"]),
        ("import { v } from 'x'; export { v };", &["x v"]),
        ("import { v } from 'x'; export default v;", &["x v"]),
        ("import { v } from 'x'; v as any;", &["x v"]),
        ("import { T, unused } from 'x'; let a: T;", &["x unused?"]),
        ("import { unused, used } from 'x'; used()", &["x unused?,used"]),
        ("import d, * as n from 'x';", &["x default?,*?"]),
        ("import {} from 'x'; import 'y';", &["x ", "y "]),
        ("import { T } from 'x'; { let T = 1; T; } let a: T", &[]),
        (
            "export { a as b, default as c } from 'x'; export * from 'y'; export * as z from 'z';",
            &["x a,default", "y ", "z *"],
        ),
        ("export type { T } from 'x'; export { type U } from 'y'; export type * from 'z'", &[]),
        ("import { 'a b' as c } from 'x'; c", &["x a b"]),
    ] {
        assert_eq!(requests(&ts(text)), expected, "{text}");
    }
}

#[test]
fn the_linker_may_ask_to_erase_unused_names() {
    let erase = ["T".to_owned(), "v".to_owned()];
    let text = "import { T } from 'x'; import { T as U, v } from 'y'; import { w } from 'z'; v";
    let module = compile(text, Language::TypeScript, &erase, usize::MAX).expect("it compiles");
    assert_eq!(requests(&module), ["y T?,v", "z w?"]);
}

#[test]
fn exports_are_values_or_types() {
    let module = ts("interface I {} export { I }; export type A = 1; export interface B {}
        export declare const c: 1; export enum E {} export namespace N { export type X = 1 }
        export namespace V { export const x = 1 } export class K {} export const { k, l: [m] } = x;
        export type * from './t'; export type * as ns from './t'; export { type K as KT };
        export default interface D {}");
    assert_eq!(exports(&module), ["E", "V", "K", "k", "m"]);
    assert_eq!(types(&module), ["A", "B", "I", "KT", "N", "c", "default", "ns"]);
    assert_eq!(module.record().type_stars, ["./t"]);
    let module = ts("import { a as b } from 'x'; import * as n from 'y'; export { b as c, n };");
    let targets: Vec<_> =
        module.record().exports.iter().map(|export| export.target.clone()).collect();
    let imported = Imported::Name("a".to_owned());
    assert_eq!(
        targets,
        [
            ExportTarget::Indirect { request: 0, imported },
            ExportTarget::Local { binding: "n".to_owned() }
        ]
    );
}

#[test]
fn what_cannot_run_is_refused_where_it_stands() {
    for (text, expected) in [
        ("1;\n export = 5;", ("'export =' is not supported: use 'export default'", 2, 2)),
        (
            "import x = require('y');",
            ("'import x = require()' is not supported: use 'import x from \"y\"'", 1, 1),
        ),
        ("\nclass A { @dec m() {} }", ("Decorators are not supported", 2, 11)),
        ("@dec class A {}", ("Decorators are not supported", 1, 1)),
        (
            "class A { accessor x = 1 }",
            ("'accessor' fields are not supported: write a getter and a setter", 1, 11),
        ),
        (
            "import a from 'b' with { type: 'json' };",
            (
                "Import attributes are not supported: every module is JavaScript or TypeScript",
                1,
                26,
            ),
        ),
    ] {
        assert_eq!(ts_error(text), (expected.0.to_owned(), expected.1, expected.2), "{text}");
    }
    assert!(
        compile("import type x = require('y');", Language::TypeScript, &[], usize::MAX).is_ok()
    );
    assert!(compile("import 'y' with {};", Language::JavaScript, &[], usize::MAX).is_ok());
}

#[test]
fn syntax_errors_and_early_errors_say_where() {
    let mut wrong = Vec::new();
    for (text, line, column) in [
        ("let x = ;", 1, 9),
        ("let 😀é = ;", 1, 5),
        ("'😀'; let x = ;", 1, 15),
        ("\u{feff}let x = ;", 1, 9),
        ("let x = 1;\r\nlet x = 2;", 2, 5),
        ("\n\nconst y;", 3, 7),
        ("with (a) {}", 1, 1),
        ("x = 08;", 1, 5),
        ("return 5;", 1, 1),
        ("a: a: 1", 1, 4),
        ("export { nope };", 1, 10),
        ("import a from 'a'; import a from 'b'; a", 1, 27),
        ("break;", 1, 1),
        ("'abc", 1, 1),
        ("`abc", 1, 1),
        ("/* abc", 1, 1),
        ("a\0b", 1, 2),
        ("delete x", 1, 8),
        ("arguments = 1", 1, 1),
        ("new.target", 1, 1),
        ("super()", 1, 1),
        ("for (let x of a, b);", 1, 16),
        ("({ a = 1 })", 1, 4),
        ("class A { constructor() {} constructor() {} }", 1, 11),
        ("class A { #a; #a }", 1, 15),
        ("this.#a", 1, 6),
        ("function f() { await 1 }", 1, 16),
        ("yield = 1", 1, 1),
        ("1 = 2", 1, 1),
    ] {
        for language in [Language::JavaScript, Language::TypeScript] {
            let (message, at_line, at_column) = error(text, language);
            if message.is_empty()
                || message.contains('\n')
                || (at_line, at_column) != (line, column)
            {
                wrong.push(format!("{text} {language:?} {at_line}:{at_column} {message}"));
            }
        }
    }
    assert_eq!(wrong, [""; 0]);
}

#[test]
fn no_name_is_exported_twice() {
    for text in
        ["export default 1; export default 2;", "let a; export { a as default, a as b, a as b }"]
    {
        assert!(compile(text, Language::JavaScript, &[], usize::MAX).is_err(), "{text}");
    }
    let text = "export default 1;\nexport default 2;";
    assert_eq!(
        ts_error(text),
        ("A module cannot have multiple default exports; the first is on line 1".to_owned(), 2, 8)
    );
    let text = "export default function f(): void;\nexport default function f() {}";
    assert_eq!(exports(&ts(text)), ["default"]);
}

#[test]
fn positions_of_requests_are_in_the_original() {
    let module = ts("type A = 1;\r\n/* é😀 */ import d, { a as b } from './x'; d; b;");
    let request = &module.record().requests[0];
    assert_eq!(request.statement, Position { line: 2, column: 11 });
    assert_eq!(request.position, Position { line: 2, column: 37 });
    let names: Vec<_> = request.names.iter().map(|name| name.position.column).collect();
    assert_eq!(names, [18, 23]);
}

/// The place that the engine would report for the first `needle` of the code.
fn engine_place(module: &CompiledModule, needle: &str) -> (u32, u32) {
    let at = module.code().find(needle).expect("it stays");
    let text = module.text();
    let line_terminators = &module.line_terminators;
    let mut lines = Lines::new(text, line_terminators);
    let line = lines.position(text.find(needle).expect("it is there")).line;
    let start = lines.offset(line, 1).expect("its line");
    let start = match &module.code {
        Code::AsWritten => start,
        Code::Edited(edited) => edited.edits.code(start),
    };
    let first = u32::from(line == 1 && at > 0);
    (line, u32::try_from(at - start + 1).expect("short lines") - first)
}

#[test]
fn engine_positions_lead_back_to_the_original() {
    for text in [
        "interface A { x: number }\n\nfunction f(a: A): never {\n  const é = '😀' as string; throw new Error('boom');\n}\n",
        "let s: string = 'é😀'; throw new Error(s);",
        "/* \u{2028} */ let t: string = `\u{2028}\n`; \u{2028}let u = '\u{2029}';\u{2029} throw new Error();",
        "\u{feff}enum E { A }\r\nlet a = `\r\n`;\r  throw new Error(a);",
        "let é: 'é😀' = 1 as /* 😀 */ any, ß: É; throw new Error(s);",
        "type T = {\u{2028} a: '\u{2029}', /* \r \u{2028} */\r b: `\u{2028}\r\n`\r\n };let t: T; throw new Error(t);",
        "enum E {} type T = {\u{2028} a: '\u{2029}', /* \r */\r b: 1\r\n };let t: T; throw new Error(t);",
    ] {
        let module = ts(text);
        let (line, column) = engine_place(&module, "new Error");
        let body = text.trim_start_matches('\u{feff}');
        let line_terminators = module.line_terminators.clone();
        let expected =
            Lines::new(body, &line_terminators).position(body.find("new Error").expect("there"));
        assert_eq!(module.original(line, column), Some(expected), "{text:?}");
    }
    let module = js("a\u{2028}'\u{2028}' /*\r*/ é;\n  b");
    assert_eq!(module.original(2, 13), Some(Position { line: 2, column: 11 }));
    assert_eq!(module.original(3, 3), Some(Position { line: 3, column: 3 }));
    assert_eq!(module.original(9, 1), None);
    // The places that the engine reported for the position after each bar.
    for (text, reported) in [
        ("|null.x", 1),
        (" |null.x", 1),
        ("  |'s'.x.y", 2),
        ("   {|null.x}", 4),
        ("/**/|null.x", 4),
        ("  |a()", 3),
        ("throw |Error()", 6),
        ("throw new |Error()", 11),
        ("'é'; throw new |Error()", 17),
        ("1; |1n+1", 3),
        ("|[].x.y", 1),
        ("#!x\n |null.x", 2),
    ] {
        let at = text.find('|').expect("a bar");
        let plain = text.replace('|', "");
        let line = u32::from(text.starts_with('#')) + 1;
        let expected = Lines::new(&plain, &Silent::default()).position(at);
        assert_eq!(js(&plain).original(line, reported), Some(expected), "{text}");
    }
}

#[test]
fn odd_texts_compile_or_say_why() {
    for text in
        ["", " ", "\n", "#!x", "#!x\u{2028}1", "'a\0b'", ";", "//", "/**/", "\u{feff}", "\u{2028}"]
    {
        assert!(compile(text, Language::TypeScript, &[], usize::MAX).is_ok(), "{text:?}");
        assert!(compile(text, Language::JavaScript, &[], usize::MAX).is_ok(), "{text:?}");
    }
}

#[test]
fn deep_nesting_never_overflows_the_stack() {
    let cases = [
        ("[", "1", "]"),
        ("(", "1", ")"),
        ("{", "", "}"),
        ("({a:", "1", "})"),
        ("!", "1", ""),
        ("- ", "1", ""),
        ("typeof ", "1", ""),
        ("a=>", "1", ""),
        ("(a=", "1", ")=>1"),
        ("1+", "1", ""),
        ("1**", "1", ""),
        ("a=", "1", ""),
        ("a?1:", "1", ""),
        ("a.", "a", ""),
        ("`${", "1", "}`"),
        ("if(a)", "b", ""),
        ("if(a)b;else ", "b", ""),
        ("f(", "1", ")"),
        ("(function(){", "", "})"),
        ("(class{a=", "1", "})"),
        ("class A extends ", "a", "{}"),
        ("type T=[", "A", "]"),
        ("let x:A<", "A", ">"),
        ("f<", "A", ">()"),
        ("a?(b):c=>", "1", ""),
        ("<a>", "1", ""),
        ("async(", "1", ")"),
        ("new ", "a", ""),
        ("[...", "a", "]"),
        ("namespace N{", "", "}"),
        ("do ", "b", ";while(1);"),
        ("/(", "", ")/"),
        ("await ", "1", ""),
        ("{}/['\"]/+[", "1", "]"),
        ("x:", "1", ""),
        ("a,", "a", ""),
        ("\\u{61}=>", "1", ""),
        ("for(;;)", "b", ""),
        ("switch(a){case 1:", "b", "}"),
        ("try{", "b", "}catch{}"),
        ("<", "a", ">"),
        ("@(", "a", ")"),
        ("(a,b?(", "c", "):1)=>"),
        ("f<(", "a", ")"),
    ];
    for (open, middle, close) in cases {
        for count in [900, 3_900, 200_000] {
            let text = format!("{}{middle}{}", open.repeat(count), close.repeat(count));
            for language in [Language::JavaScript, Language::TypeScript] {
                let started = Instant::now();
                let result = compile(&text, language, &[], usize::MAX);
                if count == 200_000 {
                    assert!(result.is_err() || open == "a," || open == "{}/", "{open}");
                }
                assert!(
                    started.elapsed() < Duration::from_mins(2) * crate::os::sanitized::PATIENCE,
                    "{open} x {count}"
                );
            }
        }
    }
}

#[test]
fn deep_code_that_is_written_anew_never_overflows_the_stack() {
    for (before, open, middle, close, after) in [
        ("enum E { A = ", "-", "1", "", ", B }"),
        ("enum E { A = ", "(", "1", ")", ", B }"),
        ("enum E { A = ", "1+", "1", "", ", B }"),
        ("enum E {} const a = ", "1+", "1", "", ""),
        ("enum E { A = E", ".a", "", "", "}"),
        ("", "enum E { A = (() => {", "", "})() }", ""),
        ("", "namespace N {", "1", "}", ""),
        ("namespace ", "N.", "N", "", "{ 1 }"),
        ("import a = b", ".b", "", "", "; a"),
        ("namespace N { export let ", "[", "a", "]", " = 1 }"),
        ("namespace N { export let a; ", "({ a: ", "a", "})", "}"),
        ("", "class A { constructor(public a = ", "1", ") {} }", ""),
        ("class A { constructor(public a) {", "try {", "", "} catch {}", "} }"),
    ] {
        for count in [90, 900, 3_900, 30_000] {
            let text =
                format!("{before}{}{middle}{}{after}", open.repeat(count), close.repeat(count));
            let started = Instant::now();
            let _ = compile(&text, Language::TypeScript, &[], usize::MAX);
            assert!(
                started.elapsed() < Duration::from_mins(2) * crate::os::sanitized::PATIENCE,
                "{before}{open} x {count}"
            );
        }
    }
}

#[test]
fn long_sources_compile_in_linear_time() {
    for line in [
        "const x = [1, 2, 3];\n",
        "var x = a / 2 / 3;\n",
        "f(1, `a ${b} c`)\n",
        "var a;",
        "export {};",
        "x = '[' + a / 2 + ']' / a;",
        "interface A { x: 1 }\n",
        "declare function f(): void;\n",
        "namespace N { export type T = 1 }\n",
        "type A<T> = T;\n",
        "class { constructor(public a, readonly b = 1) { super() } },",
        "{ enum E { A, B = A } E.A }",
    ] {
        let line = if line.starts_with("class") {
            format!("x = {}0;", line.repeat(20))
        } else {
            line.to_owned()
        };
        let text = line.replace("const x", "var x").repeat(1_000_000 / line.len());
        let started = Instant::now();
        let _ = compile(&text, Language::TypeScript, &[], usize::MAX);
        assert!(
            started.elapsed() < Duration::from_mins(2) * crate::os::sanitized::PATIENCE,
            "{line} {:?}",
            started.elapsed()
        );
    }
}

#[test]
fn ordinary_programs_are_not_refused() {
    let calls = "f(a, b);\n".repeat(18);
    let long = "f(a, b);\n".repeat(34_000);
    for place in [
        "const p = (s) => { return !/[.]/.test(s); };\n",
        "const p = (s) => { return !!/[a]/.test(s); };\n",
        "if (a) b(); else !/[a]/.test(c);\n",
        "const half = k++ / 2; // half\n",
        "function g() {}\n/[a]/.test(s);\n",
        "if (a) /[{]/.test(s);\n",
        "const c = 1./b/2, d = a[0] / 2, e = `'` / 2;\n",
        "let g\n/['(]/.test(s);\n",
        "for (const x of /[(]/.exec(s)) {}\n",
        "const y = (a = b) / 2 + (c) / '/'.length;\n",
    ] {
        for language in [Language::JavaScript, Language::TypeScript] {
            for rest in [&calls, &long] {
                let text = format!("{place}let x = 1 < 2;\n{rest}");
                let result = compile(&text, language, &[], usize::MAX);
                assert!(result.is_ok(), "{place} {language:?}: {:?}", result.err());
            }
        }
    }
    let text = format!("declare const m: number, n: number;\nm! / n; // note\n{long}");
    assert!(compile(&text, Language::TypeScript, &[], usize::MAX).is_ok());
}

#[test]
fn long_chains_compile() {
    for (open, middle, close, count) in [
        ("'abc' +\n", "'d'", "", 9_000),
        ("a ? b : ", "c", "", 2_000),
        ("if (a) { b } else ", "{ c }", "", 2_000),
        ("a", "", ".then(b)", 1),
        ("", "a", ".then(b => c)", 2_000),
        ("a && b || ", "c", "", 2_000),
    ] {
        let text = format!("{}{middle}{};", open.repeat(count), close.repeat(count));
        for language in [Language::JavaScript, Language::TypeScript] {
            let result = compile(&text, language, &[], usize::MAX);
            assert!(result.is_ok(), "{open}{close} {language:?}: {:?}", result.err());
        }
    }
}

#[test]
fn long_namespaces_compile_in_linear_time() {
    let numbered = |text: &str, count: usize| -> String {
        (0..count).map(|n| text.replace('#', &n.to_string())).collect()
    };
    for text in [
        format!("namespace N {{ export let a; {} }}", "a; ".repeat(200_000)),
        format!("namespace N {{ {} a# }}", numbered("export let a# = 1; ", 50_000)),
        format!(
            "namespace N {{ {} }}",
            numbered("export namespace M# { export let a; a } ", 20_000)
        ),
        numbered("namespace N { export let a#; a } ", 900),
        format!("enum E {{ {} }}", numbered("a# = a0, ", 50_000)),
        numbered("enum E# { A } { enum E# { B = E#.A } } ", 20_000),
        format!("namespace N {{ export let a }} {}", numbered("import b# = N.a; b#; ", 30_000)),
        format!(
            "{}{}{}",
            "namespace N { ".repeat(31),
            "a; ".repeat(200_000),
            "}".repeat(31) + "namespace M { export let a }"
        ),
    ] {
        let started = Instant::now();
        let _ = compile(&text, Language::TypeScript, &[], usize::MAX);
        assert!(
            started.elapsed() < Duration::from_mins(2) * crate::os::sanitized::PATIENCE,
            "{:.60} {:?}",
            text,
            started.elapsed()
        );
    }
}

/// Texts in which the parser takes any one token for the `=>` of a function type, or reads the same tokens again in each
/// of the brackets around them.
#[test]
fn hostile_types_end_in_time() {
    for (open, middle, close, count) in [
        ("(x as (a,b)) T,", "1", "", 100_000),
        ("{x as (a,b)} T;", "1", "", 100_000),
        ("x as (a,b);", "1", "", 100_000),
        ("x as (a,b),", "1", "", 100_000),
        ("x as (a,b)\nT", "1", "", 100_000),
        ("x as ({a=", "1", "})=>1", 27),
        ("x as ({[", "1", "]:b})=>1", 27),
        ("infer A extends (", "B", ") ? 1 : 2", 27),
        ("type X=infer A extends (", "B", ") ? 1 : 2", 27),
        ("f<(a=", "1", ")=>1>b", 27),
        ("static\n", "", "", 100_000),
        ("(a=", "[1,1,1,1,1,1]", ")", 3_000),
        ("interface A extends B<(a=function(){", "", "})=>1> x {}", 25),
    ] {
        let text = format!("{}{middle}{}", open.repeat(count), close.repeat(count));
        for language in [Language::JavaScript, Language::TypeScript] {
            let started = Instant::now();
            let _ = compile(&text, language, &[], usize::MAX);
            assert!(
                started.elapsed() < Duration::from_mins(2) * crate::os::sanitized::PATIENCE,
                "{open} {language:?}"
            );
        }
    }
}

/// Sources whose analysis would take time or memory by the square or the cube of their length.
#[test]
fn analysis_ends_in_time_and_memory() {
    let numbered = |text: &str, count: usize| -> String {
        (0..count).map(|n| text.replace('@', &n.to_string())).collect()
    };
    let within = |open: &str, count: usize, middle: &str, close: &str| {
        format!("{}{middle}{}", open.repeat(count), close.repeat(count))
    };
    let long = |letter: &str| letter.repeat(100_000);
    for text in [
        within("x=function(a=b+", 3_000, "1", "){}"),
        within("try{}catch({[b+function(){", 3_000, "1", "}]:c}){}"),
        within("{", 7_000, &"a;".repeat(300_000), "}"),
        within("{", 7_000, &numbered("var a@;", 100_000), "}"),
        format!("l:{{{}{{{}}}}}", "if(a)".repeat(7_000), "break l;".repeat(100_000)),
        format!("for(;;){{{}{{{}}}}}", numbered("l@:", 3_000), numbered("break m@;", 50_000)),
        format!("l{}:{{break l{}}}", long("a"), long("b")),
        format!("class A{{{}m(){{{}}}}}", numbered("#a@;", 30_000), numbered("this.#b@;", 30_000)),
        format!("class A{{{}}}", numbered("#a@;m@(){this.#a@}", 60_000)),
        format!(
            "class A extends B{{m(){{{}{{{}}}}}}}",
            "if(a)".repeat(7_000),
            "super.x;".repeat(100_000)
        ),
        format!("{}{{{}}}", "if(a)".repeat(7_000), "arguments;".repeat(100_000)),
        numbered("let a@;", 30_000) + &numbered("export{b@};", 30_000),
        format!(
            "namespace N{{{}{}}}",
            numbered("type a@=1;", 30_000),
            numbered("export{a@};", 30_000)
        ),
    ] {
        for language in [Language::JavaScript, Language::TypeScript] {
            let started = Instant::now();
            let _ = compile(&text, language, &[], usize::MAX);
            assert!(
                started.elapsed() < Duration::from_mins(2) * crate::os::sanitized::PATIENCE,
                "{text:.60} {language:?}"
            );
        }
    }
    let text = within("{", 400, &numbered("var a@;", 1_000), "}");
    let needed =
        compile(&text, Language::JavaScript, &[], 16 << 20).expect_err("no room").needed_bytes;
    assert!(needed > Some(100 * 1_000 * 400), "{needed:?}");
    assert_eq!(js(&text).takes_bytes(), needed.unwrap_or_default());
}

/// Programs that use much of what the analysis must bound.
#[test]
fn analysis_refuses_no_program() {
    let numbered = |text: &str, count: usize| -> String {
        (0..count).map(|n| text.replace('@', &n.to_string())).collect()
    };
    for text in [
        format!("class A{{{}}}", numbered("#a@=1;get a@(){return this.#a@+this.#a0}", 2_000)),
        format!("class A{{{}}}", numbered("#a@;", 60_000)),
        numbered("const name@=(x=()=>1)=>x()+name0;", 20_000)
            + &numbered("export{name@ as n@};", 20_000),
        numbered("for(var i@=0;i@<2;i@++){for(var j@=0;;){if(i@)break}}", 5_000),
        "function f(a=b=>{".repeat(20) + &"b(c);".repeat(20_000) + &"}){}".repeat(20),
        "{".repeat(50) + &"var a=b;".repeat(20_000) + &"}".repeat(50),
    ] {
        for language in [Language::JavaScript, Language::TypeScript] {
            let error = compile(&text, language, &[], usize::MAX).err();
            assert!(error.is_none(), "{text:.60} {language:?} {error:?}");
        }
    }
}

#[test]
fn five_megabytes_of_ordinary_code_fit_into_the_default_limit() {
    let code = "
        // Whether a node is a list of names that all have a value.
        function isListOfNames(node) {
            if (node.kind === SyntaxKind.List) {
                return node.elements.every((element) => element.name && hasValue(element.name));
            }
            for (const child of node.children) {
                child.parent = node, visit(child, 'a list of names', { depth: node.depth + 1 });
            }
            return undefined;
        }";
    for language in [Language::JavaScript, Language::TypeScript] {
        let text = format!("{{{code}}}").repeat(5_000_000 / code.len());
        let error = compile(&text, language, &[], 128 << 20).err();
        assert!(error.is_none(), "{language:?} {error:?}");
    }
}

#[test]
fn a_parameter_named_async_stands_in_parentheses() {
    for (text, code) in [
        ("[1].map(async => async + 1)", "[1].map((async) => async + 1)"),
        ("x = async /* c */ => async => 1", "x = (async) /* c */ => (async) => 1"),
        ("x = async async => async", "x = async async => async"),
        ("x = (async) => 1, async(b), { async }", "x = (async) => 1, async(b), { async }"),
    ] {
        for module in [js(text), ts(text)] {
            assert_eq!(module.code(), code);
        }
    }
    let module = js("f(async => g(\n)), async => h()");
    assert_eq!(module.original(2, 19), Some(Position { line: 2, column: 17 }));
    assert_eq!(ts("x = async => a as T").code(), "x = (async) => a;    ");
}
