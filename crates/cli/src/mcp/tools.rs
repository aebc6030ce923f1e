//! The tools: their names, their descriptions for a model, the schemas of what goes in and out.

use std::sync::Arc;

use rmcp::model::{Tool, ToolAnnotations};
use serde_json::{Map, Value as Json, json};

use super::{
    arguments::{DEFAULT_TIMEOUT_MS, MOST_NAME_BYTES, MOST_TIMEOUT_MS},
    catalogue::{self, DEFAULT_LIMIT, MOST as MOST_DESCRIBED},
    code_mode::CodeMode,
};

pub(super) const RUN_CODE: &str = "run_code";
pub(super) const RUN_CELL: &str = "run_cell";
pub(super) const LIST_NAMES: &str = "list_names";
pub(super) const RESET_SESSION: &str = "reset_session";
pub(super) const DESCRIBE_TOOLS: &str = "describe_tools";

/// The text about this server for a model, which its host hands on.
pub(super) const INSTRUCTIONS: &str = "Runs TypeScript and JavaScript in an isolate that has no network, no files and no packages. \
     Use run_code for a computation that stands alone, and run_cell to go on with what earlier cells of a session declared.";

const RUN_CODE_TEXT: &str = "Runs TypeScript or JavaScript in a fresh isolate, without network, files or packages. \
     The answer is what the code printed with console.log, then its value: that of a top-level `return` or `export default`, else \
     of the last expression. Top-level `await` works. Nothing stays for the next call.";

const RUN_CELL_TEXT: &str = "Runs a cell in a session: all that earlier cells declared at their top level is there. \
     The answer is as that of run_code. A cell that throws keeps what it had done; one that takes too long, or too much memory, is \
     undone. The session is made on its first use, and ends when it is not used for 30 minutes.";

/// All tools, in the order in which they are listed.
pub(super) fn all(code_mode: Option<&CodeMode>) -> Vec<Tool> {
    let timeout_ms = code_mode.map_or(DEFAULT_TIMEOUT_MS, CodeMode::default_timeout_ms);
    let mut all = of_cells(timeout_ms);
    if let Some(code_mode) = code_mode {
        // Tools of other servers may change anything.
        for tool in all.iter_mut().filter(|tool| [RUN_CODE, RUN_CELL].contains(&&*tool.name)) {
            tool.annotations = Some(ToolAnnotations::new().read_only(false).open_world(true));
        }
        if let Some(run_code) = all.first_mut() {
            let text = catalogue::summary(code_mode.tools());
            let text = format!("{RUN_CODE_TEXT}\n\n{text}");
            run_code.description = Some(text.into());
        }
        all.push(describe_tools());
    }
    all
}

/// The tool that finds tools of other servers.
fn describe_tools() -> Tool {
    let properties = json!({
        "query": { "type": "string", "description": "Words of names or descriptions. Without any, the first tools come." },
        "limit": { "type": "integer", "minimum": 1, "maximum": MOST_DESCRIBED, "default": DEFAULT_LIMIT },
    });
    let text = json!({ "type": "string" });
    let output = json!({
        "types": { "type": "string", "description": "Declarations in TypeScript." },
        "tools": { "type": "array", "items": text },
        "count": { "type": "integer", "description": "How many tools fit." },
    });
    tool(
        DESCRIBE_TOOLS,
        "Finds tools of other servers that code can import, and gives their declarations in TypeScript. Call it before \
         run_code or run_cell, for each task that needs tools whose declarations you do not know yet.",
        object(&properties, &[]),
        object(&output, &["types", "tools", "count"]),
        true,
    )
}

/// The tools that run cells.
fn of_cells(timeout_ms: u64) -> Vec<Tool> {
    let code = json!({ "type": "string", "description": "The source text." });
    let language = json!({
        "type": "string",
        "enum": ["typescript", "javascript"],
        "default": "typescript",
        "description": "Types are removed, and not checked.",
    });
    let timeout = json!({
        "type": "integer",
        "minimum": 1,
        "maximum": MOST_TIMEOUT_MS,
        "default": timeout_ms,
        "description": "The milliseconds after which the code is ended.",
    });
    let session = json!({
        "type": "string",
        "minLength": 1,
        "maxLength": MOST_NAME_BYTES,
        "description": "The name of the session, of your choice.",
    });
    let only_session = || object(&json!({ "session": session }), &["session"]);
    vec![
        tool(
            RUN_CODE,
            RUN_CODE_TEXT,
            object(&json!({ "code": code, "language": language, "timeoutMs": timeout }), &["code"]),
            result(false),
            false,
        ),
        tool(
            RUN_CELL,
            RUN_CELL_TEXT,
            object(
                &json!({ "session": session, "code": code, "timeoutMs": timeout }),
                &["session", "code"],
            ),
            result(true),
            false,
        ),
        tool(
            LIST_NAMES,
            "Lists the names that the cells of a session have declared, with their types.",
            only_session(),
            names(),
            true,
        ),
        tool(
            RESET_SESSION,
            "Ends a session: its cells, and all that they declared. The next cell with its name begins anew.",
            only_session(),
            object(&json!({ "session": { "type": "string", "const": "reset" } }), &["session"]),
            false,
        ),
    ]
}

fn tool(
    name: &'static str,
    description: &'static str,
    input: Map<String, Json>,
    output: Map<String, Json>,
    is_read_only: bool,
) -> Tool {
    // Nothing outside of the isolate changes, whatever the code does.
    let annotations = ToolAnnotations::new().read_only(is_read_only).open_world(false);
    let annotations =
        if is_read_only { annotations } else { annotations.destructive(name == RESET_SESSION) };
    Tool::new(name, description, Arc::new(input))
        .with_raw_output_schema(Arc::new(output))
        .with_annotations(annotations)
}

fn object(properties: &Json, required: &[&str]) -> Map<String, Json> {
    let schema = json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    });
    match schema {
        Json::Object(schema) => schema,
        _ => Map::new(),
    }
}

/// The JSON of `isolane run --json`, and what a cell has besides.
fn result(is_cell: bool) -> Map<String, Json> {
    let text = json!({ "type": "string" });
    let number = json!({ "type": "number" });
    let mut properties = json!({
        "status": { "type": "string", "enum": ["success", "error", "link_error", "memory", "terminated"] },
        "result": { "description": "The value. Types that JSON has not are tagged: { \"$bigint\": \"12\" }." },
        "text": { "type": "string", "description": "The value as a console shows it." },
        "uncloned": { "type": "string", "description": "Why the value itself is not here." },
        "error": {
            "type": "object",
            "properties": {
                "name": text, "message": text, "stack": text, "specifier": text,
                "filename": text, "line": number, "column": number,
            },
            "required": ["name", "message"],
        },
        "reports": { "type": "array" },
        "logs": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": { "level": text, "args": { "type": "array" }, "timestamp": number },
                "required": ["level", "args", "timestamp"],
            },
        },
        "leftOut": {
            "type": "object",
            "description": "How many results, reports and logs are not here, because they are too large.",
            "properties": { "result": number, "reports": number, "logs": number },
        },
        "durationMs": number,
        "memoryUsedBytes": number,
    });
    if let (true, Json::Object(properties)) = (is_cell, &mut properties) {
        let session = json!({
            "type": "string",
            "enum": ["kept", "rolledBack", "reset"],
            "description": "What the cell did to the session.",
        });
        properties.insert("session".to_owned(), session);
    }
    object(&properties, &["status", "reports", "logs", "durationMs"])
}

fn names() -> Map<String, Json> {
    let text = json!({ "type": "string" });
    let name = json!({
        "type": "object",
        "properties": { "name": text, "kind": text, "type": text, "size": { "type": "number" } },
        "required": ["name", "kind", "type"],
    });
    let left_out = json!({
        "type": "object",
        "description": "How many names are not here, because they are too many.",
        "properties": { "names": { "type": "number" } },
    });
    let properties = json!({ "names": { "type": "array", "items": name }, "leftOut": left_out });
    object(&properties, &["names"])
}
