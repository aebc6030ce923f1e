//! A mistake in a value, in words.
//!
//! In: an error of the validator. Out: a sentence with the path: `args.owner must be string`.

use isolane::Step;
use jsonschema::{
    ValidationError,
    error::{TypeKind, ValidationErrorKind},
    paths::{Location, LocationSegment},
};
use serde_json::Value;

/// The most characters of a part that comes from a schema or the validator.
const MOST_SHOWN: usize = 300;

/// The most segments of a path.
const MOST_SEGMENTS: usize = 24;

/// A mistake in a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    place: Vec<Step>,
    text: String,
}

impl Mistake {
    pub(crate) fn new(error: &ValidationError<'_>) -> Self {
        let mut place = steps(error.instance_path());
        let text = match error.kind() {
            ValidationErrorKind::Required { property: Value::String(name) } => {
                place.push(Step::Key(name.clone()));
                "is missing".to_owned()
            }
            ValidationErrorKind::AdditionalProperties { unexpected } if !unexpected.is_empty() => {
                place.push(Step::Key(unexpected[0].clone()));
                "is unknown".to_owned()
            }
            kind => text(kind).unwrap_or_else(|| {
                format!("does not fit the schema: {}", shown(&error.masked().to_string()))
            }),
        };
        Self { place, text }
    }

    /// A mistake whose place would take too long to find.
    pub(crate) fn unnamed() -> Self {
        Self { place: Vec::new(), text: "does not fit the schema".to_owned() }
    }

    /// The steps to the place.
    pub(crate) fn place(&self) -> &[Step] {
        &self.place
    }

    /// The sentence: `args.owner must be string`, or, with the kind of the value at the place, `args.owner must be string,
    /// got a Date`. `root` is the name of the whole value.
    pub(crate) fn sentence(&self, root: &str, kind: Option<&str>) -> String {
        let path = self.place.iter().take(MOST_SEGMENTS);
        let path = shown(&path.fold(root.to_owned(), |path, step| step.clone().after(&path)));
        let got = kind.map(|kind| format!(", got {kind}")).unwrap_or_default();
        format!("{path} {}{got}", self.text)
    }
}

/// Why a schema is none.
pub(crate) fn of_schema(error: &ValidationError<'_>) -> String {
    match error.kind() {
        ValidationErrorKind::Format { format } if format == "regex" => {
            let pattern = shown(&error.instance().to_string());
            format!(
                "the pattern {pattern} cannot be used: look-around, references to groups and large repetitions are not supported"
            )
        }
        _ => shown(&error.to_string()),
    }
}

fn text(kind: &ValidationErrorKind) -> Option<String> {
    let list = |values: &[Value]| {
        let texts: Vec<String> = values.iter().map(Value::to_string).collect();
        shown(&texts.join(", "))
    };
    Some(match kind {
        ValidationErrorKind::Type { kind: TypeKind::Single(kind) } => format!("must be {kind}"),
        ValidationErrorKind::Type { kind: TypeKind::Multiple(kinds) } => {
            let kinds: Vec<String> = kinds.into_iter().map(|kind| kind.to_string()).collect();
            format!("must be {}", kinds.join(" or "))
        }
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
        _ => return None,
    })
}

fn steps(location: &Location) -> Vec<Step> {
    let step = |segment| match segment {
        LocationSegment::Property(name) => Step::Key(name.into_owned()),
        LocationSegment::Index(index) => Step::Index(index),
    };
    location.into_iter().map(step).collect()
}

/// The beginning of a text.
fn shown(text: &str) -> String {
    text.chars().take(MOST_SHOWN).collect()
}

#[cfg(test)]
mod tests {
    use isolane::Step;
    use serde_json::json;

    use crate::Schema;

    #[test]
    fn mistakes_are_named_with_their_paths() {
        let schema = json!({
            "type": "object",
            "properties": {
                "owner": { "type": "string", "minLength": 2 },
                "tags": { "type": "array", "items": { "enum": ["a", 1] }, "maxItems": 2 },
                "count": { "type": ["integer", "null"], "minimum": 1 },
                "a b": { "const": 5 },
                "even": { "multipleOf": 2 },
            },
            "required": ["owner"],
            "additionalProperties": false,
        });
        let schema = Schema::new(&schema).expect("a schema");
        let fitting = json!({ "owner": "me", "count": null });
        assert_eq!(schema.check(&fitting), Ok(()));
        for (args, expected) in [
            (json!({ "owner": 5 }), "args.owner must be string"),
            (json!({}), "args.owner is missing"),
            (json!([]), "args must be object"),
            (json!({ "owner": "me", "x": 1 }), "args.x is unknown"),
            (json!({ "owner": "m" }), "args.owner must have at least 2 characters"),
            (json!({ "owner": "me", "tags": ["a", "b"] }), "args.tags[1] must be one of \"a\", 1"),
            (json!({ "owner": "me", "count": 0 }), "args.count must be at least 1"),
            (json!({ "owner": "me", "count": "x" }), "args.count must be null or integer"),
            (json!({ "owner": "me", "a b": 1 }), "args[\"a b\"] must be 5"),
            (
                json!({ "owner": "me", "even": 1 }),
                "args.even does not fit the schema: value is not a multiple of 2",
            ),
            (
                json!({ "owner": "m", "count": 0 }),
                "args.owner must have at least 2 characters; args.count must be at least 1",
            ),
        ] {
            let refusal = schema.check(&args).expect_err("mistakes");
            assert_eq!(refusal.sentences("args", |_| None), expected);
        }
    }

    #[test]
    fn the_kind_of_a_value_is_told() {
        let schema = Schema::new(&json!({ "items": { "type": "number" } })).expect("a schema");
        let refusal = schema.check(&json!([1, null])).expect_err("a mistake");
        let kind = |place: &[Step]| (place == [Step::Index(1)]).then_some("a Date");
        assert_eq!(refusal.sentences("args", kind), "args[1] must be number, got a Date");
    }
}
