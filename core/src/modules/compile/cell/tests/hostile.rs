//! Cells that mean harm: names that mean something to objects, long and deep texts.

use std::time::{Duration, Instant};

use super::*;

#[test]
fn names_of_objects_are_names() {
    for name in ["then", "__proto__", "constructor", "undefined", "toString", "async", "of", "get"]
    {
        for (text, code) in [
            (format!("let {name} = 1"), format!("$ip.{name} = 1;~")),
            (
                format!("var {{ {name} = () => 1 }} = {{}}"),
                format!(
                    ";({{ {name}:$ip.{name} = {{[\"{name}\"]:() => 1}}[\"{name}\"] }} = {{}});~"
                ),
            ),
            (
                format!("function {name}() {{}}"),
                format!("$ip.{name}=$i_{name};function $i_{name}() {{}}~"),
            ),
            (format!("class {name} {{}}"), format!("$ip.{name}=class {name} {{}};~")),
        ] {
            // A class of that name is refused for its own sake.
            let Ok(cell) = compile_cell(&text, Language::JavaScript, &[], usize::MAX) else {
                panic!("{text}")
            };
            assert_eq!(squeezed(&body(&cell)), squeezed(&code), "{text}");
        }
    }
    for name in ["arguments", "await", "eval", "yield", "let", "static", "if", "\\u0061wait"] {
        for text in [format!("let {name} = 1"), format!("function {name}() {{}}")] {
            for language in LANGUAGES {
                let cell = compile_cell(&text, language, &[], usize::MAX);
                assert!(cell.is_err(), "{text} {language:?}");
            }
        }
    }
    let cell =
        cell("let \\u0061 = () => 1; class \\u{62} {}; let { \\u0063 } = a", Language::JavaScript);
    assert_eq!(names(&cell), "a:Let b:Class c:Let");
    let code = "$ip.\\u0061 = {[\"a\"]:() => 1}[\"a\"];";
    assert!(body(&cell).contains(code), "{}", body(&cell));
}

/// Numbered copies of a text.
fn numbered(text: &str, count: usize) -> String {
    (0..count).map(|number| text.replace('@', &number.to_string())).collect()
}

/// Far above what such a text takes, and far below what it would take by the square of its length.
const CEILING: Duration = Duration::from_mins(2).saturating_mul(crate::os::sanitized::PATIENCE);

fn ends_in_time(text: &str) {
    for language in LANGUAGES {
        let started = Instant::now();
        let cell = compile_cell(text, language, &[], usize::MAX);
        let elapsed = started.elapsed();
        assert!(elapsed < CEILING, "{text:.60} {language:?} {elapsed:?}");
        if let Ok(cell) = cell {
            let (code, text) = (cell.module.code().len(), text.len());
            assert!(code < 200 + 12 * text, "{text} bytes became {code}");
        }
    }
}

#[test]
fn long_cells_compile_in_linear_time() {
    for line in [
        "let a@;",
        "var a@ = 1, b@ = () => 1\n",
        "const { a@, b@: [c@] } = d;",
        "class a@ {}\n",
        "function a@() {}\n",
        "import a@ from 'x';",
        "import { a@ as b@ } from 'x';",
        "a;",
        "if (a) b; else for (;;) break;",
        "for (var a@ of b) try { c } finally { continue }\n",
        "switch (a) { case @: b; break; default: c }\n",
        "{ var a; }",
        "var a;",
        "$i@;",
        "enum A@ { B }\n",
        "namespace A { @ }\n",
        "'@';",
    ] {
        ends_in_time(&numbered(line, 1_000_000 / line.len()));
    }
    let within = |open: &str, count: usize, middle: &str, close: &str| {
        format!("{}{middle}{}", open.repeat(count), close.repeat(count))
    };
    for text in [
        within("{", 7_000, &"a;".repeat(300_000), "}"),
        within("{", 7_000, &numbered("var a@;", 100_000), "}"),
        within("for(;;){", 3_000, &"a;".repeat(100_000), "}"),
        within("try{", 3_000, &"a;".repeat(100_000), "}catch(e){var e;f}finally{break}"),
        within("if(a)", 5_000, &format!("{{{}}}", "b;".repeat(100_000)), ""),
        format!("{{}}/*{}*/", "}".repeat(1_000_000)),
        format!("{{a:{}}}", within("{a:", 3_000, "1", "}")),
        format!("let {} = () => 1", "a".repeat(1_000_000)),
        format!("for(;;){{{}{{{}}}}}", numbered("l@:", 3_000), numbered("break m@;", 50_000)),
    ] {
        ends_in_time(&text);
    }
}

#[test]
fn memory_is_counted() {
    let text = numbered("let a@;", 10_000);
    let takes = cell(&text, Language::JavaScript).module.takes_bytes();
    let error = compile_cell(&text, Language::JavaScript, &[], takes - 1).expect_err("no room");
    assert_eq!(error.needed_bytes, Some(takes));
    assert!(compile_cell(&text, Language::JavaScript, &[], takes).is_ok());
}

#[test]
fn odd_texts_are_cells() {
    for text in [
        "",
        " ",
        "\n",
        "#!x",
        "#!x\u{2028}1",
        "'a\0b'",
        ";",
        "//",
        "/**/",
        "\u{feff}",
        "\u{feff}1",
        "\u{2028}",
        "1 //",
        "1 /* */",
        "1\r// c\r",
        "#!x\r{}",
        "{} // }",
        "/*}*/{}",
        "'use strict'",
        "x<!--y",
        "a\u{2029}let b",
        "return",
        "return;",
    ] {
        for language in LANGUAGES {
            let cell = compile_cell(text, language, &[], usize::MAX);
            let code =
                cell.unwrap_or_else(|error| panic!("{text:?} {error:?}")).module.code().to_owned();
            let lines = |text: &str| text.matches(['\n', '\u{2028}', '\u{2029}']).count();
            assert_eq!(lines(&code), lines(text), "{text:?} {code:?}");
            let parsed =
                crate::modules::compile::compile(&code, Language::JavaScript, &[], usize::MAX);
            assert!(parsed.is_ok(), "{text:?} {code}");
        }
    }
}
