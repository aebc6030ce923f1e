//! The tool as a model sees it: its name, its description, the schema of its input.
//!
//! In: the backends that are there, and the limits. Out: plain data. Nothing is described that is not there.

use serde_json::{Value as Json, json};

use crate::{Limits, host::desk::Functions};

/// A tool for a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Tool {
    /// `eval`.
    pub name: String,
    /// The text for the model.
    pub description: String,
    /// The JSON Schema of the arguments.
    pub input_schema: Json,
}

impl Tool {
    pub(crate) fn new(has_py: bool, has_js: bool, limits: &Limits, functions: &Functions) -> Self {
        let languages = match (has_py, has_js) {
            (true, true) => "Python and JavaScript",
            (true, false) => "Python",
            (false, _) => "JavaScript",
        };
        let mut lines = vec![
            format!(
                "Runs {languages} code in cells, in order. State stays: a cell sees everything that earlier cells of its language declared, also those of earlier calls."
            ),
            "Use it in place of `python -c` or `node -e` in a shell.".to_owned(),
            "After a cell that fails the later ones do not run; what earlier ones did stays."
                .to_owned(),
        ];
        if has_py {
            lines.push("Python: top-level `await` works. The value of the last expression is shown, unless the line ends with `;`. `display(value)` shows more: dicts and lists as JSON, tables, figures and images. `!command` runs a shell command. Input from a keyboard is not there.".to_owned());
        }
        if has_js {
            lines.push("JavaScript or TypeScript: top-level `await` and `return` work. The value of a last statement that is an expression is shown. `display(value)` shows more, and `print` writes text. It is a sandbox: there is no file system, no network and no `require`.".to_owned());
        }
        lines.extend(parallel_lines(has_py, has_js, limits));
        lines.extend(function_lines(has_py, has_js, functions));
        lines.push(format!(
            "A cell has {} seconds, or its `timeout` (1 to {}). `reset: true` gives it an empty kernel.",
            limits.timeout_seconds, limits.max_timeout_seconds
        ));
        Self {
            name: "eval".to_owned(),
            description: lines.join("\n"),
            input_schema: schema(has_py, has_js, limits),
        }
    }
}

/// The helpers that run functions of a cell at once.
fn parallel_lines(has_py: bool, has_js: bool, limits: &Limits) -> Vec<String> {
    let (usual, most) = (limits.concurrency.min(limits.max_concurrency), limits.max_concurrency);
    let line = |language: &str, parallel: &str, pipeline: &str| {
        format!(
            "{language}: {parallel} runs functions at once, {usual} unless `concurrency` says otherwise and at most {most}, and gives their results in order; {pipeline} takes each item through functions of `(value, index)`. The first error ends both."
        )
    };
    let mut lines = Vec::new();
    if has_py {
        lines.push(line(
            "Python",
            "`parallel([lambda: …], concurrency=…)`",
            "`pipeline(items, *stages, concurrency=…)`",
        ));
    }
    if has_js {
        lines.push(line(
            "JavaScript",
            "`await parallel([() => …], { concurrency })`",
            "`await pipeline(items, ...stages, { concurrency })`",
        ));
    }
    lines
}

/// The functions of the host.
fn function_lines(has_py: bool, has_js: bool, functions: &Functions) -> Vec<String> {
    let mut lines = Vec::new();
    let forms = match (has_py, has_js) {
        (true, true) => {
            "in JavaScript with one object, a promise: `await tool.name({ … })`; in Python with keywords, a call that waits: `tool.name(key=…)`"
        }
        (true, false) => "with keywords: `tool.name(key=…)`",
        (false, _) => "with one object, a promise: `await tool.name({ … })`",
    };
    let tools = functions.tools.lines();
    if !tools.is_empty() {
        lines.push(format!("Functions of the host, called {forms}:"));
        lines.extend(tools);
    }
    if functions.has_llm() {
        if has_py {
            lines.push("Python: `llm(prompt, model=…, system=…, schema=…)` asks a model and gives its text, with a JSON Schema its value.".to_owned());
        }
        if has_js {
            lines.push("JavaScript: `await llm(prompt, { model, system, schema })` asks a model and gives its text, with a JSON Schema its value.".to_owned());
        }
    }
    lines
}

fn schema(has_py: bool, has_js: bool, limits: &Limits) -> Json {
    let languages: Vec<&str> = [("py", has_py), ("js", has_js)]
        .into_iter()
        .filter(|(_, has)| *has)
        .map(|(name, _)| name)
        .collect();
    json!({
        "type": "object",
        "properties": {
            "cells": {
                "type": "array",
                "minItems": 1,
                "maxItems": limits.max_cells,
                "items": {
                    "type": "object",
                    "properties": {
                        "language": { "type": "string", "enum": languages },
                        "code": { "type": "string", "description": "The code of the cell, as it is." },
                        "title": { "type": "string", "description": "A short label, such as 'load config'." },
                        "timeout": {
                            "type": "integer",
                            "minimum": 1,
                            "maximum": limits.max_timeout_seconds,
                            "description": "Seconds that the cell may take."
                        },
                        "reset": { "type": "boolean", "description": "Begin with an empty kernel of the language." }
                    },
                    "required": ["language", "code"],
                    "additionalProperties": false
                }
            }
        },
        "required": ["cells"],
        "additionalProperties": false
    })
}
