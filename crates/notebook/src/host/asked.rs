//! The questions of `llm` and `agent`: what a cell may ask, and the answers that it gets.
//!
//! In: the arguments of a cell, then the answer of the host's function. Out: fields of JSON, or the error for the cell; a
//! text, or with a schema a value.

use isolane::{HostError, Spelling, Step, Value, value::Event};
use serde_json::Value as Json;

use super::{HostAnswer, seen::Seen, value};
use crate::{
    door::message,
    given::{Group, spelled},
};

/// The arguments of a question, which are an object of JSON.
pub(super) struct Asked {
    helper: &'static str,
    spelling: Spelling,
    fields: Json,
}

impl Asked {
    /// Reads an object with none but these keys (in snake case).
    pub(super) fn read(
        helper: &'static str,
        args: &Value,
        keys: &[&str],
        spelling: Spelling,
    ) -> Result<Self, HostError> {
        let seen = Seen::new(args);
        let seen = seen.ok_or_else(|| refused(helper, "the arguments are too large"))?;
        if let Some((place, kind)) = seen.first_odd() {
            let key = match place.first() {
                Some(Step::Key(key)) => key.as_str(),
                _ => "args",
            };
            return Err(refused(helper, &format!("{key} must be JSON, got {kind}")));
        }
        Group::new("", &seen.json, keys, spelling)
            .map_err(|misuse| refused(helper, misuse.message()))?;
        Ok(Self { helper, spelling, fields: seen.json })
    }

    /// The prompt.
    pub(super) fn prompt(&self) -> Result<String, HostError> {
        self.text("prompt")?.ok_or_else(|| refused(self.helper, "prompt must be a string"))
    }

    /// A text, if it is given.
    pub(super) fn text(&self, key: &str) -> Result<Option<String>, HostError> {
        match self.data(key) {
            None => Ok(None),
            Some(Json::String(text)) => Ok(Some(text.clone())),
            Some(_) => {
                let key = spelled(key, self.spelling);
                Err(refused(self.helper, &format!("{key} must be a string")))
            }
        }
    }

    /// A text that has an empty one in the place of none.
    pub(super) fn name(&self, key: &str) -> Result<Option<String>, HostError> {
        Ok(self.text(key)?.filter(|text| !text.is_empty()))
    }

    /// The JSON Schema of the answer.
    pub(super) fn schema(&self) -> Result<Option<Json>, HostError> {
        match self.data("schema") {
            Some(schema) if !schema.is_object() => {
                Err(refused(self.helper, "schema must be an object"))
            }
            schema => Ok(schema.cloned()),
        }
    }

    /// A value, if it is given and not null.
    pub(super) fn data(&self, key: &str) -> Option<&Json> {
        self.fields.get(spelled(key, self.spelling)).filter(|value| !value.is_null())
    }
}

fn refused(helper: &str, problem: &str) -> HostError {
    HostError::new("TypeError", format!("{helper}: {problem}"))
}

/// The answer of the host's function, as its cell gets it.
pub(super) fn answered(helper: &str, answer: Value, has_schema: bool) -> HostAnswer {
    let text = value::as_text(&answer);
    let is_nothing = matches!(answer.reader().event(), Ok(Event::Undefined | Event::Null));
    if is_nothing || text.as_ref().is_some_and(|text| text.trim().is_empty()) {
        return Err(HostError::new("Error", format!("{helper} gave an empty answer")));
    }
    match text {
        Some(text) if has_schema => {
            let parsed = serde_json::from_str::<Json>(&text);
            parsed.map(|json| message(&json)).map_err(|error| {
                let text = format!("the answer of {helper} is no JSON: {error}");
                HostError::new("SyntaxError", text)
            })
        }
        None if !has_schema => {
            let text = format!("the answer of {helper} must be a string");
            Err(HostError::new("TypeError", text))
        }
        _ => Ok(answer),
    }
}
