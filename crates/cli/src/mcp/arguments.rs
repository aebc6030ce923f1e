//! The arguments of tools.
//!
//! In: the JSON object of a call. Out: typed fields, or the text that tells a model which field is wrong.

use isolane::{Language, unknown_name, wrong_type};
use serde_json::{Map, Value as Json};

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
    pub(super) fn code(&self) -> Result<Code, String> {
        Ok(Code {
            source: self.text("code")?.to_owned(),
            language: self.language()?,
            timeout_ms: self.timeout_ms()?,
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

    fn timeout_ms(&self) -> Result<u64, String> {
        match self.0.get("timeoutMs") {
            None | Some(Json::Null) => Ok(DEFAULT_TIMEOUT_MS),
            Some(value) => {
                // A host may write 500.0.
                let float = value.as_f64().filter(|float| float.fract() == 0.0);
                let float = float.filter(|float| (1.0..=3_600_000.0).contains(float));
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "whole, in range"
                )]
                float.map(|float| float as u64).ok_or_else(|| {
                    let expected = format!("a whole number from 1 to {MOST_TIMEOUT_MS}");
                    refusal("timeoutMs", &expected, Some(value))
                })
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
