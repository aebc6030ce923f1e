//! The description of a tool in Markdown, for a model that writes TypeScript.
//!
//! In: what is known of a tool. Out: its signature, its fields, an example.

use serde_json::{Map, Value};

use super::{
    ToolInfo,
    types::{has_required, quoted, signature},
};

/// The description of a tool.
pub(crate) fn tool_docs(tool: &ToolInfo) -> String {
    let ToolInfo { service, identifier, description, .. } = tool;
    let mut text = format!("# {}\n\n", tool.shown_name());
    let about = description.description.trim();
    if !about.is_empty() {
        text.push_str(&format!("{about}\n\n"));
    }
    text.push_str(&format!(
        "```ts\nimport {{ {identifier} }} from {};\n\nfunction {};\n```\n",
        quoted(service),
        signature(tool, "")
    ));
    let schema = description.input_schema.as_ref();
    let fields = schema.and_then(|schema| schema.get("properties")).and_then(Value::as_object);
    if let Some(fields) = fields.filter(|fields| !fields.is_empty()) {
        text.push_str("\n| field | | |\n|---|---|---|\n");
        for (name, field) in fields {
            let need = if is_required(schema, name) { "required" } else { "" };
            let about = field.get("description").and_then(Value::as_str).unwrap_or_default();
            text.push_str(&format!("| `{}` | {need} | {} |\n", cell(name), cell(about)));
        }
    }
    let args = match schema.filter(|schema| has_required(schema)) {
        Some(schema) => example_args(schema, fields),
        None => String::new(),
    };
    text.push_str(&format!("\n```ts\nconst answer = await {identifier}({args});\n```\n"));
    text
}

fn is_required(schema: Option<&Value>, name: &str) -> bool {
    let names = schema.and_then(|schema| schema.get("required")).and_then(Value::as_array);
    names.is_some_and(|names| names.iter().any(|other| other == name))
}

fn cell(text: &str) -> String {
    text.replace(['\n', '\r'], " ").replace('|', "\\|")
}

/// An object with the fields that are required.
fn example_args(schema: &Value, fields: Option<&Map<String, Value>>) -> String {
    let names = schema.get("required").and_then(Value::as_array);
    let mut args = Map::new();
    for name in names.into_iter().flatten().filter_map(Value::as_str) {
        let field = fields.and_then(|fields| fields.get(name));
        args.insert(name.to_owned(), field.map_or(Value::Null, |field| example(field, 0)));
    }
    Value::Object(args).to_string()
}

/// A value of a schema: what the schema shows, or the simplest one of its type.
fn example(schema: &Value, depth: usize) -> Value {
    let shown = ["const", "default"].iter().find_map(|name| schema.get(name).cloned());
    let listed = ["examples", "enum"].iter().find_map(|name| schema.get(name)?.get(0).cloned());
    if let Some(value) = shown.or(listed) {
        return value;
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("string") => Value::String("…".to_owned()),
        Some("number" | "integer") => schema.get("minimum").cloned().unwrap_or(Value::from(1)),
        Some("boolean") => Value::Bool(true),
        Some("array") => Value::Array(Vec::new()),
        Some("object") if depth < 3 => {
            let fields = schema.get("properties").and_then(Value::as_object);
            let names = schema.get("required").and_then(Value::as_array);
            let fields = names.into_iter().flatten().filter_map(Value::as_str).map(|name| {
                let field = fields.and_then(|fields| fields.get(name));
                (name.to_owned(), field.map_or(Value::Null, |field| example(field, depth + 1)))
            });
            Value::Object(fields.collect())
        }
        _ => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ToolDescription;

    #[test]
    fn a_description_has_signature_fields_and_an_example() {
        let tool = ToolInfo {
            service: "github".to_owned(),
            name: "list-issues".to_owned(),
            identifier: "listIssues".to_owned(),
            description: ToolDescription {
                description: "Lists issues.".to_owned(),
                input_schema: Some(json!({
                    "type": "object",
                    "properties": {
                        "owner": { "type": "string", "description": "A user | a group" },
                        "state": { "enum": ["open", "closed"] },
                    },
                    "required": ["owner", "state"],
                })),
                output_schema: Some(json!({ "type": "array", "items": { "type": "string" } })),
            },
        };
        let expected = "# github.listIssues\n\nLists issues.\n\n```ts\nimport { listIssues } from 'github';\n\n\
                        function listIssues(args: {\n  /** A user | a group */\n  owner: string;\n  state: 'open' | \
                        'closed';\n}): Promise<string[]>;\n```\n\n| field | | |\n|---|---|---|\n| `owner` | required \
                        | A user \\| a group |\n| `state` | required |  |\n\n```ts\nconst answer = await \
                        listIssues({\"owner\":\"…\",\"state\":\"open\"});\n```\n";
        assert_eq!(tool_docs(&tool), expected);
    }
}
