//! The table of cases that all languages share.

use isolane::Spelling;
use isolane_notebook::{Args, ExecuteOptions, Notebook, NotebookOptions};
use serde_json::{Value as Json, json};

use crate::{host, support::has_python};

const CASES: &str = include_str!("../cases/cells.json");

#[test]
fn the_cases_hold() {
    let cases: Vec<Json> = serde_json::from_str(CASES).expect("the table is JSON");
    let has_python = has_python();
    let mut failures = Vec::new();
    for case in &cases {
        let name = case["name"].as_str().expect("a name");
        if case["needs"] == "python" && !has_python {
            continue;
        }
        let options = case.get("options").cloned().unwrap_or_else(|| json!({}));
        let mut options =
            NotebookOptions::from_json(&options, Spelling::Camel).expect("valid options");
        if case["host"] == true {
            (options.tools, options.llm) = (host::tools(), Some(host::llm()));
        }
        let notebook = Notebook::new(options).expect("valid options");
        for (index, call) in case["calls"].as_array().expect("calls").iter().enumerate() {
            let args =
                Args::from_json(&json!({ "cells": call["cells"] })).expect("valid arguments");
            let execution = notebook.execute(args, ExecuteOptions::default()).expect("it is open");
            let result = execution.wait().to_json(Spelling::Camel, false);
            for difference in differences(call, &result) {
                failures.push(format!("{name}, call {}: {difference}", index + 1));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

fn differences(call: &Json, result: &Json) -> Vec<String> {
    let mut found = Vec::new();
    let mut compare = |what: &str, actual: &Json, expected: &Json| {
        if actual != expected {
            found.push(format!("{what}:\n{actual:#}\nexpected:\n{expected:#}"));
        }
    };
    if let Some(expected) = call.get("text") {
        let text = without_carets(&result["content"][0]["text"]);
        compare("text", &text, &without_carets(expected));
    }
    let of_cells = |key: &str| -> Json {
        let cells = result["details"]["cells"].as_array().expect("cells");
        cells.iter().map(|cell| cell[key].clone()).collect::<Vec<_>>().into()
    };
    compare("status", &of_cells("status"), &call["status"]);
    if let Some(expected) = call.get("state") {
        compare("state", &of_cells("state"), expected);
    }
    compare("isError", &result["isError"], call.get("error").unwrap_or(&json!(false)));
    let images = result["content"].as_array().map_or(0, |content| content.len() - 1);
    compare("images", &json!(images), call.get("images").unwrap_or(&json!(0)));
    for (path, expected) in call.get("details").and_then(Json::as_object).into_iter().flatten() {
        let pointer = format!("/{}", path.replace('.', "/"));
        let actual = result["details"].pointer(&pointer).unwrap_or(&Json::Null);
        compare(path, actual, expected);
    }
    found
}

/// A text without the carets of Python, which differ between its versions.
fn without_carets(text: &Json) -> Json {
    let is_caret = |line: &&str| {
        line.starts_with(' ')
            && line.contains('^')
            && line.chars().all(|letter| " ~^".contains(letter))
    };
    let lines = text.as_str().expect("a text").split('\n').filter(|line| !is_caret(line));
    lines.collect::<Vec<_>>().join("\n").into()
}
