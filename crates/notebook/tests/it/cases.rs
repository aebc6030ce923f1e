//! The table of cases that all languages share.

use isolane::Spelling;
use isolane_notebook::{Args, ExecuteOptions, Notebook, NotebookOptions};
use serde_json::{Value as Json, json};

use crate::support::has_python;

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
        let options = NotebookOptions::from_json(&options, Spelling::Camel).expect("valid options");
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
    let text = &result["content"][0]["text"];
    if let Some(expected) = call.get("text") {
        compare("text", text, expected);
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
