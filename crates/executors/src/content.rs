//! Contents and parts of a conversation, as Gemini's wire has them.
//!
//! In: JSON, in camel or snake case, or texts and code. Out: the same JSON. A part is known by its field. Everything else
//! in it, and every part of another kind, stays as it came.

use isolane::{Error, ErrorKind};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use serde_json::{Map, Value as Json};

use crate::Outcome;

/// The fields in which messages of other APIs, and whole answers of Gemini's, have their text. No part has any of them.
const OF_MESSAGES: [&str; 5] = ["content", "choices", "candidates", "message", "output"];

/// The language of code whose language nobody said.
const UNSPECIFIED: &str = "LANGUAGE_UNSPECIFIED";

/// The speaker of a content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The user, or a program on its behalf.
    #[default]
    User,
    /// The model.
    Model,
}

/// A message of one side, in parts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Content {
    /// The side that said it.
    pub role: Role,
    /// The parts, in order.
    pub parts: Vec<Part>,
    /// Further fields, as they came.
    extra: Map<String, Json>,
}

/// A part of a content.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// `{ text }`
    Text(TextPart),
    /// `{ executableCode: { language, code } }`
    ExecutableCode(CodePart),
    /// `{ codeExecutionResult: { outcome, output } }`
    CodeExecutionResult(ResultPart),
    /// Any other one.
    Other(OtherPart),
}

/// A part that is a text. It may be a thought, and may have further fields.
#[derive(Clone, Debug, PartialEq)]
pub struct TextPart(Map<String, Json>);

/// A part that is a program.
#[derive(Clone, Debug, PartialEq)]
pub struct CodePart(Map<String, Json>);

/// A part that is the result of a program.
#[derive(Clone, Debug, PartialEq)]
pub struct ResultPart(Map<String, Json>);

/// A part of a kind that the loop has no use for, such as an image.
#[derive(Clone, Debug, PartialEq)]
pub struct OtherPart(Map<String, Json>);

impl Content {
    /// A content of those parts.
    #[must_use]
    pub fn new(role: Role, parts: Vec<Part>) -> Self {
        Self { role, parts, extra: Map::new() }
    }

    /// One text of the user.
    #[must_use]
    pub fn user(text: impl Into<String>) -> Self {
        Self::new(Role::User, vec![Part::text(text)])
    }

    /// Parts of the model.
    #[must_use]
    pub fn model(parts: Vec<Part>) -> Self {
        Self::new(Role::Model, parts)
    }

    /// Contents of JSON: a list.
    ///
    /// # Errors
    /// The place of the first that is no content, or the first part that is none.
    pub fn list_from_json(json: Json) -> Result<Vec<Self>, Error> {
        let Json::Array(list) = json else {
            return Err(misuse(format!("contents must be a list, got {}", kind_of(&json))));
        };
        let content = |(index, json)| Self::read(json, &format!("contents[{index}]"));
        list.into_iter().enumerate().map(content).collect()
    }

    fn read(json: Json, place: &str) -> Result<Self, Error> {
        let Json::Object(mut extra) = json else {
            return Err(misuse(format!("{place} must be an object, got {}", kind_of(&json))));
        };
        let role = match extra.shift_remove("role") {
            None | Some(Json::Null) => Role::User,
            Some(Json::String(role)) if role == "user" => Role::User,
            Some(Json::String(role)) if role == "model" => Role::Model,
            Some(other) => {
                let got = shown(&other);
                return Err(misuse(format!("{place}.role must be 'user' or 'model', got {got}")));
            }
        };
        let parts = match extra.shift_remove("parts") {
            None | Some(Json::Null) => Vec::new(),
            Some(parts) => Part::read_list(parts, &format!("{place}.parts"))?,
        };
        Ok(Self { role, parts, extra })
    }
}

impl Part {
    /// A text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextPart(object([("text", Json::String(text.into()))])))
    }

    /// A program in that language, such as `python`. Empty is none in particular.
    #[must_use]
    pub fn code(language: &str, code: impl Into<String>) -> Self {
        let language = match language {
            "" => UNSPECIFIED.to_owned(),
            language => language.to_uppercase(),
        };
        let code = [("language", Json::String(language)), ("code", Json::String(code.into()))];
        Self::ExecutableCode(CodePart(object([("executableCode", Json::Object(object(code)))])))
    }

    /// The result of a program.
    #[must_use]
    pub fn result(outcome: Outcome, output: impl Into<String>) -> Self {
        let outcome = Json::String(outcome_word(outcome).to_owned());
        let result = [("outcome", outcome), ("output", Json::String(output.into()))];
        let part = object([("codeExecutionResult", Json::Object(object(result)))]);
        Self::CodeExecutionResult(ResultPart(part))
    }

    /// A part of JSON.
    ///
    /// # Errors
    /// JSON that is no object, an object without any field, or a known field of the wrong type.
    pub fn from_json(json: Json) -> Result<Self, Error> {
        Self::read(json, "part")
    }

    /// Parts of JSON: a list, a single part, a text, or those of a content, `{ role, parts }`.
    ///
    /// # Errors
    /// As [`Part::from_json`], with the place in the list; and the message of an API that is not Gemini's, such as
    /// `{ role, content }` or `{ choices }`.
    pub fn list_from_json(json: Json) -> Result<Vec<Self>, Error> {
        match json {
            Json::String(text) => Ok(vec![Self::text(text)]),
            Json::Object(mut content) if content.contains_key("parts") => {
                Self::read_list(content.shift_remove("parts").unwrap_or_default(), "parts")
            }
            json @ Json::Object(_) => {
                let part = Self::read(json, "part")?;
                part.check_no_message()?;
                Ok(vec![part])
            }
            json @ Json::Array(_) => Self::read_list(json, "parts"),
            other => {
                let got = kind_of(&other);
                let message =
                    format!("a reply must be a text, a part or a list of parts, got {got}");
                Err(misuse(message))
            }
        }
    }

    /// Refuses the message of another API, whose text would be lost.
    fn check_no_message(&self) -> Result<(), Error> {
        let Self::Other(OtherPart(fields)) = self else { return Ok(()) };
        let Some(name) = OF_MESSAGES.into_iter().find(|name| fields.contains_key(*name)) else {
            return Ok(());
        };
        Err(misuse(format!(
            "a reply must be a text, a part or a list of parts, got the message of an API, with '{name}': return its text"
        )))
    }

    /// Whether it is a thought, which is no part of the answer.
    #[must_use]
    pub fn is_thought(&self) -> bool {
        self.fields().get("thought") == Some(&Json::Bool(true))
    }

    /// Whether it is a text and no thought.
    pub(crate) fn as_said(&self) -> Option<&str> {
        match self {
            Self::Text(text) if !self.is_thought() => Some(text.text()),
            _ => None,
        }
    }

    /// Appends a text to this part if both are plain texts: a stream has one in pieces. Gives back what it cannot take.
    pub(crate) fn append(&mut self, next: Self) -> Option<Self> {
        match (self, next) {
            (Self::Text(text), Self::Text(next)) if text.0.len() == 1 && next.0.len() == 1 => {
                if let Some(Json::String(text)) = text.0.get_mut("text") {
                    text.push_str(next.text());
                }
                None
            }
            (_, next) => Some(next),
        }
    }

    fn read_list(json: Json, place: &str) -> Result<Vec<Self>, Error> {
        let Json::Array(parts) = json else {
            return Err(misuse(format!("{place} must be a list, got {}", kind_of(&json))));
        };
        let part = |(index, json)| Self::read(json, &format!("{place}[{index}]"));
        parts.into_iter().enumerate().map(part).collect()
    }

    fn read(json: Json, place: &str) -> Result<Self, Error> {
        let Json::Object(part) = json else {
            return Err(misuse(format!("{place} must be an object, got {}", kind_of(&json))));
        };
        if let Some(code) = field(&part, CODE) {
            check_fields(code, &["language", "code"], &format!("{place}.executableCode"))?;
            return Ok(Self::ExecutableCode(CodePart(part)));
        }
        if let Some(result) = field(&part, RESULT) {
            check_fields(result, &["output"], &format!("{place}.codeExecutionResult"))?;
            return Ok(Self::CodeExecutionResult(ResultPart(part)));
        }
        match part.get("text") {
            Some(Json::String(_)) => Ok(Self::Text(TextPart(part))),
            None | Some(Json::Null) if part.values().all(Json::is_null) => {
                Err(misuse(format!("{place} has no field")))
            }
            None | Some(Json::Null) => Ok(Self::Other(OtherPart(part))),
            Some(other) => {
                let got = kind_of(other);
                Err(misuse(format!("{place}.text must be a string, got {got}")))
            }
        }
    }

    fn fields(&self) -> &Map<String, Json> {
        match self {
            Self::Text(TextPart(fields))
            | Self::ExecutableCode(CodePart(fields))
            | Self::CodeExecutionResult(ResultPart(fields))
            | Self::Other(OtherPart(fields)) => fields,
        }
    }
}

impl TextPart {
    /// The text.
    #[must_use]
    pub fn text(&self) -> &str {
        self.0.get("text").and_then(Json::as_str).unwrap_or_default()
    }

    /// Replaces the text; all else stays.
    pub(crate) fn set_text(&mut self, text: String) {
        self.0.insert("text".to_owned(), Json::String(text));
    }
}

impl CodePart {
    /// The language in lower case; empty if it is not specified.
    #[must_use]
    pub fn language(&self) -> String {
        match self.field("language") {
            UNSPECIFIED => String::new(),
            language => language.to_lowercase(),
        }
    }

    /// The source.
    #[must_use]
    pub fn code(&self) -> &str {
        self.field("code")
    }

    fn field(&self, name: &str) -> &str {
        let code = field(&self.0, CODE);
        code.and_then(|code| code.get(name)).and_then(Json::as_str).unwrap_or_default()
    }
}

impl ResultPart {
    /// The outcome.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        let outcome = field(&self.0, RESULT).and_then(|result| result.get("outcome"));
        match outcome.and_then(Json::as_str) {
            Some("OUTCOME_OK") => Outcome::OutcomeOk,
            Some("OUTCOME_FAILED") => Outcome::OutcomeFailed,
            Some("OUTCOME_DEADLINE_EXCEEDED") => Outcome::OutcomeDeadlineExceeded,
            _ => Outcome::OutcomeUnspecified,
        }
    }

    /// The output.
    #[must_use]
    pub fn output(&self) -> &str {
        let result = field(&self.0, RESULT);
        result.and_then(|result| result.get("output")).and_then(Json::as_str).unwrap_or_default()
    }
}

impl OtherPart {
    /// Its fields, as they came.
    #[must_use]
    pub fn fields(&self) -> &Map<String, Json> {
        &self.0
    }
}

impl Serialize for Part {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.fields().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Part {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_json(Json::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

impl Serialize for Content {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap as _;
        let mut map = serializer.serialize_map(Some(2 + self.extra.len()))?;
        map.serialize_entry("role", &self.role)?;
        map.serialize_entry("parts", &self.parts)?;
        for (name, value) in &self.extra {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::read(Json::deserialize(deserializer)?, "content").map_err(D::Error::custom)
    }
}

/// The word of an outcome, on the wire.
#[must_use]
pub(crate) fn outcome_word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::OutcomeUnspecified => "OUTCOME_UNSPECIFIED",
        Outcome::OutcomeOk => "OUTCOME_OK",
        Outcome::OutcomeFailed => "OUTCOME_FAILED",
        Outcome::OutcomeDeadlineExceeded => "OUTCOME_DEADLINE_EXCEEDED",
    }
}

/// The spellings of a field.
type Spellings = [&'static str; 2];

const CODE: Spellings = ["executableCode", "executable_code"];
const RESULT: Spellings = ["codeExecutionResult", "code_execution_result"];

/// A field in either spelling. One that is null is none.
fn field(part: &Map<String, Json>, spellings: Spellings) -> Option<&Json> {
    spellings.iter().find_map(|name| part.get(*name).filter(|value| !value.is_null()))
}

/// Checks that it is an object whose fields of those names are strings, if they are there.
fn check_fields(json: &Json, names: &[&str], place: &str) -> Result<(), Error> {
    let Json::Object(fields) = json else {
        return Err(misuse(format!("{place} must be an object, got {}", kind_of(json))));
    };
    for name in names {
        match fields.get(*name) {
            None | Some(Json::Null | Json::String(_)) => {}
            Some(other) => {
                let got = kind_of(other);
                return Err(misuse(format!("{place}.{name} must be a string, got {got}")));
            }
        }
    }
    Ok(())
}

fn object<const N: usize>(fields: [(&str, Json); N]) -> Map<String, Json> {
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn misuse(message: String) -> Error {
    Error::new(ErrorKind::Type, message)
}

/// The kind of a JSON value, with the article.
pub(crate) fn kind_of(json: &Json) -> &'static str {
    match json {
        Json::Null => "null",
        Json::Bool(_) => "a boolean",
        Json::Number(_) => "a number",
        Json::String(_) => "a string",
        Json::Array(_) => "a list",
        Json::Object(_) => "an object",
    }
}

fn shown(json: &Json) -> String {
    match json {
        Json::String(text) => format!("'{}'", text.chars().take(100).collect::<String>()),
        other => kind_of(other).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_goes_back_as_it_came() {
        let json = r#"{"role":"model","parts":[
            {"z":1,"thoughtSignature":"c2ln","text":"a","thought":true},
            {"b":null,"executable_code":{"zz":2,"code":"x","language":"PYTHON","aa":{"y":1,"x":2}},"a":[1,2.5,"é"]},
            {"code_execution_result":{"outcome":"OUTCOME_OK"},"id":"7"},
            {"inlineData":{"mimeType":"image/png","data":"AA=="}}
        ],"z":1,"a":[null]}"#;
        let content: Content = serde_json::from_str(json).expect("a content");
        let expected: String = json.split('\n').map(str::trim).collect();
        assert_eq!(serde_json::to_string(&content).expect("JSON"), expected);
        let Part::CodeExecutionResult(result) = &content.parts[2] else { panic!("{content:?}") };
        assert_eq!((result.outcome(), result.output()), (Outcome::OutcomeOk, ""));
        assert!(content.parts[0].is_thought() && !content.parts[1].is_thought());
    }

    #[test]
    fn parts_are_what_they_are_made_of() {
        let json = |part: &Part| serde_json::to_string(part).expect("JSON");
        assert_eq!(json(&Part::text("a")), r#"{"text":"a"}"#);
        assert_eq!(
            json(&Part::code("", "x")),
            r#"{"executableCode":{"language":"LANGUAGE_UNSPECIFIED","code":"x"}}"#
        );
        assert_eq!(
            json(&Part::result(Outcome::OutcomeDeadlineExceeded, "x")),
            r#"{"codeExecutionResult":{"outcome":"OUTCOME_DEADLINE_EXCEEDED","output":"x"}}"#
        );
        let code = Part::from_json(serde_json::json!({ "executableCode": {} })).expect("a part");
        let Part::ExecutableCode(code) = code else { panic!("{code:?}") };
        assert_eq!((code.language().as_str(), code.code()), ("", ""));
    }
}
