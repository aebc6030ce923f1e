//! The arguments of tools.
//!
//! In: the JSON object of a call. Out: typed fields, or the text that tells a model which field is wrong.

use isolane::{Language, unknown_name, wrong_type};
use serde_json::{Map, Value as Json};

use super::catalogue::MOST as MOST_DESCRIBED;

/// The time limit of a call that asks for none, in milliseconds.
pub(super) const DEFAULT_TIMEOUT_MS: u64 = 30_000;

/// The longest time limit.
pub(super) const MOST_TIMEOUT_MS: u64 = 3_600_000;

/// The most bytes of a session's name.
pub(super) const MOST_NAME_BYTES: usize = 100;

/// Code that a model wants to run.
#[derive(Debug, PartialEq)]
pub(super) struct Code {
    pub(super) source: String,
    pub(super) language: Language,
    pub(super) timeout_ms: u64,
}

/// The fields of a call.
pub(super) struct Fields<'a>(&'a Map<String, Json>);

impl<'a> Fields<'a> {
    /// Fields of which each has one of these names.
    ///
    /// # Errors
    /// The text that names the field which is not known.
    pub(super) fn new(fields: &'a Map<String, Json>, names: &[&str]) -> Result<Self, String> {
        if let Some(key) = fields.keys().find(|key| !names.contains(&key.as_str())) {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            return Err(unknown_name("", key, &names).message().to_owned());
        }
        Ok(Self(fields))
    }

    /// # Errors
    /// The text that names a field of the wrong type.
    pub(super) fn code(&self, default_timeout_ms: u64) -> Result<Code, String> {
        Ok(Code {
            source: self.text("code")?.to_owned(),
            language: self.language()?,
            timeout_ms: self.whole("timeoutMs", MOST_TIMEOUT_MS)?.unwrap_or(default_timeout_ms),
        })
    }

    /// # Errors
    /// The text for a name that is none.
    pub(super) fn session(&self) -> Result<&'a str, String> {
        let name = self.text("session")?;
        if name.is_empty() || name.len() > MOST_NAME_BYTES || name.contains(char::is_control) {
            return Err(format!(
                "session must have from 1 to {MOST_NAME_BYTES} bytes, and no control characters"
            ));
        }
        Ok(name)
    }

    fn text(&self, name: &str) -> Result<&'a str, String> {
        let value = self.0.get(name);
        let text = value.and_then(Json::as_str);
        text.ok_or_else(|| refusal(name, "a string", value))
    }

    fn language(&self) -> Result<Language, String> {
        match self.0.get("language") {
            None | Some(Json::Null) => Ok(Language::TypeScript),
            Some(Json::String(text)) if text == "typescript" => Ok(Language::TypeScript),
            Some(Json::String(text)) if text == "javascript" => Ok(Language::JavaScript),
            other => Err(refusal("language", "'typescript' or 'javascript'", other)),
        }
    }

    /// The words that a search has, if any.
    ///
    /// # Errors
    /// The text for a query that is no string.
    pub(super) fn query(&self) -> Result<&'a str, String> {
        match self.0.get("query") {
            None | Some(Json::Null) => Ok(""),
            Some(_) => self.text("query"),
        }
    }

    /// How many tools are described at most.
    ///
    /// # Errors
    /// The text for a number that is out of range.
    pub(super) fn limit(&self) -> Result<Option<usize>, String> {
        let limit = self.whole("limit", MOST_DESCRIBED as u64)?;
        Ok(limit.map(|limit| usize::try_from(limit).unwrap_or(MOST_DESCRIBED)))
    }

    /// A whole number from 1.
    fn whole(&self, name: &str, most: u64) -> Result<Option<u64>, String> {
        let value = match self.0.get(name) {
            None | Some(Json::Null) => return Ok(None),
            Some(value) => value,
        };
        #[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
        let range = 1.0..=most as f64;
        // A host may write 500.0.
        let float = value.as_f64().filter(|float| float.fract() == 0.0 && range.contains(float));
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "whole, in range"
        )]
        let whole = float.map(|float| float as u64);
        match whole {
            Some(whole) => Ok(Some(whole)),
            None => {
                let expected = format!("a whole number from 1 to {most}");
                Err(refusal(name, &expected, Some(value)))
            }
        }
    }
}

fn refusal(name: &str, expected: &str, value: Option<&Json>) -> String {
    let got = match value {
        None => "nothing".to_owned(),
        Some(Json::Null) => "null".to_owned(),
        Some(Json::Bool(_)) => "a boolean".to_owned(),
        Some(Json::Number(number)) => number.to_string(),
        Some(Json::String(text)) => format!("'{}'", text.chars().take(100).collect::<String>()),
        Some(Json::Array(_)) => "an array".to_owned(),
        Some(Json::Object(_)) => "an object".to_owned(),
    };
    wrong_type(name, expected, &got).message().to_owned()
}
