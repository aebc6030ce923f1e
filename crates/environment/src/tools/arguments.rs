//! The check of a tool's arguments against its JSON schema.
//!
//! In: arguments. Out: nothing, or a sentence with the path of the first mistake: `args.owner must be string`.

use isolane::Step;
use jsonschema::{
    PatternOptions, ValidationError, Validator,
    error::{TypeKind, ValidationErrorKind},
    paths::{Location, LocationSegment},
};
use serde_json::Value;

/// The check of one tool's arguments.
#[derive(Debug)]
pub(crate) struct Arguments(Validator);

/// The most characters of the library's own sentences.
const MOST_SHOWN: usize = 300;

impl Arguments {
    /// A check by that schema.
    ///
    /// # Errors
    /// Why the schema is none.
    pub(crate) fn new(schema: &Value) -> Result<Self, String> {
        // An engine whose time is linear: patterns meet arguments of strangers.
        let options = jsonschema::options().with_pattern_options(PatternOptions::regex());
        let validator = options.build(schema);
        validator.map(Self).map_err(|error| shown(&error.to_string()))
    }

    /// Checks arguments.
    ///
    /// # Errors
    /// The first mistake.
    pub(crate) fn check(&self, args: &Value) -> Result<(), String> {
        self.0.validate(args).map_err(|error| sentence(&error))
    }
}

/// Checks that the arguments of a tool can be checked against a schema.
///
/// # Errors
/// Why the schema is none.
pub fn check_schema(schema: &Value) -> Result<(), String> {
    Arguments::new(schema).map(drop)
}

fn sentence(error: &ValidationError<'_>) -> String {
    let place = path(error.instance_path());
    let list = |values: &[Value]| {
        let texts: Vec<String> = values.iter().map(Value::to_string).collect();
        shown(&texts.join(", "))
    };
    let rest = match error.kind() {
        ValidationErrorKind::Type { kind: TypeKind::Single(kind) } => format!("must be {kind}"),
        ValidationErrorKind::Type { kind: TypeKind::Multiple(kinds) } => {
            let kinds: Vec<String> = kinds.into_iter().map(|kind| kind.to_string()).collect();
            format!("must be {}", kinds.join(" or "))
        }
        ValidationErrorKind::Required { property: Value::String(name) } => {
            return format!("{} is missing", Step::Key(name.clone()).after(&place));
        }
        ValidationErrorKind::AdditionalProperties { unexpected } => match unexpected.first() {
            Some(name) => return format!("{} is unknown", Step::Key(name.clone()).after(&place)),
            None => "has an unknown field".to_owned(),
        },
        ValidationErrorKind::Enum { options } => {
            format!("must be one of {}", list(options.as_array().map_or(&[], Vec::as_slice)))
        }
        ValidationErrorKind::Constant { expected_value } => {
            format!("must be {}", shown(&expected_value.to_string()))
        }
        ValidationErrorKind::Minimum { limit } => format!("must be at least {limit}"),
        ValidationErrorKind::Maximum { limit } => format!("must be at most {limit}"),
        ValidationErrorKind::ExclusiveMinimum { limit } => format!("must be more than {limit}"),
        ValidationErrorKind::ExclusiveMaximum { limit } => format!("must be less than {limit}"),
        ValidationErrorKind::MinLength { limit } => {
            format!("must have at least {limit} characters")
        }
        ValidationErrorKind::MaxLength { limit } => format!("must have at most {limit} characters"),
        ValidationErrorKind::MinItems { limit } => format!("must have at least {limit} elements"),
        ValidationErrorKind::MaxItems { limit } => format!("must have at most {limit} elements"),
        ValidationErrorKind::Pattern { pattern } => format!("must match {}", shown(pattern)),
        ValidationErrorKind::Format { format } => format!("must be a {}", shown(format)),
        _ => format!("does not fit the schema: {}", shown(&error.to_string())),
    };
    format!("{place} {rest}")
}

fn path(location: &Location) -> String {
    location.into_iter().take(24).fold("args".to_owned(), |path, segment| {
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

    #[test]
    fn the_first_mistake_is_named_with_its_path() {
        let schema = json!({
            "type": "object",
            "properties": {
                "owner": { "type": "string", "minLength": 2 },
                "tags": { "type": "array", "items": { "enum": ["a", 1] }, "maxItems": 2 },
                "count": { "type": ["integer", "null"], "minimum": 1 },
                "a b": { "const": 5 },
            },
            "required": ["owner"],
            "additionalProperties": false,
        });
        let arguments = Arguments::new(&schema).expect("a schema");
        let mistake = |args: Value| arguments.check(&args).expect_err("a mistake");
        assert_eq!(arguments.check(&json!({ "owner": "me", "count": null })), Ok(()));
        assert_eq!(mistake(json!({ "owner": 5 })), "args.owner must be string");
        assert_eq!(mistake(json!({})), "args.owner is missing");
        assert_eq!(mistake(json!([])), "args must be object");
        assert_eq!(mistake(json!({ "owner": "me", "x": 1 })), "args.x is unknown");
        assert_eq!(mistake(json!({ "owner": "m" })), "args.owner must have at least 2 characters");
        assert_eq!(
            mistake(json!({ "owner": "me", "tags": ["a", "b"] })),
            "args.tags[1] must be one of \"a\", 1"
        );
        assert_eq!(mistake(json!({ "owner": "me", "count": 0 })), "args.count must be at least 1");
        assert_eq!(
            mistake(json!({ "owner": "me", "count": "x" })),
            "args.count must be null or integer"
        );
        assert_eq!(mistake(json!({ "owner": "me", "a b": 1 })), "args[\"a b\"] must be 5");
    }

    #[test]
    fn a_schema_that_is_none_is_refused() {
        assert!(Arguments::new(&json!({ "type": "nothing" })).is_err());
        assert!(Arguments::new(&json!({ "$ref": "https://example.com/schema.json" })).is_err());
        assert!(Arguments::new(&json!({ "pattern": "(" })).is_err());
    }
}
