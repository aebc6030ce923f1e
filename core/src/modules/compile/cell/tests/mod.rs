//! The code and the plans of cells, one rule after another.

use super::{plan::Declared, *};
use crate::{
    data::source::Language,
    modules::compile::{
        compile_cell,
        module::{Code, Imported},
    },
};

const LANGUAGES: [Language; 2] = [Language::JavaScript, Language::TypeScript];
const OPENING: &str = "export default async($ip)=>{let $iv,$id;";

fn cell(text: &str, language: Language) -> CompiledCell {
    let cell = compile_cell(text, language, &[], usize::MAX);
    cell.unwrap_or_else(|error| panic!("{text}: {} {:?}", error.message, error.position))
}

/// The code without what stands around any cell. `~` stands for the function's end.
fn body(cell: &CompiledCell) -> String {
    let code = cell.module.code();
    let code = code.replacen(OPENING, "", 1);
    let code = code.replace(";$ip[1]=$iv}", "~");
    code.replace(";$ip[1]=$id}", "~d")
}

/// The code with less white space.
fn squeezed(code: &str) -> String {
    let lines = code.split('\n').map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    let code = lines.collect::<Vec<_>>().join("\n");
    [" ;", "; ", "{ ", " }", "( ", " )", ". "]
        .iter()
        .fold(code, |code, around| code.replace(around, around.trim()))
}

/// The kinds of the names.
fn names(cell: &CompiledCell) -> String {
    let name = |declared: &Declared| {
        let import = declared.import.as_ref().map(|(request, imported)| match imported {
            Imported::Name(name) => format!("({request} {name})"),
            Imported::Namespace => format!("({request} *)"),
        });
        format!("{}:{:?}{}", declared.name, declared.kind, import.unwrap_or_default())
    };
    cell.plan.names.iter().map(name).collect::<Vec<_>>().join(" ")
}

/// Texts with their code, names and value.
const CELLS: &[(&str, &str, &str, CellValue)] = &[
    ("1", "$iv=(1);~", "", CellValue::Expression),
    ("1 // c", "$iv=(1);~ // c", "", CellValue::Expression),
    ("", "~", "", CellValue::None),
    ("// only", "~// only", "", CellValue::None),
    ("#!bang\n1", "      \n$iv=(1);~", "", CellValue::Expression),
    ("'use strict'", "$iv=('use strict');~", "", CellValue::Expression),
    ("'a'; var x", "$iv=('a');      ~", "x:Var", CellValue::Completion),
    ("() => 1", "$iv=(0,() => 1);~", "", CellValue::Expression),
    ("return 1", "return void($ip[2]=(1));~", "", CellValue::None),
    (
        "if (a) return\nreturn // c",
        "if (a) return void($ip[2]=void 0);\nreturn void($ip[2]=void 0);~ // c",
        "",
        CellValue::None,
    ),
    (
        "return(() => { return 1 });",
        "return void($ip[2]=((() => { return 1 })));~",
        "",
        CellValue::None,
    ),
    // Variables.
    ("let x = 1, y", "$ip.x = 1, $ip.y=void 0;~", "x:Let y:Let", CellValue::None),
    (
        "const {a, b = 1, c: [d = () => 1, ...e]} = x, f = () => 1; var z",
        ";(    {a:$ip.a, b:$ip.b = 1, c: [$ip.d = {[\"d\"]:() => 1}[\"d\"], ...$ip.e]} = x), $ip.f = {[\"f\"]:() => 1}[\"f\"];      ~",
        "a:Const b:Const d:Const e:Const f:Const z:Var",
        CellValue::None,
    ),
    ("a\nlet [b] = c\n(d)", "$iv=(a);\n;   [$ip.b] = c\n(d);~", "b:Let", CellValue::Completion),
    ("let a\n(d)", "$ip.a=void 0;\n$iv=((d));~", "a:Let", CellValue::Expression),
    ("var a, b = 1", "    0, $ip.b = 1;~", "a:Var b:Var", CellValue::None),
    (
        "do var x = 1; while (0)\nif (x) var q; else var [w] = x",
        "do $ip.x = 1; while (0)\nif (x) ;      else     [$ip.w] = x;~",
        "x:Var q:Var w:Var",
        CellValue::None,
    ),
    (
        "for (var {a, b} of [1]) for (var c in a) ;for (var i;;) break",
        "for (    {a:$ip.a, b:$ip.b} of [1]) for ($ip.c in a) ;for (     ;;) break~",
        "a:Var b:Var c:Var i:Var",
        CellValue::None,
    ),
    ("for (var {a} = b;;) ;", "for ((   {a:$ip.a} = b);;) ;~", "a:Var", CellValue::None),
    (
        "for (let a of b) { let c; { var d } }",
        "for (let a of b) { let c; {      } }~",
        "d:Var",
        CellValue::None,
    ),
    (
        "using x = r, y = function() {}; await using z = w",
        "using $iu0=($ip.x = r), $iu1=($ip.y = {[\"y\"]:function() {}}[\"y\"]); await using $iu2=($ip.z = w);~",
        "x:Const y:Const z:Const",
        CellValue::None,
    ),
    // Imports and exports.
    (
        "import a, {b as c} from './a'; import * as n from 'lib'; import 's\\\n'; a + c",
        "                                                                  \n   $iv=(a + c);~",
        "a:Import(0 default) c:Import(0 b) n:Import(1 *)",
        CellValue::Expression,
    ),
    (
        "import {a} from 'x'; export {a}; export * from 'q'; import b from 'y'",
        "                                                                     ~",
        "a:Import(0 a) b:Import(2 default)",
        CellValue::None,
    ),
    (
        "export default () => 1",
        "$id=(          {[\"default\"]:() => 1}[\"default\"]);~d",
        "",
        CellValue::Default,
    ),
    (
        "export default function f() {}\nf",
        "$ip.f=$i_f;$id=$i_f;               function $i_f() {}\nf~d",
        "f:Function",
        CellValue::Default,
    ),
    (
        "export default class A {}",
        "               $id=$ip.A=class A {};~d",
        "A:Class",
        CellValue::Default,
    ),
    (
        "export default class {} // c",
        "$id={[\"default\"]:class {}}[\"default\"];~d // c",
        "",
        CellValue::Default,
    ),
    // Functions and classes.
    (
        "function f() { return f } async function* g() {}\nclass A {}\nexport class B extends A {}",
        "$ip.f=$i_f;$ip.g=$i_g;function $i_f() { return f } async function* $i_g() {}\n$ip.A=class A {};\n       $ip.B=class B extends A {};~",
        "f:Function g:Function A:Class B:Class",
        CellValue::None,
    ),
    ("{ function f() {} class A {} }", "{ function f() {} class A {} }~", "", CellValue::None),
    // Objects.
    ("#!x\n{}", "\n$iv=(({}));~", "", CellValue::Expression),
    ("{}", "$iv=(({}));~", "", CellValue::Expression),
    (
        "/* x */ { a, b: 2, ['c']() {} } // }",
        "/* x */ $iv=(({ a, b: 2, ['c']() {} }));~ // }",
        "",
        CellValue::Expression,
    ),
    ("{ a: 1 };", "{ a: $iv=(1); };~", "", CellValue::Completion),
    ("{} + {}", "{} $iv=(+ {});~", "", CellValue::Expression),
    // Values of other statements.
    ("l: { 1; break l }", "l: { $iv=(1); break l }~", "", CellValue::Completion),
    (
        "for (var i = 0; i < 3; i++) { if (i == 1) continue; i }",
        "for ($ip.i = 0; i < 3; i++) { $iv=void 0;if (i == 1) continue; $iv=(i); }~",
        "i:Var",
        CellValue::Completion,
    ),
    (
        "try { 0; 1 } catch (e) { var e = 2 } finally { 3 }",
        "try { 0; $iv=(1); } catch (e) {$iv=void 0;     e = 2; } finally { 3 }~",
        "e:Var",
        CellValue::Completion,
    ),
    (
        "for (x of y) try { 1 } catch { 2 } finally { break }",
        "for (x of y) {$iv=void 0;try { $iv=(1); } catch {$iv=void 0; $iv=(2); } finally {let $is=$iv;$iv=void 0; break ;$iv=$is;}}~",
        "",
        CellValue::Completion,
    ),
    (
        "1; if (x) 2; else if (y) 3",
        "1; if (x) $iv=(2); else if (y) $iv=(3);~",
        "",
        CellValue::Completion,
    ),
    ("1; { if (x) 2 }", "$iv=(1); { $iv=void 0;if (x) $iv=(2); }~", "", CellValue::Completion),
    (
        "switch (x) { case 1: 2; break; default: 3 }",
        "switch (x) { case 1: $iv=(2); break; default: $iv=(3); }~",
        "",
        CellValue::Completion,
    ),
];

#[test]
fn declarations_become_assignments_in_place() {
    for (text, code, declared, value) in CELLS {
        for language in LANGUAGES {
            let cell = cell(text, language);
            assert_eq!(squeezed(&body(&cell)), squeezed(code), "{text}");
            assert_eq!(names(&cell), *declared, "{text}");
            assert_eq!(cell.plan.value, *value, "{text}");
            assert_eq!(cell.module.text(), *text);
            assert!(cell.module.record().exports.is_empty());
        }
    }
}

/// The same for what TypeScript has beside that.
const TYPED: &[(&str, &str, &str)] = &[
    (
        "let a: T, b!: U, c = 1 as any",
        "$ip.a=void 0   , $ip.b=void 0    , $ip.c = 1       ;~",
        "a:Let b:Let c:Let",
    ),
    (
        "export enum E { A } enum E { B }",
        ";(function (E)  {E[E[\"A\"] = 0] = \"A\"; })($ip.E={}); ;(function (E) {E[E[\"B\"] = 0] = \"B\"; })(E);~",
        "E:Enum",
    ),
    (
        "namespace N.M { export const a = 1 }",
        ";(function (N) {let M;(function (M) { ;M.a =      1 ;})(M = N.M || (N.M = {}));})($ip.N={});~",
        "N:Namespace",
    ),
    ("class A {}; namespace A { 1 }", "$ip.A=class A {};; ;(function (A) { 1 })(A);~", "A:Class"),
    (
        "import b = N.b; import c = M.c; let x: c",
        "$ip.    b = N.b; $ip.x=void 0   ;~",
        "b:Const x:Let",
    ),
    (
        "import { T, type U, v } from 'x'; interface I {} declare let d: T; export type { T }",
        "                                                                                    ~",
        "T:Import(0 T) v:Import(0 v)",
    ),
    (
        "function f(): void; function f() {}",
        "$ip.f=$i_f;                    function $i_f() {}~",
        "f:Function",
    ),
];

#[test]
fn types_are_erased() {
    for (text, code, declared) in TYPED {
        let cell = cell(text, Language::TypeScript);
        assert_eq!(squeezed(&body(&cell)), squeezed(code), "{text}\n{}", body(&cell));
        assert_eq!(names(&cell), *declared, "{text}");
    }
    let text = "import { T, v } from 'x'; let a: T = v";
    let erase = ["T".to_owned()];
    let cell = compile_cell(text, Language::TypeScript, &erase, usize::MAX).expect("a cell");
    assert_eq!(names(&cell), "v:Import(0 v) a:Let");
}

#[test]
fn hidden_names_are_not_in_the_source() {
    for (text, parameter) in [
        ("a", "$ip"),
        ("'$i'", "$i0_p"),
        ("$i0, $i2, $i1_p", "$i3_p"),
        ("let \\u0024ip, \\u{24}i0", "$i1_p"),
        ("$i99999999999999999999999", "$i0_p"),
    ] {
        let code = cell(text, Language::JavaScript).module.code().to_owned();
        assert!(code.starts_with(&format!("export default async({parameter})")), "{text}: {code}");
    }
}

#[test]
fn places_lead_back_to_the_source() {
    for text in [
        "let { a, b } = here",
        "1;\nclass A {}\r\nexport default here // c",
        "{ a: here }",
        "/* \u{2028} */ {\r\n é: here, c }\r// }",
        "import a from 'a'; a\u{2028} for (var b of c) { here }",
        "#!x\nfunction f() {}\nhere",
    ] {
        for language in LANGUAGES {
            let module = cell(text, language).module;
            let mut lines =
                crate::modules::compile::text::lines::Lines::new(text, &module.line_terminators);
            let wanted = lines.position(text.find("here").expect("there"));
            let Code::Edited(edited) = &module.code else { panic!("{text}") };
            let at = module.code().find("here").expect("it stays");
            let start = edited.edits.code(lines.offset(wanted.line, 1).expect("its line"));
            let column = u32::try_from(at - start + 1).expect("a short line");
            assert_eq!(module.original(wanted.line, column), Some(wanted), "{text:?}");
        }
    }
}

#[test]
fn objects_are_parsed_again_as_objects() {
    for text in ["{ a: u.v(), b: /x/ }", "/* c */ { a: u.v(), b: /x/ } // }"] {
        let module = cell(text, Language::TypeScript).module;
        let place = |at: usize| {
            let column = u32::try_from(at + 1).expect("a short text");
            crate::data::outcome::Position { line: 1, column }
        };
        let at = |part: &str| place(text.find(part).expect("there"));
        let called = crate::modules::compile::explain::call_site::Called::Function("v".to_owned());
        let call = crate::modules::compile::explain::call_site::Call { place: at("v()"), called };
        assert_eq!(module.calls(&[call]), [Some(at("v()"))]);
        assert_eq!(module.regular_expressions().len(), 1);
    }
}

#[test]
fn errors_are_those_of_a_module() {
    for text in [
        "let a; let a",
        "var a;\nclass a {}",
        "import a from 'x'; function a() {}",
        "export default 1;\nexport default 2",
        "export { a }",
        "let a; export { a, a }",
        "let arguments = 1",
        "let await = 1",
        "{ a: 1, b: }",
        "let a =",
        "{ let a; var a }",
        "const a",
        "x = 010",
        "with (a) b",
        "break",
        "super()",
        "new.target",
        "import a from 'b' with { type: 'json' }",
    ] {
        for language in LANGUAGES {
            let error = compile_cell(text, language, &[], usize::MAX).expect_err("it is refused");
            let module = crate::modules::compile::compile(text, language, &[], usize::MAX);
            assert_eq!(error, module.expect_err("no module"), "{text}");
        }
    }
    for text in [
        "enum A {} let A",
        "enum A {} class A {}",
        "namespace A { 1 } const A = 1",
        "class A {} enum A {}",
        "function A() {} function A() {}",
        "export default function A() {} var A",
    ] {
        let error = compile_cell(text, Language::TypeScript, &[], usize::MAX);
        let message = error.expect_err("it is refused").message;
        assert!(message.starts_with("Identifier `A` has already been declared"), "{message}");
    }
}

mod hostile;
mod oracle;
