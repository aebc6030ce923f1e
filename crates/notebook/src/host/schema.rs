//! The JSON Schema of a tool's arguments.
//!
//! In: arguments of a cell. Out: the same with the defaults of the schema, or the mistakes in them, each with its path.
//! Nothing is coerced. A value that JSON does not have, such as a date, passes where the schema says nothing about it.

use isolane::{HostError, Value};
use isolane_schema::Schema as JsonSchema;
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{MapAccess, Visitor},
};
use serde_json::{Map, Value as Json};

use super::{seen::Seen, value};
use crate::door::message;

/// The schema of one tool.
#[derive(Debug)]
pub(crate) struct Schema {
    source: Json,
    schema: JsonSchema,
}

impl Schema {
    /// # Errors
    /// Why it is none.
    pub(crate) fn new(source: &Json) -> Result<Self, String> {
        Ok(Self { source: source.clone(), schema: JsonSchema::new(source)? })
    }

    /// Adds defaults and checks.
    ///
    /// # Errors
    /// For the cell: the mistakes.
    pub(crate) fn check(&self, tool: &str, args: Value) -> Result<Value, HostError> {
        let refused =
            |message: &str| HostError::new("ToolInputError", format!("{tool}: {message}"));
        let seen = Seen::new(&args);
        let mut seen = seen.ok_or_else(|| refused("args nest too deeply or are too large"))?;
        let is_complete = !add_defaults(&self.source, &mut seen.json);
        self.schema
            .check(&seen.json)
            .map_err(|refusal| refused(&refusal.sentences("args", |place| seen.odd_at(place))))?;
        Ok(if is_complete { args } else { with_defaults(&self.source, args) })
    }

    /// `{ query: string, limit?: integer }`, or nothing without properties.
    pub(crate) fn signature(&self) -> String {
        let Some(properties) = self.source.get("properties").and_then(Json::as_object) else {
            return "args".to_owned();
        };
        let required = self.source.get("required").and_then(Json::as_array);
        let is_required =
            |name: &str| required.is_some_and(|names| names.iter().any(|known| known == name));
        let fields: Vec<String> = properties
            .iter()
            .map(|(name, schema)| {
                let mark = if is_required(name) { "" } else { "?" };
                format!("{name}{mark}: {}", kind(schema))
            })
            .collect();
        if fields.is_empty() { String::new() } else { format!("{{ {} }}", fields.join(", ")) }
    }
}

/// The type of a property, in short.
fn kind(schema: &Json) -> String {
    if let Some(options) = schema.get("enum").and_then(Json::as_array) {
        let options: Vec<String> = options.iter().map(Json::to_string).collect();
        return options.join(" | ");
    }
    match schema.get("type") {
        Some(Json::String(kind)) => kind.clone(),
        Some(Json::Array(kinds)) => {
            kinds.iter().filter_map(Json::as_str).collect::<Vec<_>>().join(" | ")
        }
        _ => "unknown".to_owned(),
    }
}

/// Fills in the defaults of properties that are missing, and says whether there were any. It goes as deep as the schema does.
fn add_defaults(schema: &Json, value: &mut Json) -> bool {
    let (Some(properties), Json::Object(fields)) =
        (schema.get("properties").and_then(Json::as_object), value)
    else {
        return false;
    };
    let added = properties.iter().map(|(name, property)| add_default(name, property, fields));
    added.fold(false, |any, added| any | added)
}

fn add_default(name: &str, property: &Json, fields: &mut Map<String, Json>) -> bool {
    if let Some(value) = fields.get_mut(name) {
        return add_defaults(property, value);
    }
    let Some(default) = property.get("default") else { return false };
    fields.insert(name.to_owned(), default.clone());
    true
}

/// As [`add_defaults`], for the value itself. An object that is completed is no longer shared with others in the value.
fn with_defaults(schema: &Json, value: Value) -> Value {
    let Some(properties) = schema.get("properties").and_then(Json::as_object) else { return value };
    if !value::is_object(&value) {
        return value;
    }
    let Ok(Fields(mut fields)) = value.deserialize() else { return value };
    for (name, property) in properties {
        let known = fields.iter_mut().find(|(known, _)| known == name);
        match (known, property.get("default")) {
            (Some((_, inner)), Some(default)) if *inner == Value::undefined() => {
                *inner = message(default);
            }
            (Some((_, inner)), _) => *inner = with_defaults(property, std::mem::take(inner)),
            (None, Some(default)) => fields.push((name.clone(), message(default))),
            (None, None) => {}
        }
    }
    Value::serialize(&Fields(fields)).unwrap_or(value)
}

/// The properties of an object, in their order.
struct Fields(Vec<(String, Value)>);

impl Serialize for Fields {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Properties;

        impl<'de> Visitor<'de> for Properties {
            type Value = Fields;

            fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                out.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }

        deserializer.deserialize_map(Properties)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Schema {
        let source = json!({
            "type": "object",
            "properties": {
                "query": { "type": "string" },
                "limit": { "type": "integer", "default": 5 },
                "order": { "enum": ["up", "down"] },
            },
            "required": ["query"],
        });
        Schema::new(&source).expect("a schema")
    }

    #[test]
    fn defaults_are_filled_in_and_mistakes_named() {
        let args = schema().check("search", message(&json!({ "query": "a" }))).expect("no mistake");
        assert_eq!(args, message(&json!({ "query": "a", "limit": 5 })));
        let mistaken = message(&json!({ "limit": "x" }));
        let error = schema().check("search", mistaken).expect_err("mistakes");
        assert_eq!(error.name, "ToolInputError");
        assert!(error.message.starts_with("search: args."), "{}", error.message);
        for mistake in ["args.limit must be integer", "args.query is missing"] {
            assert!(error.message.contains(mistake), "{}", error.message);
        }
    }

    #[test]
    fn a_signature_has_the_properties() {
        let expected = r#"{ query: string, limit?: integer, order?: "up" | "down" }"#;
        assert_eq!(schema().signature(), expected);
    }
}
