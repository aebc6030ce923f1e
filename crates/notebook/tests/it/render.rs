//! Results shown to people: the table of cases that all languages share, and results that are made to break a renderer.

use isolane::Spelling;
use isolane_notebook::{
    Args, CallResult, CellInput, CellResult, Color, HtmlOptions, Language, Misuse, Output,
    TerminalOptions, render_call, render_html, render_terminal, to_ipynb,
};
use serde_json::{Value as Json, json};

const CASES: &str = include_str!("../cases/render.json");

#[test]
fn the_cases_hold() {
    let cases: Vec<Json> = serde_json::from_str(CASES).expect("the table is JSON");
    let mut failures = Vec::new();
    for case in &cases {
        let name = case["name"].as_str().expect("a name");
        // A list of results is read by the door, so the faces have these cases.
        if case["function"] == "toIpynb" {
            continue;
        }
        let rendered = rendered(case);
        let mut compare = |what: &str, actual: &str, expected: &str| {
            if actual != expected {
                failures.push(format!("{name}: {what}:\n{actual}\nexpected:\n{expected}"));
            }
        };
        let text = match (rendered, case["misuse"].as_str()) {
            (Ok(text), None) => text,
            (Err(misuse), Some(expected)) => {
                compare("misuse", misuse.message(), expected);
                assert!(expected.starts_with(misuse.path()));
                continue;
            }
            (Ok(text), Some(expected)) => {
                compare("misuse", &text, expected);
                continue;
            }
            (Err(misuse), None) => {
                compare("misuse", misuse.message(), "");
                continue;
            }
        };
        let lines = |key: &str| -> Option<String> {
            let lines =
                case.get(key)?.as_array()?.iter().map(|line| line.as_str().expect("a line"));
            Some(lines.collect::<Vec<_>>().join("\n"))
        };
        if let Some(expected) = lines("text") {
            compare("text", &text, &expected);
        }
        if let Some(expected) = lines("main") {
            let (_, main) = text.split_once("<main>\n").expect("a page");
            compare("main", main.split_once("\n</main>").expect("a page").0, &expected);
        }
        let texts = |key: &str| case[key].as_array().cloned().unwrap_or_default();
        for part in texts("has") {
            let part = part.as_str().expect("a part");
            compare("has", if text.contains(part) { part } else { &text }, part);
        }
        for part in texts("lacks") {
            let part = part.as_str().expect("a part");
            compare("lacks", if text.contains(part) { &text } else { part }, part);
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

fn rendered(case: &Json) -> Result<String, Misuse> {
    let options = case.get("options").cloned().unwrap_or_else(|| json!({}));
    let (given, spelling) = (&case["given"], Spelling::Camel);
    Ok(match case["function"].as_str().expect("a function") {
        "renderCall" => {
            let options = TerminalOptions::from_json(&options, spelling)?;
            render_call(&Args::from_json(given)?, &options)
        }
        "renderTerminal" => {
            let result = CallResult::from_json(given, spelling)?;
            render_terminal(&result, &TerminalOptions::from_json(&options, spelling)?)
        }
        "renderHtml" => {
            let result = CallResult::from_json(given, spelling)?;
            render_html(&result, &HtmlOptions::from_json(&options, spelling)?)
        }
        other => panic!("there is no {other}"),
    })
}

fn plain() -> TerminalOptions {
    TerminalOptions { color: Color::Never, ..TerminalOptions::default() }
}

fn result(outputs: Vec<Output>) -> CallResult {
    let cell = CellResult::pending(0, CellInput::new(Language::Py, "1"));
    CallResult { cells: vec![CellResult { outputs, ..cell }], ..CallResult::default() }
}

/// Every renderer, on one result.
fn all(result: &CallResult) -> [String; 3] {
    [
        render_terminal(result, &plain()),
        render_html(result, &HtmlOptions::default()),
        to_ipynb([result]),
    ]
}

#[test]
fn a_value_may_nest_deeply() {
    // To drop such a value recurses.
    let deep = std::thread::Builder::new().stack_size(256 << 20).spawn(|| {
        let deep = (0..10_000).fold(json!("lowest"), |inner, _| Json::Array(vec![inner]));
        let deeper = (0..10_000).fold(json!("lowest"), |inner, _| {
            Json::Object([("a".to_owned(), inner)].into_iter().collect())
        });
        let result = result(vec![Output::Json(deep), Output::Json(deeper)]);
        // The renderers have the stack of a thread of the library.
        std::thread::scope(|scope| {
            let render = std::thread::Builder::new().stack_size(1 << 20);
            let render = render.spawn_scoped(scope, || all(&result)).expect("a thread");
            for text in render.join().expect("no renderer recurses without a bound") {
                let head: String = text.chars().take(300).collect();
                assert!(text.contains('…') && !text.contains("lowest"), "{head}");
            }
        });
    });
    deep.expect("a thread").join().expect("it holds");
}

#[test]
fn a_line_may_be_long() {
    let line = "x<".repeat(1 << 19);
    let result = result(vec![
        Output::Text(line.clone()),
        Output::Stream { name: "stdout", text: line.clone() },
        Output::Markdown(line.clone()),
        Output::Json(json!({ "line": line })),
    ]);
    let [terminal, page, notebook] = all(&result);
    assert!(
        terminal.lines().count() < 20 && terminal.lines().all(|line| line.chars().count() <= 80)
    );
    assert!(page.contains("Show all of it (1.0 MiB)") && !page.contains("x<"));
    assert!(notebook.len() < 8 * line.len());
    let whole = TerminalOptions { expanded: true, ..plain() };
    assert_eq!(render_terminal(&result, &whole).matches('<').count(), 4 << 19);
}

#[test]
fn markdown_may_nest_deeply() {
    for text in [
        "> ".repeat(20_000),
        "- ".repeat(20_000),
        "[".repeat(50_000),
        "*a ".repeat(50_000),
        "`".repeat(99_999),
    ] {
        let page = render_html(&result(vec![Output::Markdown(text)]), &HtmlOptions::default());
        assert!(page.ends_with("</html>\n"));
    }
}

/// The notebook has what Jupyter's schema asks for; a test of Python has Jupyter read it.
#[test]
fn a_notebook_of_jupyter_has_all_cells_in_order() {
    let given = |cells: Json| {
        CallResult::from_json(&json!({ "details": { "cells": cells } }), Spelling::Camel)
            .expect("a result")
    };
    let cell = |language: &str, status: &str| json!({ "language": language, "code": "a\nb", "status": status, "title": "*t*" });
    let first = given(json!([cell("js", "complete"), cell("py", "pending")]));
    let second = given(json!([cell("js", "error")]));
    let notebook: Json = serde_json::from_str(&to_ipynb([&first, &second])).expect("JSON");
    let cells = notebook["cells"].as_array().expect("cells");
    let ids: Vec<&str> = cells.iter().filter_map(|cell| cell["id"].as_str()).collect();
    assert_eq!(ids, ["title-1", "cell-1", "title-2", "cell-2", "title-3", "cell-3"]);
    assert_eq!(cells[0]["source"], json!(["## \\*t\\*"]));
    let counts: Vec<&Json> = cells.iter().filter_map(|cell| cell.get("execution_count")).collect();
    assert_eq!(counts, [&json!(1), &json!(null), &json!(2)]);
    assert_eq!(cells[1]["source"], json!(["a\n", "b"]));
    assert_eq!(cells[1]["metadata"]["vscode"]["languageId"], "typescript");
    assert_eq!(cells[3]["metadata"].get("vscode"), None);
    assert_eq!(notebook["metadata"]["kernelspec"]["language"], "python");
    let other: Json = serde_json::from_str(&to_ipynb([&second])).expect("JSON");
    assert_eq!(other["metadata"]["kernelspec"]["language"], "typescript");
    assert_eq!(other["cells"][1]["metadata"].get("vscode"), None);
}
