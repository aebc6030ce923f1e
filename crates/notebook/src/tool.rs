//! The tool as a model sees it: its name, its description, the schema of its input.
//!
//! In: the backends that are there, and the limits. Out: plain data. Nothing is described that is not there.

use isolane_kit::Kit;
use serde_json::{Value as Json, json};

use crate::{Isolation, JsOptions, Limits, PyOptions, host::desk::Functions};

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
    pub(crate) fn new(
        py: Option<&PyOptions>,
        js: Option<&JsOptions>,
        limits: &Limits,
        functions: &Functions,
    ) -> Self {
        let (has_py, has_js) = (py.is_some(), js.is_some());
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
        lines.extend(py.filter(|py| py.isolation == Isolation::Confined).map(confined_line));
        if let Some(js) = js {
            let of_kit = js.kit.as_ref().map(Kit::names).unwrap_or_default();
            let sandbox = sandbox(functions.files.is_some(), of_kit);
            lines.push(format!("JavaScript or TypeScript: top-level `await` and `return` work. The value of a last statement that is an expression is shown. `display(value)` shows more, and `print` writes text. It is a sandbox{sandbox}."));
            if !of_kit.is_empty() {
                lines.push(format!("JavaScript also has `{}`.", of_kit.join("`, `")));
            }
        }
        lines.extend(helper_lines(has_py, has_js, functions));
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

/// The limits of a confined kernel.
fn confined_line(py: &PyOptions) -> String {
    let network = if py.network { "" } else { ", and there is no network" };
    let processes = if py.processes { "" } else { ", no process can be started" };
    format!(
        "Python runs in a sandbox: most files of the machine are not there, files of your own go with the kernel{processes}{network}."
    )
}

/// The ways out of JavaScript cells, and those that are not there.
fn sandbox(has_files: bool, of_kit: &[String]) -> String {
    let has = |name: &str| of_kit.iter().any(|known| known == name);
    let absent =
        [("file system", has_files), ("network", has("fetch")), ("`require`", has("require"))];
    let absent = absent.into_iter().filter(|(_, is_there)| !is_there);
    let absent: Vec<String> = absent.map(|(name, _)| format!("no {name}")).collect();
    let absent = match absent.split_last() {
        None => None,
        Some((last, [])) => Some(format!("there is {last}")),
        Some((last, others)) => Some(format!("there is {} and {last}", others.join(", "))),
    };
    let files = has_files.then(|| {
        "files are reached by `read` and the like alone, and `import` finds modules among them"
            .to_owned()
    });
    let facts: Vec<String> = files.into_iter().chain(absent).collect();
    if facts.is_empty() { String::new() } else { format!(": {}", facts.join("; ")) }
}

/// The helpers of files, artifacts and text, of which only those are named that are there.
fn helper_lines(has_py: bool, has_js: bool, functions: &Functions) -> Vec<String> {
    let (mut python, mut javascript) = (Vec::new(), Vec::new());
    let mut about = Vec::new();
    if let Some(files) = &functions.files {
        python.extend([
            "`read(path, offset=1, limit=None, bytes=False)`",
            "`tree(path='.', max_depth=3, hidden=False)`",
            "`diff(a, b)`",
        ]);
        javascript.extend([
            "`await read(path, { offset, limit, bytes })`",
            "`await tree(path, { maxDepth, hidden })`",
            "`await diff(a, b)`",
        ]);
        if files.is_writable() {
            python.extend(["`write(path, data)`", "`append(path, data)`"]);
            javascript.extend(["`await write(path, data)`", "`await append(path, data)`"]);
            about.push("Paths are relative to the folder of the files.");
        } else {
            about.push("Paths are relative to the folder of the files, which are read-only.");
        }
    }
    if functions.artifacts.is_some() {
        python.push("`output(id, offset=1, limit=None)`");
        javascript.push("`await output(id, { offset, limit })`");
        about.push("`output` gives text that was cut from a result, such as `output('eval-3')` for artifact://eval-3.");
    }
    if functions.files.is_some() || functions.artifacts.is_some() {
        about.push("`offset` is the first line, from 1, and `limit` the number of lines.");
    }
    python.extend(["`sort(text, reverse=…, unique=…)`", "`uniq(text, count=…)`"]);
    python.extend(["`counter(items, limit=…)`", "`env(key, value)`"]);
    javascript.extend(["`sort(text, { reverse, unique })`", "`uniq(text, { count })`"]);
    javascript.extend(["`counter(items, { limit })`", "`env(key, value)`"]);
    let listed = [("Python", has_py, python), ("JavaScript", has_js, javascript)].into_iter();
    let listed = listed.filter(|(_, has, _)| *has);
    let mut lines: Vec<String> =
        listed.map(|(name, _, helpers)| format!("{name} has {}.", helpers.join(", "))).collect();
    if !about.is_empty() {
        lines.push(about.join(" "));
    }
    lines
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
    if functions.llm.is_some() {
        if has_py {
            lines.push("Python: `llm(prompt, model=…, system=…, schema=…)` asks a model and gives its text, with a JSON Schema its value.".to_owned());
        }
        if has_js {
            lines.push("JavaScript: `await llm(prompt, { model, system, schema })` asks a model and gives its text, with a JSON Schema its value.".to_owned());
        }
    }
    if functions.can_call_agents() {
        if has_py {
            lines.push("Python: `agent(prompt, agent_type=…, model=…, context=…, label=…, schema=…)` has a subagent do a task and gives its text, with a JSON Schema its value; `await agent(…)` lets other tasks of the cell run.".to_owned());
        }
        if has_js {
            lines.push("JavaScript: `await agent(prompt, { agentType, model, context, label, schema })` has a subagent do a task and gives its text, with a JSON Schema its value.".to_owned());
        }
        lines.push("Cells of a subagent see and change the same state.".to_owned());
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
