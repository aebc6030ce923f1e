//! The JSON Schema of a tool's arguments.
//!
//! In: arguments of a cell. Out: the same with the defaults of the schema, or the mistakes in them, each with its path.

use isolane::{HostError, Step};
use jsonschema::{
    PatternOptions, ValidationError, Validator,
    paths::{Location, LocationSegment},
};
use serde_json::{Map, Value as Json};

/// The most mistakes that an error lists.
const MOST_MISTAKES: usize = 10;

/// The most characters of the library's sentences.
const MOST_SHOWN: usize = 300;

/// The most segments of a path.
const MOST_SEGMENTS: usize = 24;

/// The schema of one tool.
#[derive(Debug)]
pub(crate) struct Schema {
    source: Json,
    validator: Validator,
}

impl Schema {
    /// # Errors
    /// Why it is none.
    pub(crate) fn new(source: &Json) -> Result<Self, String> {
        // An engine whose time is linear: patterns meet arguments of cells.
        let options = jsonschema::options().with_pattern_options(PatternOptions::regex());
        let validator = options.build(source).map_err(|error| shown(&error.to_string()))?;
        Ok(Self { source: source.clone(), validator })
    }

    /// Adds defaults and checks.
    ///
    /// # Errors
    /// For the cell: the mistakes.
    pub(crate) fn check(&self, tool: &str, args: &mut Json) -> Result<(), HostError> {
        add_defaults(&self.source, args);
        let mistakes: Vec<String> = self
            .validator
            .iter_errors(args)
            .take(MOST_MISTAKES)
            .map(|error| sentence(&error))
            .collect();
        if mistakes.is_empty() {
            return Ok(());
        }
        Err(HostError::new("ToolInputError", format!("{tool}: {}", mistakes.join("; "))))
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

/// Fills in the defaults of properties that are missing. It goes as deep as the schema does.
fn add_defaults(schema: &Json, value: &mut Json) {
    let (Some(properties), Json::Object(fields)) =
        (schema.get("properties").and_then(Json::as_object), value)
    else {
        return;
    };
    for (name, property) in properties {
        add_default(name, property, fields);
    }
}

fn add_default(name: &str, property: &Json, fields: &mut Map<String, Json>) {
    if let Some(value) = fields.get_mut(name) {
        add_defaults(property, value);
    } else if let Some(default) = property.get("default") {
        fields.insert(name.to_owned(), default.clone());
    }
}

fn sentence(error: &ValidationError<'_>) -> String {
    format!("{}: {}", shown(&path(error.instance_path())), shown(&error.to_string()))
}

fn path(location: &Location) -> String {
    location.into_iter().take(MOST_SEGMENTS).fold("args".to_owned(), |path, segment| {
        let step = match segment {
            LocationSegment::Property(name) => Step::Key(name.into_owned()),
            LocationSegment::Index(index) => Step::Index(index),
        };
        step.after(&path)
    })
}

fn shown(text: &str) -> String {
    text.chars().take(MOST_SHOWN).collect()
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
        let mut args = json!({ "query": "a" });
        schema().check("search", &mut args).expect("no mistake");
        assert_eq!(args, json!({ "query": "a", "limit": 5 }));
        let error = schema().check("search", &mut json!({ "limit": "x" })).expect_err("mistakes");
        assert_eq!(error.name, "ToolInputError");
        let mistakes = [
            "search: ",
            "args.limit: \"x\" is not of type \"integer\"",
            "args: \"query\" is a required property",
        ];
        assert!(
            mistakes.iter().all(|mistake| error.message.contains(mistake)),
            "{}",
            error.message
        );
    }

    #[test]
    fn a_signature_has_the_properties() {
        let expected = r#"{ query: string, limit?: integer, order?: "up" | "down" }"#;
        assert_eq!(schema().signature(), expected);
    }
}
