//! Remedies, one by one; texts that have none; hostile texts.
//!
//! The remedies that users see are cases in `tests/contract/mistakes-syntax.md`. These are their limits.

use std::time::{Duration, Instant};

use super::super::entries::compile;
use crate::{data::source::Language, os::sanitized::PATIENCE};

/// The remedy for a text and its line and column; an empty one if there is none.
fn advice(text: &str, language: Language) -> (String, u32, u32) {
    let error = compile(text, language, &[], usize::MAX).expect_err("it is refused");
    let position = error.position.expect("it has a place");
    let clause = error.message.split_once("; ").map(|(_, clause)| clause.to_owned());
    (clause.unwrap_or_default(), position.line, position.column)
}

fn ts(text: &str) -> String {
    advice(text, Language::TypeScript).0
}

fn js(text: &str) -> String {
    advice(text, Language::JavaScript).0
}

#[test]
fn a_doubt_leaves_the_message_alone() {
    for text in [
        // An entity, a fence and a diff that are not code.
        "const a = '&lt;' b;",
        "/*\n```js\n1\n```\n*/ const a = ;",
        "const a = `\n--- a\n+++ b\n`; const b = ;",
        // Names that are near to no keyword, or that are at no place for one.
        "items total = 1",
        "const x = counts rows;",
        "report total",
        "expect x",
        "match (a) {\n}",
        "watch (a) {\n}",
        "const cost = 1;\ncost rows = 1",
        "a b",
        // A line of its own begins a statement.
        "foo(a\nand b",
        // A colon at the end of a line that begins no block.
        "const a = b ? c :\n;",
        "switch (a) { case 1: const }",
        // A string next to a name, without another quote on the line.
        "const a = 'It's",
        // Quotation marks that close nothing.
        "const a = 'it’s nice;\nb",
        "const a = \"Ada’;\nb",
        "f('the users’ rows, 1);\nb",
        "const a = 'b;\n// don't",
        "const a = 'b;\nconst c = d';",
        // Statements in the braces of an arrow.
        "const f = (a) => { a.x: 5; }",
        "const f = () => { a ? b : : c };",
        "const f = () => { g(); a ? b : : c };",
        // A sign of JSX that nothing closes.
        "return <>;",
        // Brackets that may as well be one too many.
        "f(() => {\n  b(c));\n  d[0);\n});",
        // Words after code, though the code before them is none.
        "const a = ;\nThis adds the prices.",
        "x y\n```\n(",
        // The function around `return` may have ended too early.
        "function f() {\n  g();\n  }\n  return 1;\n}",
        // A statement that merely begins like another language.
        "for (const x 1) {}",
        "import a from 'a' 'b'",
        "export { a: b }",
        // Names at the start that are commands elsewhere.
        "npm = 1;\nconst b = ;",
        "$ = 1;\nconst b = ;",
        // A number after a comma, a `>` after a minus, a body after no parameters.
        "f(1,0 x)",
        "f(1,000)",
        "const a = [1,000];",
        "let a -= 1;",
        "const a = b - > c;",
        // A thin arrow that may lead to a member or to a body.
        "f(user->name);",
        "rows.forEach(row->save());",
        "x = user -> name;",
        "class A {\n  m(a)->number {\n  }\n}",
        "if (a) b() { c }",
        "const a = 5-01-1;",
        // A template that lost its beginning, a comment that lost its own, a private name.
        "f(`a ${b}`c`);",
        "** Some words of a comment. */",
        "class A {\n  ##a = 1;\n}",
        // A function behind a class that is not closed.
        "class A {\n  f() {}\nfunction g() {}",
        // A tag that nothing closes.
        "const a = <b c",
    ] {
        assert_eq!(ts(text), "", "{text}");
    }
}

#[test]
fn a_thin_arrow_leads_to_a_member_or_to_a_body() {
    for (text, expected) in [
        ("const n = user->name;", "."),
        ("user->save();", "."),
        ("$user->save();", "."),
        ("this->x = 5;", "."),
        ("const n = load()->name;", "."),
        ("const n = rows[0]->id;", "."),
        ("f(1)(2)->bar();", "."),
        ("const n = user->a + user->b;", "."),
        ("if (user->active) {}", "."),
        ("const user = 1;\nf(user->name);", "."),
        ("const d = (n) -> n * 2;", "=>"),
        ("const d = n -> n * 2;", "=>"),
        ("rows.map(r->r.id);", "=>"),
        ("const d = () -> 5;", "=>"),
        ("const d = (a, b)->load();", "=>"),
        ("const d = (a) -> load();", "=>"),
        ("const d = (a)->{\n  return 1;\n};", "=>"),
        ("rows.filter(_->true);", "=>"),
        ("const d = async(n)->n * 2;", "=>"),
        ("const d = ({ id }) -> id;", "=>"),
    ] {
        let clause = format!("write {expected} in place of ->");
        assert_eq!([ts(text), js(text)], [clause.as_str(); 2], "{text}");
    }
}

#[test]
fn types_are_what_blanks_can_replace() {
    const CLAUSE: &str = "this source is run as JavaScript: leave the types out";
    for (text, expected) in [
        ("const a: number = 1;", CLAUSE),
        ("const f = () => {\n  let a: number[] = [];\n};", CLAUSE),
        ("export type A = 1;", CLAUSE),
        ("let é: string = 'ü';", CLAUSE),
        ("enum A { B }", ""),
        ("namespace A { export const b = 1; }", ""),
        ("class A { constructor(private a) {} }", ""),
        ("export = 1;", ""),
        ("import a = require('a');", ""),
        ("export { a };", ""),
        ("function f() {\n  export const a = 1;\n}", ""),
    ] {
        assert_eq!(js(text), expected, "{text}");
    }
}

/// The cases of the contract, each in both languages. Those that have types are left out: as JavaScript they have a second
/// mistake.
#[test]
fn remedies_are_the_same_in_both_languages() {
    const CASES: &str = include_str!("../../../../../tests/contract/mistakes-syntax.md");
    let mut compared = 0;
    for case in CASES.split("\n## ").skip(1) {
        let fence = ["\n```js\n", "\n```ts\n"].into_iter().find_map(|fence| case.split_once(fence));
        let (_, code) = fence.expect("a case has an entry");
        let code = code.split_once("\n```").map_or(code, |(code, _)| code);
        let code =
            code.replace("⟦u0060⟧", "`").replace("⟦u005C⟧", "\\").replace("⟦u2060⟧", "\u{2060}");
        let clause = |language| {
            let error = compile(&code, language, &[], usize::MAX).err()?;
            Some(error.message.split_once("; ").map(|(_, clause)| clause.to_owned()))
        };
        let (js, ts) = (clause(Language::JavaScript), clause(Language::TypeScript));
        let typed = [": number", "[]", "enum ", "import shop =", "export ="];
        if ts.is_some() && !typed.iter().any(|sign| code.contains(sign)) {
            assert_eq!(js, ts, "{case}");
            compared += 1;
        }
    }
    assert!(compared > 150, "{compared}");
}

#[test]
fn functions_are_named_as_far_as_they_have_a_name() {
    for (text, expected) in [
        ("function f() { await 1 }", "mark 'f' as async"),
        ("const f = () => await 1;", "mark 'f' as async"),
        ("const o = { f: function () { await 1 } };", "mark 'f' as async"),
        ("const o = { f() { await 1 } };", "mark 'f' as async"),
        ("class A { f = () => { await 1 } }", "mark 'f' as async"),
        ("class A { get f() { await 1 } }", "a getter cannot be async"),
        ("class A { set f(a) { await 1 } }", "a setter cannot be async"),
        ("\n(() => { await 1 })()", "mark the function that begins on line 2 as async"),
        (
            "a.map(\n(b) => await b)",
            "mark the function that begins on line 2 as async, and await Promise.all(…) of the results",
        ),
        (
            "async function f() { function g() {} a.forEach(b => { await b }) }",
            "a callback is no loop: write for (const … of …)",
        ),
        (
            "a.some((b) => await b)",
            "'some' does not wait for its callback: await before it, or write a loop",
        ),
        (
            "const f = g(function () { await 1 })",
            "mark the function that begins on line 1 as async",
        ),
        ("function f() { const g = (a) => a; await 1 }", "mark 'f' as async"),
        (
            "function* f() { a.map((b) => { yield b }) }",
            "a callback is no loop: write for (const … of …)",
        ),
        ("const f = () => { yield 1 }", "an arrow function is no generator: write function*"),
        ("(function () { yield 1 })()", "make its function a generator: write function*"),
        ("a.map(() => { break })", ""),
    ] {
        assert_eq!(js(text), expected, "{text}");
        assert_eq!(ts(text), expected, "{text}");
    }
    let long = format!("function {}() {{ await 1 }}", "f".repeat(500));
    assert_eq!(js(&long), format!("mark '{}' as async", "f".repeat(40)));
}

#[test]
fn the_bracket_that_is_not_closed_is_named() {
    for (text, expected) in [
        ("f(\n[1,\n2", "the '[' on line 2 is not closed"),
        ("f(() => {\n  if (a) {\n    b();\n})", "the '{' on line 2 is not closed"),
        ("class A {\n  f() {\n    b();\n\nexport default 1;", "the '{' on line 2 is not closed"),
        ("const a = [1, 2;", "the '[' on line 1 is not closed"),
        ("f(a, b\nconst c = 1;", "the '(' on line 1 is not closed"),
        ("f(1))", "no '(' is open here"),
        ("if (a) {\n  b(c));\n}", "no '(' is open here"),
        ("a]", "no '[' is open here"),
        ("f(() => {\n  b(c));\n});", "leave the ')' out"),
        ("f({ a: [1, 2]] });", "no '[' is open here"),
        ("f([1, 2]]);", "leave the ']' out"),
        ("f(g(1, 2]);", "the '(' on line 1 is not closed"),
        ("const a =", "the text ends within a statement"),
        ("for (let i = 0; i < 1", "the '(' on line 1 is not closed"),
    ] {
        assert_eq!(ts(text), expected, "{text}");
    }
}

#[test]
fn places_are_those_of_the_mistakes() {
    for (text, expected) in [
        ("é; cosnt a = 1", ("did you mean 'const'?", 1, 4)),
        ("const a = 1;\nlet b, a;", ("it is declared on line 1", 2, 8)),
        ("x = 1\n  elif (y) {}", ("write else if in place of 'elif'", 2, 3)),
        ("if (a &amp;&amp; b) c", ("'&amp;' is HTML: write &", 1, 7)),
        ("\n\nJust a test.\nconst a = 1;", ("line 3 is no code: send the code alone", 3, 1)),
        ("const a = 1 – 1", ("write - in place of – (U+2013)", 1, 13)),
        ("const a = 'b’;", ("write ' in place of ’ (U+2019)", 1, 13)),
    ] {
        let (clause, line, column) = expected;
        assert_eq!(advice(text, Language::TypeScript), (clause.to_owned(), line, column), "{text}");
    }
}

#[test]
fn a_fence_begins_no_program() {
    for text in
        ["```ts\n1\n```", "\n ```\n1", "~~~js\n1\n~~~", "```", "\u{feff}```ts\n`", "``` ```"]
    {
        let error =
            compile(text, Language::TypeScript, &[], usize::MAX).expect_err("it is refused");
        assert_eq!(error.message, super::FENCED, "{text}");
    }
    for text in ["``", "`a```", "/* ``` */", "~~1"] {
        assert!(compile(text, Language::TypeScript, &[], usize::MAX).is_ok(), "{text}");
    }
}

/// Texts that a rule might read again and again, each with an error at its end or at its start.
#[test]
fn advice_takes_linear_time_and_no_deep_stack() {
    for unit in [
        "(",
        "{",
        "[",
        "`${",
        "a=>",
        "&lt;",
        "\n```\n",
        "a\n",
        "x b c d\n",
        "// a\n",
        "'\n",
        "f(a, ",
        "if (a) {\n",
        "}\n",
        "<a>",
        "<a ",
        "#",
        "\\",
        "…",
        "import a\n",
        "def f(a):\n",
        "`",
        "\"\"",
        "x.map(() => ",
        "function f() { ",
        "await ",
        "class A { f = () => ",
        "?.",
        "=",
        "a: ",
        " ",
        "const a = {",
        "@a ",
        "\u{2060}",
        "and ",
        "export ",
        "Just a few words here\n",
    ] {
        for length in [1 << 12, super::tokens::LONGEST_PARSED - 16, super::LONGEST - 16] {
            let body = unit.repeat(length / unit.len());
            for text in [format!("{body};)"), format!(") {body}"), format!("a b\n{body}"), body] {
                for language in [Language::JavaScript, Language::TypeScript] {
                    let started = Instant::now();
                    if let Err(error) = compile(&text, language, &[], usize::MAX) {
                        assert!(error.message.len() <= 1100, "{}", error.message);
                    }
                    let most = Duration::from_mins(2) * PATIENCE;
                    let took = started.elapsed();
                    assert!(took < most, "{unit} {took:?}");
                }
            }
        }
    }
}

/// Programs with a slip at every place: the remedy is given or not, and nothing fails.
#[test]
fn slips_anywhere_are_explained_or_not() {
    let programs = [
        "import { a, b as c } from 'shop';\nexport default async function total(rows) {\n  const x = \
         `sum ${rows.map((r) => ({ id: r.id }))} of`;\n  for (const r of rows) if (r?.a > 1 && !/[/]/.test(r)) \
         await c(r);\n  return x;\n}\n",
        "Here is it:\n```ts\nenum E { A = 1 }\nclass B<T> extends C { @d x: T = <T>1; get y() { return 'é'; } }\n```\n",
        "def f(x):\n  return not x and f\"{x}\"\n",
        "{\n  \"a\": [1, 2, {\"b\": null}],\n}",
    ];
    let slips = [
        "", "(", "}", "`", "'", "\\", "<a>", "é", "…", "\n", "...", "await ", "#", "\u{feff}",
        "&lt;",
    ];
    for program in programs {
        let places = program.char_indices().map(|(at, char)| (at, at + char.len_utf8()));
        for (start, end) in places {
            for slip in slips {
                let text = format!("{}{slip}{}", &program[..start], &program[end..]);
                for language in [Language::JavaScript, Language::TypeScript] {
                    if let Err(error) = compile(&text, language, &[], usize::MAX) {
                        assert!(!error.message.is_empty() && error.message.len() <= 1100);
                    }
                }
            }
        }
    }
}
