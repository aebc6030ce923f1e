//! The tables of cases that all languages share.

use std::{fs, path::Path};

use isolane::{Spelling, Value};
use isolane_kit::{Kit, KitOptions};
use isolane_notebook::{Args, ExecuteOptions, Notebook, NotebookOptions};
use serde_json::{Value as Json, json};
use tempfile::TempDir;

use crate::{
    host,
    support::{has_python, python},
};

#[test]
fn the_cases_of_cells_hold() {
    hold(include_str!("../cases/cells.json"));
}

#[test]
fn the_cases_of_files_hold() {
    hold(include_str!("../cases/files.json"));
}

/// The kit of a case.
fn kit(options: &Json) -> Kit {
    let message = Value::serialize(options).expect("JSON is a value");
    let options = KitOptions::read(&message, None, Spelling::Camel).expect("valid options");
    Kit::new(options).expect("a kit")
}

/// The folder of a case, and its options with it.
fn prepared(case: &Json) -> (TempDir, Json) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut options = case.get("options").cloned().unwrap_or_else(|| json!({}));
    let place = |name: &str| folder.path().join(name);
    if let Some(files) = case.get("folder").and_then(Json::as_object) {
        let root = place("root");
        fs::create_dir(&root).expect("a folder");
        for (name, text) in files {
            let path = root.join(name);
            fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
            fs::write(path, text.as_str().expect("a text")).expect("a file");
        }
        for (name, target) in case.get("links").and_then(Json::as_object).into_iter().flatten() {
            link(target.as_str().expect("a path"), &root.join(name));
        }
        options["files"]["root"] = root.to_str().expect("a text").into();
    }
    if case["artifacts"] == true {
        options["artifacts"]["dir"] = place("artifacts").to_str().expect("a text").into();
    }
    (folder, options)
}

#[cfg(unix)]
fn link(target: &str, at: &Path) {
    std::os::unix::fs::symlink(target, at).expect("a link");
}

#[cfg(not(unix))]
fn link(target: &str, at: &Path) {
    std::os::windows::fs::symlink_file(target, at).expect("a link");
}

fn hold(table: &str) {
    let cases: Vec<Json> = serde_json::from_str(table).expect("the table is JSON");
    let has_python = has_python();
    let mut failures = Vec::new();
    for case in &cases {
        let name = case["name"].as_str().expect("a name");
        if case["needs"] == "python" && !has_python {
            continue;
        }
        let (_folder, options) = prepared(case);
        let mut options =
            NotebookOptions::from_json(&options, Spelling::Camel).expect("valid options");
        if let Some(py) = &mut options.py {
            (py.isolation, py.worker) = (python().isolation, python().worker);
        }
        let kit = case.get("kit").map(kit);
        if let Some(js) = &mut options.js {
            js.kit = kit;
        }
        if case["host"] == true {
            (options.tools, options.llm) = (host::tools(), Some(host::llm()));
            options.agent = Some(host::agent());
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
