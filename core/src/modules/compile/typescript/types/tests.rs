//! Erasing in place beside printing: the same program, and every token where it stood.

use std::path::Path;

use oxc_allocator::Allocator;
use oxc_ast::ast::{Program, Statement};
use oxc_codegen::{Codegen, CodegenOptions, CommentOptions};
use oxc_parser::{ParseOptions, Parser};
use oxc_semantic::SemanticBuilder;
use oxc_transformer::{TransformOptions, Transformer};

use super::super::{erase, namespaces::Namespaces};
use crate::{
    data::source::Language,
    modules::compile::{
        CompileError, CompiledModule, compile,
        module::Code,
        parse::source_type,
        text::{blanks::Blanks, lines::Silent},
    },
};

fn typescript(text: &str) -> Result<CompiledModule, CompileError> {
    compile(text, Language::TypeScript, &[], usize::MAX)
}

/// The code of a text.
fn code(text: &str) -> String {
    let module = typescript(text).unwrap_or_else(|error| panic!("{text}: {}", error.message));
    module.code().to_owned()
}

/// The code that another compiler makes of a text.
fn printed(text: &str) -> String {
    let allocator = Allocator::default();
    let mut program = Parser::new(&allocator, text, source_type(true)).parse().program;
    let scoping =
        SemanticBuilder::new().with_enum_eval(true).build(&program).semantic.into_scoping();
    let mut options = TransformOptions::default();
    options.typescript.only_remove_type_imports = true;
    let namespaces = Namespaces::new(&program, &scoping, false);
    let silent = Silent::default();
    let mut ignored = Blanks::new(text, &silent);
    erase::erase_type_imports(&mut program, &scoping, &[], &namespaces, &mut ignored, false);
    let transformer = Transformer::new(&allocator, Path::new(""), &options);
    let transformed = transformer.build_with_scoping(scoping, &mut program);
    assert!(transformed.diagnostics.is_empty(), "{text}");
    print(&program)
}

fn print(program: &Program<'_>) -> String {
    let comments = CommentOptions::disabled();
    let options = CodegenOptions { comments, indent_width: 0, ..CodegenOptions::default() };
    Codegen::new().with_options(options).build(program).code
}

/// A program in one form, whatever its white space, without empty statements and brackets.
fn canonical(code: &str) -> String {
    let allocator = Allocator::default();
    let options = ParseOptions { preserve_parens: false, ..ParseOptions::default() };
    let parser = Parser::new(&allocator, code, source_type(false)).with_options(options);
    let parsed = parser.parse();
    let error = parsed.diagnostics.first().map(|error| error.message.to_string());
    assert_eq!((error, parsed.panicked), (None, false), "{code}");
    let mut program = parsed.program;
    program.body.retain(|statement| match statement {
        Statement::EmptyStatement(_) => false,
        Statement::ExportNamedDeclaration(export) => !export.specifiers.is_empty(),
        _ => true,
    });
    // The other compiler keeps a string from being a directive in another way.
    let printed = print(&program).replace(", {} from", " from").replace("void \"use", "(\"use");
    let printed = printed.replace("strict\");", "strict\";");
    printed
        .lines()
        .filter(|line| !matches!(*line, ";" | ""))
        .fold(String::new(), |all, line| all + line + "\n")
}

/// Compares both ways. False if the text does not compile.
fn agree(text: &str) -> bool {
    let Ok(module) = typescript(text) else { return false };
    assert_eq!(canonical(module.code()), canonical(&printed(text)), "{text}\n{}", module.code());
    let run =
        compile(module.code(), Language::JavaScript, &[], usize::MAX).expect("it is a program");
    assert_eq!(module.record.exports, run.record.exports, "{text}");
    let specifiers = |module: &CompiledModule| -> Vec<_> {
        module.record.requests.iter().map(|request| request.specifier.clone()).collect()
    };
    assert_eq!(specifiers(&module), specifiers(&run), "{text}");
    if text.len() == module.code().len() {
        stays(text, module.code());
    }
    true
}

/// Asserts that each byte of the code is that of the text, white space, or a mark that separates.
fn stays(text: &str, code: &str) {
    assert_eq!(text.len(), code.len(), "{text}");
    for (at, (before, after)) in text.bytes().zip(code.bytes()).enumerate() {
        assert!(
            before == after || matches!(after, b' ' | b';' | b'(' | b')'),
            "{text}: {before} became {after} at {at}"
        );
        assert!(after != b'\n' || before == b'\n', "{text}");
        assert!(before != b'\n' || after == b'\n', "{text}");
    }
}

/// Texts with their code, in which a `~` stands for a blank.
const ERASED: &[(&str, &str)] = &[
    (
        "let a: number = <any>1 as string satisfies T; a!;",
        "let a~ ~~~~~~ = ~~~~~1 ~~ ~~~~~~ ~~~~~~~~~ ~; a~;",
    ),
    (
        "interface A {} type B = A; declare const c: B;\nd",
        "~~~~~~~~~ ~ ~~ ~~~~ ~ ~ ~~ ~~~~~~~ ~~~~~ ~~ ~~\nd",
    ),
    (
        "function f(a: A): void; function f(this: X, a?: any) {}",
        "~~~~~~~~ ~~~~ ~~~ ~~~~~ function f(~~~~~ ~~ a~~ ~~~) {}",
    ),
    (
        "abstract class A<T> extends B<T> implements C { private declare x: 1; y!: T; [k: string]: T }",
        "~~~~~~~~ class A~~~ extends B~~~ ~~~~~~~~~~ ~ { ~~~~~~~ ~~~~~~~ ~~ ~~ y~~ ~; ~~~ ~~~~~~~~ ~ }",
    ),
    ("const a = b as T\n(c)", "const a = b;~~ ~\n(c)"),
    ("const a = b satisfies T\n`c`", "const a = b;~~~~~~~~~ ~\n`c`"),
    ("a!\n[0]", "a~\n[0]"),
    ("const a = b\ntype T = A\n(c)", "const a = b\n;~~~ ~ ~ ~\n(c)"),
    ("const a = b\ninterface T {}\n[c].d", "const a = b\n;~~~~~~~~ ~ ~~\n[c].d"),
    ("const a = b\ndeclare let c: T\n`d`", "const a = b\n;~~~~~~ ~~~ ~~ ~\n`d`"),
    (
        "const a = b\nimport { T } from 'x'\n(a as T)",
        "const a = b\n;~~~~~ ~ ~ ~ ~~~~ ~~~\n(a ~~ ~)",
    ),
    ("const a = b\ntype T = A\nc", "const a = b\n~~~~ ~ ~ ~\nc"),
    ("let a: T\n[b] = c", "let a; ~\n[b] = c"),
    ("if (a) b as T\nelse c!", "if (a) b;~~ ~\nelse c;"),
    ("const f = (a): T\n | U => a", "const f = (a~~ ~\n ~ ) => a"),
    ("const f = (a)\n : T => a", "const f = (a~\n ~ ) => a"),
    ("const f = (a) // b\n : T => a", "const f = (a~ // b\n ~ ) => a"),
    ("const f = async <\nT>(a) => a", "const f = async (\n~~~a) => a"),
    ("function f() { return <\nT>(a) => a }", "function f() { return (\n~~~a) => a }"),
    ("function f() { return <T>(\n a) }", "function f() { return ~~~(\n a) }"),
    ("const f = <T,>() => 1", "const f = ~~~~() => 1"),
    ("class A { a: T\n[b] }", "class A { a; ~\n[b] }"),
    ("class A { a = 1\npublic [b] = 2 }", "class A { a = 1\n;~~~~~ [b] = 2 }"),
    ("class A { a = 1\nprivate *b() {} }", "class A { a = 1\n;~~~~~~ *b() {} }"),
    ("class A { a = 1\nreadonly in: T }", "class A { a = 1\n;~~~~~~~ in; ~ }"),
    ("class A { a = 1\ndeclare b: T\n*c() {} }", "class A { a = 1\n;~~~~~~ ~~ ~\n*c() {} }"),
    ("class A { get: T\na() {} static?: T\nb }", "class A { get; ~\na() {} static;~ ~\nb }"),
    (
        "class A { readonly readonly: T; static async a?() {} }",
        "class A { ~~~~~~~~ readonly~ ~; static async a~() {} }",
    ),
    (
        "class A { /* a */ public /* b */ static /* c */ override d(): T {} }",
        "class A { /* a */ ~~~~~~ /* b */ static /* c */ ~~~~~~~~ d()~ ~ {} }",
    ),
    ("import { type A, b } from 'x'; b", "import { ~~~~ ~~ b } from 'x'; b"),
    ("import a, { type B } from 'x'; a", "import a, { ~~~~ ~ } from 'x'; a"),
    ("import a, { b } from 'x'; b as a", "import ~~ { b } from 'x'; b;~~ ~"),
    ("import a, * as b from 'x'; a as b.T", "import a~ ~ ~~ ~ from 'x'; a;~~ ~~~"),
    ("import a, * as b from 'x'; b as a", "import ~~ * as b from 'x'; b;~~ ~"),
    ("export { type A, b }; let b: A; type A = 1", "export { ~~~~ ~~ b }; let b~ ~; ~~~~ ~ ~ ~"),
    ("export { T, a }; interface T {} let a = 1", "export { ~~ a }; ~~~~~~~~~ ~ ~~ let a = 1"),
    (
        "export type { A } from 'x'; export * from 'y'",
        "~~~~~~ ~~~~ ~ ~ ~ ~~~~ ~~~~ export * from 'y'",
    ),
    (
        "(a as T) = 1; b! = 1; (<T>c).d++; [e as T] = f",
        "(a ~~ ~) = 1; b~ = 1; (~~~c).d++; [e ~~ ~] = f",
    ),
    ("for (a as T of b) {}", "for (a ~~ ~ of b) {}"),
    ("new A<T>; f<T>`a`; a?.b!.c; a?.<T>(b); f<T>", "new A~~~; f~~~`a`; a?.b~.c; a?.~~~(b); f;~~"),
    ("try {} catch (e: unknown) {}", "try {} catch (e~ ~~~~~~~) {}"),
    ("let a: 'é' = 1, b: É = 2", "let a~ ~~~~ = 1, b~ ~~ = 2"),
    ("export default <T>{ a: 1 }", "export default ~~~{ a: 1 }"),
    (
        "function f(this: A,) {} function g(this: A /* , */ , b) {}",
        "function f(~~~~~ ~~) {} function g(~~~~~ ~ ~~ ~ ~~ ~ b) {}",
    ),
    (
        "declare global { var a: 1 } declare module 'x' {} declare enum E {}",
        "~~~~~~~ ~~~~~~ ~ ~~~ ~~ ~ ~ ~~~~~~~ ~~~~~~ ~~~ ~~ ~~~~~~~ ~~~~ ~ ~~",
    ),
    ("let x = y as T // c\n(d)", "let x = y;~~ ~ // c\n(d)"),
    ("type A = 1;\n'use strict'", ";~~~ ~ ~ ~~\n'use strict'"),
    (
        "abstract class A { abstract a: T; abstract b(): void; override get c(): T { return 1 } }",
        "~~~~~~~~ class A { ~~~~~~~~ ~~ ~~ ~~~~~~~~ ~~~~ ~~~~~ ~~~~~~~~ get c()~ ~ { return 1 } }",
    ),
    (
        "let a = { b<T>(this: X, c: T): U { return c as any } }",
        "let a = { b~~~(~~~~~ ~~ c~ ~)~ ~ { return c;~~ ~~~ } }",
    ),
    (
        "class A<T> implements B<T>, C {} let a = class implements D {}",
        "class A~~~ ~~~~~~~~~~ ~~~~~ ~ {} let a = class ~~~~~~~~~~ ~ {}",
    ),
    ("let a!: T, { b }: T = c, [d]: T = e", "let a~~ ~, { b }~ ~ = c, [d]~ ~ = e"),
    (
        "const f = async (a: T, ...b: U[]): Promise<T> => a",
        "const f = async (a~ ~, ...b~ ~~~)~ ~~~~~~~~~~ => a",
    ),
    (
        "switch (a as T) { case <U>b: c as V\ndefault: d! }",
        "switch (a ~~ ~) { case ~~~b: c;~~ ~\ndefault: d; }",
    ),
    (
        "import { T } from 'x'\nimport type { U } from 'y'\nlet t: T",
        "~~~~~~ ~ ~ ~ ~~~~ ~~~\n~~~~~~ ~~~~ ~ ~ ~ ~~~~ ~~~\nlet t; ~",
    ),
    (
        "class A extends (B as any)<T> { constructor(); constructor(a?: T) { super(a!) } }",
        "class A extends (B ~~ ~~~)~~~ { ~~~~~~~~~~~~~~ constructor(a~~ ~) { super(a~) } }",
    ),
    (
        "export abstract class A {} export default abstract class {}",
        "export ~~~~~~~~ class A {} export default ~~~~~~~~ class {}",
    ),
    (
        "export function f(): void;\nexport function f() {}",
        "~~~~~~ ~~~~~~~~ ~~~~ ~~~~~\nexport function f() {}",
    ),
    ("a?.b! as T", "a?.b~;~~ ~"),
];

#[test]
fn types_become_blanks() {
    for (text, expected) in ERASED {
        assert_eq!(code(text), expected.replace('~', " "), "{text}");
        assert!(agree(text));
    }
}

/// Texts whose meaning blanks alone would change, with their code.
const BRACKETED: &[(&str, &str)] = &[
    ("function f() { return <T>\n a }", "function f() { return (~~\n a) }"),
    ("function f() { throw <T\n>a }", "function f() { throw (~\n~a) }"),
    ("function* f() { yield <T> // a\n a }", "function* f() { yield (~~ ~~ ~\n a) }"),
    ("<T>{ a: 1 }.a", "(~~{ a: 1 }.a)"),
    ("<T>function () {}", "(~~function () {})"),
    ("<T><U>class {}", "~~~(~~class {})"),
    ("const f = () => <T>{ a: 1 }", "const f = () => (~~{ a: 1 })"),
    ("export default <T>function () {}", "export default (~~function () {})"),
    ("'use strict' as T", "void 'use strict';~~ ~"),
    ("function f(a = 1) { <T>'use strict' }", "function f(a = 1) { void ~~~'use strict' }"),
    ("for (async as T of a) {}", "for ((async ~~ ~) of a) {}"),
    ("for (<T>async of a) {}", "for ((~~~async) of a) {}"),
    ("-a as T ** 2", ";(-a ~~ ~) ** 2"),
    ("if (b) -a as T ** 2", "if (b) (-a ~~ ~) ** 2"),
    ("class A { get\n*a() {} }", "class A { get;\n*a() {} }"),
    ("class A { private static }", "class A { ~~~~~~~ static; }"),
];

#[test]
fn brackets_keep_the_meaning() {
    for (text, expected) in BRACKETED {
        assert_eq!(code(text), expected.replace('~', " "), "{text}");
        assert!(agree(text));
    }
}

#[test]
fn text_without_types_stays_as_it_is() {
    for text in [
        "",
        "#!x\nconst a = b\n(c)",
        "class A { static async *[a]() {} get; readonly }",
        "import 'x'; export {}",
    ] {
        let module = typescript(text).expect("it compiles");
        assert!(matches!(module.code, Code::AsWritten), "{text}");
    }
}

/// Compares all combinations of parts. Returns how many were erased in place.
fn combine(parts: &[&[&str]], shape: &dyn Fn(&str) -> String) -> usize {
    let mut texts = vec![String::new()];
    for part in parts {
        texts = texts
            .iter()
            .flat_map(|text| part.iter().map(move |one| format!("{text}{one}")))
            .collect();
    }
    texts.iter().filter(|text| agree(&shape(text))).count()
}

/// The starts of statements, some of which could continue the one before.
const STARTS: &[&str] = &[
    "(c)",
    "(c) => d",
    "[c].d",
    "`c`",
    "/c/g.test(d)",
    "+c",
    "-c",
    "++c",
    "!c",
    "'c'",
    "c",
    "{}",
    "<T>c",
    "<T>(c)",
    "<T>[c]",
    "<T>(c: T) => d",
    "c!",
    "async (c: T) => d",
    "async <T>(c) => d",
    "function f(): T {}",
    "abstract class C {}",
    "let c: T",
    "type U = T",
    "interface U {}",
    "declare let c: T",
    "import { U } from 'x'; let d: U",
    "export type { V }",
    "",
];

#[test]
fn statements_stay_apart() {
    let heads: &[&str] = &[
        "const a = b",
        "a = b",
        "a",
        "let a: T",
        "let a!: T",
        "a++",
        "a = () => {}",
        "a = () => b",
        "a = class {}",
    ];
    let ends: &[&str] =
        &["", " as T", " satisfies T", "!", "<T>", " as T as U", "! as T", " as T // e", ";"];
    let between: &[&str] = &[
        "\n",
        "\ntype T = A\n",
        "\ninterface T {}\n",
        "\ndeclare const d: T; declare function g(): T\n",
    ];
    let plain = combine(&[heads, ends, between, STARTS], &|text| format!("type V = 1; {text}"));
    assert!(plain > 1_500, "{plain}");
    let within = combine(
        &[&["return b", "throw b", "yield b", "await b"], ends, between, STARTS],
        &|text| {
            if text.contains("import") || text.contains("export") {
                String::new()
            } else {
                format!("async function* f() {{ {text} }}")
            }
        },
    );
    assert!(within > 500, "{within}");
    let nested = combine(
        &[
            &["if (a) ", "if (a) while (b) ", "for (;;) if (a) "],
            &["b", "b = c", "f()"],
            ends,
            &["\nelse d", "\nelse d as T", ""],
        ],
        &|text| text.to_owned(),
    );
    assert!(nested > 100, "{nested}");
}

#[test]
fn members_stay_apart() {
    let modifiers: &[&str] = &[
        "",
        "public ",
        "static ",
        "private static ",
        "readonly ",
        "declare ",
        "abstract ",
        "protected override ",
    ];
    let names: &[&str] = &[
        "a",
        "get",
        "set",
        "static",
        "async",
        "in",
        "readonly",
        "declare",
        "[a]",
        "'a'",
        "#a",
        "*a() {}",
        "async a<T>() {}",
        "get a(): T { return 1 }",
    ];
    let ends: &[&str] =
        &["", ": T", "?: T", "!: T", " = 1", ": T = b as T", " = b!", " = <T>b", "(): void"];
    let next: &[&str] = &[
        "\n[c]",
        "\nc",
        "\n*c() {}",
        "\nc() {}",
        "\nprivate [c]: T",
        "\nin: T",
        "\n[c: string]: T; [d]",
        "\nstatic {}",
        "",
    ];
    let count = combine(&[modifiers, names, ends, next], &|text| {
        let head = if text.contains("abstract") { "abstract class" } else { "class" };
        format!("{head} A extends B {{ x = 1\n{text} }}")
    });
    assert!(count > 1_000, "{count}");
}

#[test]
fn functions_keep_their_arrows() {
    let heads: &[&str] = &["f = ", "x = await ", "f = a ? b : ", "export default ", "f = g(b, "];
    let keywords: &[&str] = &["", "async "];
    let generics: &[&str] = &["", "<T>", "<T,>", "<\nT\n>", "<T extends U> /* d */ ", "<T>/*\n*/"];
    let parameters: &[&str] =
        &["()", "(a: T)", "(a?: T, ...b: U[])", "({ a }: T = b as T)", "(\na: T, // e\n)"];
    let returns: &[&str] =
        &["", ": T", ": a is T", "\n: T", ": {\n a: 1 }", " /*\n*/: T", ": (b: T) =>\n U"];
    let bodies: &[&str] =
        &[" => a", " => ({}) as T", " => { return a! }", " => <T>(a)", " => <T>{}"];
    let count = combine(&[heads, keywords, generics, parameters, returns, bodies], &|text| {
        if text.starts_with("f = g(") { format!("{text})") } else { text.to_owned() }
    });
    assert!(count > 5_000, "{count}");
}

#[test]
fn operators_keep_their_operands() {
    let operators: &[&str] =
        &[" + ", " * ", " ** ", " < ", " == ", " && ", " ?? ", " in ", ", ", " ? b : ", " = ", "."];
    let values: &[&str] = &[
        "a", "-a", "a!", "(a as T)", "<T>a", "a as T", "a?.b!", "f<T>(a)", "new A<T>", "await a",
        "{}",
    ];
    let second: &[&str] = &[" + ", " ** ", " < ", " && "];
    let third: &[&str] = &["a", "a as T"];
    let count = combine(&[values, operators, values, second, third], &|text| format!("x = {text}"));
    assert!(count > 5_000, "{count}");
}
