//! JSON Schemas against values of strangers, in bounded time.
//!
//! In: a schema, and values that code in an isolate or a model made. Out: nothing, or the mistakes in a value, each with its
//! path: `args.owner must be string`. `counted` bounds the time of a check, `mistake` words a mistake.

mod counted;
mod mistake;

use isolane::Step;
use jsonschema::{PatternOptions, Validator};
use serde_json::Value as Json;

use self::counted::{Budget, Counted, Node, within};
pub use self::mistake::Mistake;

/// The steps that each check has.
const STEPS: u64 = 100_000;

/// The steps that a check has for each value, and for each piece of text, inside its value, besides.
const STEPS_FOR_EACH: u64 = 50;

/// The bytes of a text that are one step, and one piece of text.
const PIECE_BYTES: usize = 64;

/// The most mistakes that are named.
const MOST_MISTAKES: usize = 10;

/// The most mistakes that the validator may find before the first ones are named: it keeps all of them.
const MOST_FOUND: u64 = 1_000;

/// The most bytes that the paths of these may take.
const MOST_PATH_BYTES: u64 = 16 << 20;

/// A value inside which there are more than so many others has its first mistake named, and no more.
const MOST_LISTED: u64 = 10_000;

/// The steps that all values inside a value may take together, if those of [`STEPS_FOR_EACH`] are fewer.
const MOST_STEPS: u64 = 20_000_000;

/// The most bytes of a compiled pattern.
const MOST_PATTERN_BYTES: usize = 2 << 20;

/// A schema.
#[derive(Debug)]
pub struct Schema {
    validator: Validator<Counted>,
    /// The values inside the schema.
    size: u64,
}

/// Why a value is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The value does not fit; the mistakes, at least one.
    Mistakes(Vec<Mistake>),
    /// The check would take too long: alternatives of a schema that holds itself can multiply with each level of a value.
    TooComplex,
}

impl Refusal {
    /// The mistakes as a sentence each: `args.owner is missing; args.tags must be array`. `root` names the whole value, and
    /// `kind` knows values of another kind than JSON has, by their places.
    pub fn sentences<'k>(&self, root: &str, kind: impl Fn(&[Step]) -> Option<&'k str>) -> String {
        match self {
            Self::TooComplex => format!("{root} is too complex to be checked against the schema"),
            Self::Mistakes(mistakes) => {
                let sentence = |mistake: &Mistake| mistake.sentence(root, kind(mistake.place()));
                mistakes.iter().map(sentence).collect::<Vec<_>>().join("; ")
            }
        }
    }
}

impl Schema {
    /// A schema of draft 4 to 2020-12. It may refer to itself, and to nothing outside.
    ///
    /// # Errors
    /// Why it is none. Patterns have no look-around and no references to their groups.
    pub fn new(source: &Json) -> Result<Self, String> {
        // An engine whose time is linear: patterns meet values of strangers.
        let patterns = PatternOptions::regex()
            .size_limit(MOST_PATTERN_BYTES)
            .dfa_size_limit(MOST_PATTERN_BYTES);
        let options = jsonschema::options_for::<Counted>().with_pattern_options(patterns);
        let validator = options.build(source).map_err(|error| mistake::of_schema(&error))?;
        Ok(Self { validator, size: Size::of(source).values })
    }

    /// Checks a value. The time is at most proportional to the size of the value, for one schema.
    ///
    /// # Errors
    /// Its first mistakes, at most ten.
    pub fn check(&self, value: &Json) -> Result<(), Refusal> {
        let Size { values, pieces, key_bytes } = Size::of(value);
        let looks = values + pieces;
        let least = looks.saturating_mul(STEPS_FOR_EACH);
        // A schema of many alternatives takes more looks.
        let wanted = looks.saturating_mul(STEPS_FOR_EACH.saturating_add(4 * self.size));
        let steps = STEPS + least.max(wanted.min(MOST_STEPS));
        let node = Node(value);
        match within(Budget { steps, mistakes: 0 }, || self.validator.is_valid(node)) {
            Some(true) => return Ok(()),
            Some(false) => {}
            None => return Err(Refusal::TooComplex),
        }
        let mistakes = MOST_FOUND.min(MOST_PATH_BYTES / (key_bytes + 100));
        // Naming a mistake can take far longer than finding that there is one.
        let named = within(Budget { steps, mistakes }, || {
            if values > MOST_LISTED {
                return self.validator.validate(node).err().iter().map(Mistake::new).collect();
            }
            let errors = self.validator.iter_errors(node).take(MOST_MISTAKES);
            errors.map(|error| Mistake::new(&error)).collect()
        });
        Err(Refusal::Mistakes(named.unwrap_or_else(|| vec![Mistake::unnamed()])))
    }
}

/// The size of a value.
struct Size {
    /// The values inside, and itself.
    values: u64,
    /// The pieces of its texts.
    pieces: u64,
    /// The bytes of all keys.
    key_bytes: u64,
}

impl Size {
    fn of(value: &Json) -> Self {
        let mut size = Self { values: 0, pieces: 0, key_bytes: 0 };
        let mut open = vec![value];
        while let Some(value) = open.pop() {
            size.values += 1;
            match value {
                Json::String(text) => size.pieces += pieces(text),
                Json::Array(list) => open.extend(list),
                Json::Object(map) => {
                    size.key_bytes += map.keys().map(|key| key.len() as u64).sum::<u64>();
                    size.pieces += map.keys().map(|key| pieces(key)).sum::<u64>();
                    open.extend(map.values());
                }
                _ => {}
            }
        }
        size
    }
}

/// The whole pieces of a text.
fn pieces(text: &str) -> u64 {
    (text.len() / PIECE_BYTES) as u64
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refusal(schema: &Json, value: &Json) -> Refusal {
        Schema::new(schema).expect("a schema").check(value).expect_err("a refusal")
    }

    /// A value of so many levels.
    fn deep(levels: usize, last: Json) -> Json {
        (0..levels).fold(last, |inner, _| json!({ "all": [inner] }))
    }

    #[test]
    fn a_schema_that_is_none_is_refused() {
        assert!(Schema::new(&json!({ "type": "nothing" })).is_err());
        assert!(Schema::new(&json!({ "$ref": "https://example.com/schema.json" })).is_err());
        assert!(Schema::new(&json!({ "pattern": "(" })).is_err());
        for pattern in ["^(?!a)b$", r"^(a)\1$", "[^\\u0000-\\u0900]{6000}"] {
            let refused = Schema::new(&json!({ "properties": { "a": { "pattern": pattern } } }));
            let message = refused.expect_err(pattern);
            assert!(message.ends_with(" and large repetitions are not supported"), "{message}");
        }
    }

    #[test]
    fn many_alternatives_are_not_too_complex() {
        let options: Vec<Json> = (0..60).map(|n| json!({ "const": n })).collect();
        let schema = Schema::new(&json!({ "items": { "oneOf": options } })).expect("a schema");
        let list: Vec<Json> = (0..10_000).map(|n| json!(n % 60)).collect();
        assert_eq!(schema.check(&list.into()), Ok(()));
    }

    #[test]
    fn alternatives_that_multiply_end() {
        let level =
            json!({ "type": "object", "properties": { "all": { "items": { "$ref": "#" } } } });
        let schema = json!({ "anyOf": [level, level, { "const": 1 }] });
        let fitting = deep(100, json!(1));
        assert_eq!(Schema::new(&schema).expect("a schema").check(&fitting), Ok(()));
        // The mistake is in the innermost of a hundred levels, each with two ways to it.
        let refused = refusal(&schema, &deep(100, json!("x")));
        assert_eq!(refused.sentences("args", |_| None), "args does not fit the schema");
    }

    #[test]
    fn alternatives_that_multiply_without_a_level_end() {
        let mut definitions = json!({ "d30": { "type": "string" } });
        for step in 0..30 {
            let next = json!({ "$ref": format!("#/$defs/d{}", step + 1) });
            definitions[format!("d{step}")] = json!({ "anyOf": [next, next] });
        }
        let schema = json!({ "$ref": "#/$defs/d0", "$defs": definitions });
        assert_eq!(refusal(&schema, &json!(5)), Refusal::TooComplex);
    }

    #[test]
    fn large_values_are_checked_and_their_first_mistake_is_named() {
        let schema =
            json!({ "items": { "type": "object", "properties": { "n": { "type": "integer" } } } });
        let mut rows: Vec<Json> = (0..100_000).map(|n| json!({ "n": n })).collect();
        assert_eq!(
            Schema::new(&schema).expect("a schema").check(&Json::Array(rows.clone())),
            Ok(())
        );
        for row in &mut rows[5..] {
            *row = json!({ "n": "x" });
        }
        let refused = refusal(&schema, &Json::Array(rows));
        assert_eq!(refused.sentences("args", |_| None), "args[5].n must be integer");
    }

    #[test]
    fn texts_and_lists_that_are_looked_at_again_and_again_end() {
        let mut definitions =
            json!({ "d20": { "pattern": "^(ab)*$" }, "e20": { "uniqueItems": true } });
        for (letter, step) in (0..20).flat_map(|step| [('d', step), ('e', step)]) {
            let next = json!({ "$ref": format!("#/$defs/{letter}{}", step + 1) });
            definitions[format!("{letter}{step}")] = json!({ "anyOf": [next, next] });
        }
        let nested: Vec<Json> =
            (0..10_000).map(|n| json!([n, []])).chain([json!([0, []])]).collect();
        for (name, value) in [("d0", json!("abc".repeat(100_000))), ("e0", nested.into())] {
            let schema = json!({ "$ref": format!("#/$defs/{name}"), "$defs": definitions });
            assert_eq!(refusal(&schema, &value), Refusal::TooComplex);
        }
    }

    #[test]
    fn elements_that_are_equal_are_found() {
        let schema = json!({ "uniqueItems": true });
        let schema = Schema::new(&schema).expect("a schema");
        for (list, is_unique) in [
            (json!([1, 1.0]), false),
            (json!([{ "a": 1, "b": [2] }, { "b": [2.0], "a": 1 }]), false),
            (json!([[], [[]], [[], []], {}, "", null, false, 0, "[]", "null"]), true),
            (json!([["ab"], ["a", "b"], ["a,b"], { "ab": 1 }, { "a": "b" }]), true),
            (json!([18_446_744_073_709_551_615_u64, 18_446_744_073_709_551_614_u64, -1]), true),
        ] {
            assert_eq!(schema.check(&list).is_ok(), is_unique, "{list}");
        }
        let many: Vec<Json> = (0..50_000).map(|n| json!([[n], []])).collect();
        assert_eq!(schema.check(&many.into()), Ok(()));
    }

    #[test]
    fn mistakes_that_would_fill_the_memory_are_not_named() {
        let schema = json!({ "additionalProperties": { "items": { "type": "number" } } });
        let value = json!({ "k".repeat(1 << 20): vec!["x"; 9_000] });
        let refused = refusal(&schema, &value);
        assert_eq!(refused.sentences("args", |_| None), "args does not fit the schema");
        let value = json!({ "k": vec!["x"; 900] });
        let Refusal::Mistakes(mistakes) = refusal(&schema, &value) else { panic!("mistakes") };
        assert_eq!(mistakes.len(), MOST_MISTAKES);
    }
}
