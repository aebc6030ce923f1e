//! Types of TypeScript from JSON schemas.
//!
//! In: a schema, which may be anything. Out: a type; `unknown` for all that has none. References within the schema are
//! followed no further than [`MOST_DEPTH`].

use std::cell::Cell;

use serde_json::{Map, Value};

use super::{ToolInfo, names::identifier};

/// The deepest nesting of a type. A deeper type is `unknown`.
const MOST_DEPTH: usize = 12;

/// The most types that one schema is written with; what comes then is `unknown`. References can repeat parts without end.
const MOST_TYPES: usize = 2000;

/// The longest description that stands in a comment, in characters.
const MOST_COMMENT: usize = 1000;

/// The `.d.ts` of these tools: a module for each service. Those of a service must stand together.
#[must_use]
pub fn tool_types(tools: &[ToolInfo]) -> String {
    let mut text = String::new();
    for (at, tool) in tools.iter().enumerate() {
        let is_same = |at: Option<&ToolInfo>| at.is_some_and(|at| at.service == tool.service);
        if !is_same(at.checked_sub(1).and_then(|at| tools.get(at))) {
            text.push_str(&format!("declare module {} {{\n", quoted(&tool.service)));
        }
        text.push_str(&comment(&tool.description.description, "  "));
        text.push_str(&format!("  export function {};\n", signature(tool, "  ")));
        if !is_same(tools.get(at + 1)) {
            text.push_str("}\n");
        }
    }
    text
}

/// `listIssues(args: { owner: string }): Promise<unknown>`.
pub(crate) fn signature(tool: &ToolInfo, indent: &str) -> String {
    let schema = tool.description.input_schema.as_ref();
    let args = schema.map_or_else(
        || "{ [key: string]: unknown }".to_owned(),
        |schema| Types::of(schema).write(schema, indent, 0),
    );
    let optional = if schema.is_some_and(has_required) { "" } else { "?" };
    let answer = tool
        .description
        .output_schema
        .as_ref()
        .map_or_else(|| "unknown".to_owned(), |schema| Types::of(schema).write(schema, indent, 0));
    format!("{}(args{optional}: {args}): Promise<{answer}>", tool.identifier)
}

/// Whether a call must have arguments.
pub(crate) fn has_required(schema: &Value) -> bool {
    let required = schema.get("required").and_then(Value::as_array);
    required.is_some_and(|names| !names.is_empty())
}

/// A text as a literal.
pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = String::from("'");
    for c in text.chars() {
        match c {
            '\'' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\u{2028}' | '\u{2029}' => quoted.push_str(&format!("\\u{:04x}", c as u32)),
            c => quoted.push(c),
        }
    }
    quoted.push('\'');
    quoted
}

/// A comment before a declaration, or nothing.
fn comment(text: &str, indent: &str) -> String {
    let text: String = text.trim().chars().take(MOST_COMMENT).collect();
    if text.is_empty() {
        return String::new();
    }
    let text = text.replace("*/", "*\\/");
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    match lines.as_slice() {
        [line] => format!("{indent}/** {line} */\n"),
        lines => {
            let mut text = format!("{indent}/**\n");
            for line in lines {
                let space = if line.is_empty() { "" } else { " " };
                text.push_str(&format!("{indent} *{space}{line}\n"));
            }
            text + indent + " */\n"
        }
    }
}

/// The name of a property as it stands in a type.
fn property(name: &str) -> String {
    let is_plain = !name.is_empty()
        && identifier(name).trim_end_matches('_') == name.trim_end_matches('_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '$');
    if is_plain { name.to_owned() } else { quoted(name) }
}

/// Writes the types of one schema.
struct Types<'s> {
    root: &'s Value,
    /// How many types may still be written.
    left: Cell<usize>,
}

impl<'s> Types<'s> {
    fn of(root: &'s Value) -> Self {
        Self { root, left: Cell::new(MOST_TYPES) }
    }

    fn write(&self, schema: &Value, indent: &str, depth: usize) -> String {
        let left = self.left.replace(self.left.get().saturating_sub(1));
        let map = match schema {
            Value::Bool(false) => return "never".to_owned(),
            Value::Object(map) if depth <= MOST_DEPTH && left > 0 => map,
            _ => return "unknown".to_owned(),
        };
        let text = self.bare(map, indent, depth);
        let is_nullable = map.get("nullable") == Some(&Value::Bool(true));
        if is_nullable { union([text, "null".to_owned()]) } else { text }
    }

    fn bare(&self, map: &Map<String, Value>, indent: &str, depth: usize) -> String {
        if let Some(target) = map.get("$ref").and_then(Value::as_str) {
            return match self.target(target) {
                Some(schema) => self.write(schema, indent, depth + 2),
                None => "unknown".to_owned(),
            };
        }
        if let Some(value) = map.get("const") {
            return literal(value);
        }
        if let Some(values) = map.get("enum").and_then(Value::as_array) {
            return union(values.iter().map(literal));
        }
        for name in ["anyOf", "oneOf"] {
            if let Some(schemas) = map.get(name).and_then(Value::as_array) {
                let types = schemas.iter().map(|schema| self.write(schema, indent, depth + 1));
                return union(types);
            }
        }
        if let Some(schemas) = map.get("allOf").and_then(Value::as_array) {
            let types: Vec<String> = schemas
                .iter()
                .map(|schema| grouped(self.write(schema, indent, depth + 1), " | "))
                .collect();
            return if types.is_empty() { "unknown".to_owned() } else { types.join(" & ") };
        }
        match map.get("type") {
            Some(Value::String(kind)) => self.of_kind(kind, map, indent, depth),
            Some(Value::Array(kinds)) => union(kinds.iter().map(|kind| {
                kind.as_str().map_or_else(
                    || "unknown".to_owned(),
                    |kind| self.of_kind(kind, map, indent, depth),
                )
            })),
            _ if map.contains_key("properties") => self.object(map, indent, depth),
            _ if map.contains_key("items") => self.array(map, indent, depth),
            _ => "unknown".to_owned(),
        }
    }

    fn of_kind(&self, kind: &str, map: &Map<String, Value>, indent: &str, depth: usize) -> String {
        match kind {
            "string" | "boolean" | "null" => kind.to_owned(),
            "number" | "integer" => "number".to_owned(),
            "array" => self.array(map, indent, depth),
            "object" => self.object(map, indent, depth),
            _ => "unknown".to_owned(),
        }
    }

    fn array(&self, map: &Map<String, Value>, indent: &str, depth: usize) -> String {
        if let Some(first) = map.get("prefixItems").and_then(Value::as_array) {
            let mut types: Vec<String> =
                first.iter().map(|schema| self.write(schema, indent, depth + 1)).collect();
            match map.get("items") {
                Some(Value::Bool(false)) => {}
                Some(rest) => {
                    let rest = grouped(self.write(rest, indent, depth + 1), " ");
                    types.push(format!("...{rest}[]"));
                }
                None => types.push("...unknown[]".to_owned()),
            }
            return format!("[{}]", types.join(", "));
        }
        match map.get("items") {
            Some(items) => format!("{}[]", grouped(self.write(items, indent, depth + 1), " ")),
            None => "unknown[]".to_owned(),
        }
    }

    fn object(&self, map: &Map<String, Value>, indent: &str, depth: usize) -> String {
        let inner = format!("{indent}  ");
        let required = map.get("required").and_then(Value::as_array);
        let is_required =
            |name: &str| required.is_some_and(|names| names.iter().any(|other| other == name));
        let mut fields = Vec::new();
        if let Some(properties) = map.get("properties").and_then(Value::as_object) {
            for (name, schema) in properties {
                let description = schema.get("description").and_then(Value::as_str);
                let optional = if is_required(name) { "" } else { "?" };
                let kind = self.write(schema, &inner, depth + 1);
                let comment = comment(description.unwrap_or_default(), &inner);
                fields.push(format!("{comment}{inner}{}{optional}: {kind};\n", property(name)));
            }
        }
        match map.get("additionalProperties") {
            Some(Value::Bool(false)) => {}
            Some(schema @ Value::Object(_)) if fields.is_empty() => {
                let kind = self.write(schema, &inner, depth + 1);
                fields.push(format!("{inner}[key: string]: {kind};\n"));
            }
            _ if fields.is_empty() => return "{ [key: string]: unknown }".to_owned(),
            None => {}
            Some(_) => fields.push(format!("{inner}[key: string]: unknown;\n")),
        }
        if fields.is_empty() {
            return "{}".to_owned();
        }
        format!("{{\n{}{indent}}}", fields.concat())
    }

    /// The schema that a reference within this one names.
    fn target(&self, reference: &str) -> Option<&'s Value> {
        let pointer = reference.strip_prefix('#')?;
        self.root.pointer(pointer)
    }
}

fn literal(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::Array(_) | Value::Object(_) => "unknown".to_owned(),
    }
}

/// A union, each type once.
fn union(types: impl IntoIterator<Item = String>) -> String {
    let mut known: Vec<String> = Vec::new();
    for kind in types {
        if !known.contains(&kind) {
            known.push(kind);
        }
    }
    if known.is_empty() { "never".to_owned() } else { known.join(" | ") }
}

/// A type in parentheses, if it has that sign outside of all braces.
fn grouped(kind: String, sign: &str) -> String {
    let mut depth = 0_i32;
    let is_open = kind.char_indices().any(|(at, c)| {
        depth += i32::from("{[(<".contains(c)) - i32::from("}])>".contains(c));
        depth == 0 && kind[at..].starts_with(sign)
    });
    if is_open { format!("({kind})") } else { kind }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn kind(schema: &Value) -> String {
        Types::of(schema).write(schema, "", 0)
    }

    #[test]
    fn schemas_are_types() {
        for (schema, expected) in [
            (json!({ "type": "string" }), "string"),
            (json!({ "type": "integer" }), "number"),
            (json!({ "type": ["string", "null"] }), "string | null"),
            (json!({ "type": "string", "nullable": true }), "string | null"),
            (json!({ "enum": ["a", 1, null, "it's"] }), r"'a' | 1 | null | 'it\'s'"),
            (json!({ "const": true }), "true"),
            (json!({ "type": "array" }), "unknown[]"),
            (json!({ "type": "array", "items": { "type": "string" } }), "string[]"),
            (json!({ "type": "array", "items": { "enum": ["a", "b"] } }), "('a' | 'b')[]"),
            (
                json!({ "type": "array", "prefixItems": [{ "type": "number" }], "items": false }),
                "[number]",
            ),
            (json!({ "anyOf": [{ "type": "string" }, { "type": "number" }] }), "string | number"),
            (
                json!({ "allOf": [{ "anyOf": [{ "type": "string" }, { "type": "null" }] }, {}] }),
                "(string | null) & unknown",
            ),
            (json!({ "type": "object" }), "{ [key: string]: unknown }"),
            (json!({ "type": "object", "additionalProperties": false }), "{}"),
            (
                json!({ "type": "object", "additionalProperties": { "type": "number" } }),
                "{\n  [key: string]: number;\n}",
            ),
            (json!({ "$ref": "https://example.com" }), "unknown"),
            (json!({ "type": "thing" }), "unknown"),
            (json!(true), "unknown"),
            (json!(false), "never"),
            (json!({ "enum": [] }), "never"),
        ] {
            assert_eq!(kind(&schema), expected, "{schema}");
        }
    }

    #[test]
    fn objects_have_their_fields_with_comments() {
        let schema = json!({
            "type": "object",
            "properties": {
                "owner": { "type": "string", "description": "Who */ it is." },
                "a b": { "type": "object", "properties": { "x": { "type": "number" } } },
                "delete": {},
            },
            "required": ["owner"],
        });
        let expected = "{\n  /** Who *\\/ it is. */\n  owner: string;\n  'a b'?: {\n    x?: number;\n  };\n  \
                        delete?: unknown;\n}";
        assert_eq!(kind(&schema), expected);
    }

    #[test]
    fn references_within_a_schema_are_followed_to_a_bounded_depth() {
        let schema = json!({
            "$defs": { "node": { "type": "object", "properties": { "next": { "$ref": "#/$defs/node" } } } },
            "$ref": "#/$defs/node",
        });
        let text = kind(&schema);
        assert!(text.contains("next?: {") && text.contains("next?: unknown"), "{text}");
        assert_eq!(kind(&json!({ "$ref": "#" })), "unknown");
    }

    #[test]
    fn a_module_is_declared_for_each_service() {
        let tool = |service: &str, name: &str, schema: Option<Value>| ToolInfo {
            service: service.to_owned(),
            name: name.to_owned(),
            identifier: identifier(name),
            description: super::super::ToolDescription {
                description: format!("Does {name}."),
                input_schema: schema,
                output_schema: None,
            },
        };
        let tools = [
            tool("github", "close", None),
            tool(
                "github",
                "list-issues",
                Some(
                    json!({ "type": "object", "properties": { "owner": { "type": "string" } }, "required": ["owner"] }),
                ),
            ),
            tool("shop", "x", None),
        ];
        let expected = "declare module 'github' {\n  /** Does close. */\n  export function close(args?: { [key: \
                        string]: unknown }): Promise<unknown>;\n  /** Does list-issues. */\n  export function \
                        listIssues(args: {\n    owner: string;\n  }): Promise<unknown>;\n}\ndeclare module 'shop' \
                        {\n  /** Does x. */\n  export function x(args?: { [key: string]: unknown }): \
                        Promise<unknown>;\n}\n";
        assert_eq!(tool_types(&tools), expected);
    }
}
