//! A group of options as a caller wrote it: typed access, and the words for what is wrong.
//!
//! In: an object of JSON, the place where it stands, the spelling of the caller's language. Out: values, or misuse.

use isolane::{Spelling, unknown_name};
use serde_json::{Map, Value as Json};

use crate::Misuse;

/// A group of options.
pub(crate) struct Group<'g> {
    /// `limits.`, or nothing at the top.
    place: String,
    fields: &'g Map<String, Json>,
    spelling: Spelling,
}

impl<'g> Group<'g> {
    /// A group at a place, which must be an object with none but these keys (in snake case).
    pub(crate) fn new(
        place: &str,
        given: &'g Json,
        keys: &[&str],
        spelling: Spelling,
    ) -> Result<Self, Misuse> {
        let Json::Object(fields) = given else {
            let name = if place.is_empty() { "options" } else { place.trim_end_matches('.') };
            return Err(wrong_type(name, "an object", given));
        };
        let names: Vec<String> = keys.iter().map(|key| spelled(key, spelling)).collect();
        if let Some(key) = fields.keys().find(|key| !names.contains(key)) {
            let text = unknown_name("", key, &names);
            return Err(Misuse::new(format!("{place}{key}"), &format!(": {}", text.message())));
        }
        Ok(Self { place: place.to_owned(), fields, spelling })
    }

    /// A value, if it is given and not null.
    pub(crate) fn value(&self, key: &str) -> Option<&'g Json> {
        self.fields.get(&spelled(key, self.spelling)).filter(|value| !value.is_null())
    }

    /// The path of a key.
    pub(crate) fn path(&self, key: &str) -> String {
        format!("{}{}", self.place, spelled(key, self.spelling))
    }

    /// A whole number within bounds.
    pub(crate) fn count(&self, key: &str, least: u64, most: u64) -> Result<Option<u64>, Misuse> {
        let Some(value) = self.value(key) else { return Ok(None) };
        whole_number(&self.path(key), value, least, most).map(Some)
    }

    /// A truth value.
    pub(crate) fn flag(&self, key: &str) -> Result<Option<bool>, Misuse> {
        match self.value(key) {
            None => Ok(None),
            Some(Json::Bool(value)) => Ok(Some(*value)),
            Some(other) => Err(wrong_type(&self.path(key), "true or false", other)),
        }
    }

    /// A text that is not empty.
    pub(crate) fn text(&self, key: &str) -> Result<Option<String>, Misuse> {
        match self.value(key) {
            None => Ok(None),
            Some(Json::String(text)) if !text.is_empty() => Ok(Some(text.clone())),
            Some(other) => Err(wrong_type(&self.path(key), "a non-empty string", other)),
        }
    }

    /// One of these texts.
    pub(crate) fn choice(&self, key: &str, choices: &[&str]) -> Result<Option<usize>, Misuse> {
        let Some(value) = self.value(key) else { return Ok(None) };
        let found = choices.iter().position(|choice| value.as_str() == Some(choice));
        found.map(Some).ok_or_else(|| {
            let quoted: Vec<String> = choices.iter().map(|choice| format!("'{choice}'")).collect();
            wrong_type(&self.path(key), &quoted.join(" or "), value)
        })
    }

    /// Texts.
    pub(crate) fn texts(&self, key: &str) -> Result<Option<Vec<String>>, Misuse> {
        let Some(value) = self.value(key) else { return Ok(None) };
        let Json::Array(items) = value else {
            return Err(wrong_type(&self.path(key), "a list of strings", value));
        };
        let text = |(index, item): (usize, &Json)| match item {
            Json::String(text) => Ok(text.clone()),
            other => Err(wrong_type(&format!("{}[{index}]", self.path(key)), "a string", other)),
        };
        items.iter().enumerate().map(text).collect::<Result<_, _>>().map(Some)
    }

    /// Texts by name.
    pub(crate) fn texts_by_name(&self, key: &str) -> Result<Option<Vec<(String, String)>>, Misuse> {
        let Some(value) = self.value(key) else { return Ok(None) };
        let Json::Object(fields) = value else {
            return Err(wrong_type(&self.path(key), "an object of strings", value));
        };
        let text = |(name, item): (&String, &Json)| match item {
            Json::String(text) => Ok((name.clone(), text.clone())),
            other => Err(wrong_type(&format!("{}.{name}", self.path(key)), "a string", other)),
        };
        fields.iter().map(text).collect::<Result<_, _>>().map(Some)
    }
}

/// A whole number within bounds, at that path.
pub(crate) fn whole_number(path: &str, value: &Json, least: u64, most: u64) -> Result<u64, Misuse> {
    let Json::Number(number) = value else { return Err(wrong_type(path, "a number", value)) };
    let whole = number.as_u64().or_else(|| {
        let float = number.as_f64()?;
        let is_whole = float.fract() == 0.0 && (0.0..=9_007_199_254_740_991.0).contains(&float);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in range")]
        is_whole.then_some(float as u64)
    });
    match whole {
        Some(whole) if (least..=most).contains(&whole) => Ok(whole),
        _ => {
            let bounds = if most == MOST {
                format!("of at least {least}")
            } else {
                format!("from {least} to {most}")
            };
            Err(Misuse::range(path, &format!(" must be a whole number {bounds}, got {number}")))
        }
    }
}

/// The bound of a number that has none: the largest that is exact in a double.
pub(crate) const MOST: u64 = (1 << 53) - 1;

/// The misuse of a value of the wrong type.
pub(crate) fn wrong_type(path: &str, expected: &str, got: &Json) -> Misuse {
    Misuse::new(path, &format!(" must be {expected}, got {}", shown(got)))
}

/// A value as a message names it.
fn shown(value: &Json) -> String {
    match value {
        Json::Null => "null".to_owned(),
        Json::Bool(value) => value.to_string(),
        Json::Number(number) => number.to_string(),
        Json::String(text) => format!("'{}'", text.chars().take(100).collect::<String>()),
        Json::Array(_) => "a list".to_owned(),
        Json::Object(_) => "an object".to_owned(),
    }
}

/// A key as a language spells it.
pub(crate) fn spelled(key: &str, spelling: Spelling) -> String {
    if spelling == Spelling::Snake {
        return key.to_owned();
    }
    let mut words = key.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |spelled, word| {
        let mut letters = word.chars();
        let head = letters.next().map(|letter| letter.to_ascii_uppercase());
        spelled + &head.into_iter().chain(letters).collect::<String>()
    })
}
