//! Objects of the configuration, read with their paths.
//!
//! In: JSON. Out: typed fields, or the mistake with its path: `mcpServers.github.args must be an array of strings, got 5`.

use isolane::{Error, ErrorKind, Step, unknown_name, wrong_type};
use serde_json::{Map, Value as Json};

use super::variables::Variables;

/// An object at a path.
pub(super) struct Object<'j> {
    path: String,
    fields: &'j Map<String, Json>,
}

impl<'j> Object<'j> {
    /// The object at that path.
    pub(super) fn new(path: String, json: &'j Json) -> Result<Self, Error> {
        match json {
            Json::Object(fields) => Ok(Self { path, fields }),
            other => Err(wrong(&path, "an object", other)),
        }
    }

    /// The path of a field.
    pub(super) fn path(&self, name: &str) -> String {
        if self.path.is_empty() {
            return name.to_owned();
        }
        Step::Key(name.to_owned()).after(&self.path)
    }

    /// Refuses fields that have none of these names.
    pub(super) fn knows(&self, names: &[&str]) -> Result<(), Error> {
        let Some(key) = self.fields.keys().find(|key| !names.contains(&key.as_str())) else {
            return Ok(());
        };
        let place = if self.path.is_empty() { String::new() } else { format!("{}.", self.path) };
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        Err(unknown_name(&place, key, &names))
    }

    /// All fields, each an object with its name.
    pub(super) fn objects(&self) -> impl Iterator<Item = Result<(&'j str, Self), Error>> {
        self.fields
            .iter()
            .map(|(name, json)| Ok((name.as_str(), Self::new(self.path(name), json)?)))
    }

    /// All fields, each a text with its name.
    pub(super) fn texts(&self) -> impl Iterator<Item = Result<(&'j str, &'j str), Error>> {
        self.fields.iter().map(|(name, json)| match json {
            Json::String(text) => Ok((name.as_str(), text.as_str())),
            other => Err(wrong(&self.path(name), "a string", other)),
        })
    }

    /// All fields, each a text with its name, in which variables have their values.
    pub(super) fn filled(&self, variables: &mut Variables) -> Result<Vec<(String, String)>, Error> {
        self.texts()
            .map(|field| {
                let (name, text) = field?;
                Ok((name.to_owned(), variables.fill(&self.path(name), text)?))
            })
            .collect()
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.fields.contains_key(name)
    }

    pub(super) fn json(&self, name: &str) -> Option<&'j Json> {
        self.fields.get(name)
    }

    pub(super) fn object(&self, name: &str) -> Result<Option<Self>, Error> {
        self.json(name).map(|json| Self::new(self.path(name), json)).transpose()
    }

    pub(super) fn text(&self, name: &str) -> Result<Option<&'j str>, Error> {
        match self.json(name) {
            None => Ok(None),
            Some(Json::String(text)) => Ok(Some(text)),
            Some(other) => Err(wrong(&self.path(name), "a string", other)),
        }
    }

    pub(super) fn is_true(&self, name: &str) -> Result<bool, Error> {
        match self.json(name) {
            None => Ok(false),
            Some(Json::Bool(value)) => Ok(*value),
            Some(other) => Err(wrong(&self.path(name), "a boolean", other)),
        }
    }

    /// A list of texts; empty if there is none.
    pub(super) fn list(&self, name: &str) -> Result<Vec<&'j str>, Error> {
        let expected = "an array of strings";
        match self.json(name) {
            None => Ok(Vec::new()),
            Some(Json::Array(elements)) => elements
                .iter()
                .enumerate()
                .map(|(index, element)| {
                    let path = || Step::Index(index).after(&self.path(name));
                    element.as_str().ok_or_else(|| wrong(&path(), "a string", element))
                })
                .collect(),
            Some(other) => Err(wrong(&self.path(name), expected, other)),
        }
    }
}

/// The error for JSON of another type. It shows no value, which may be a secret.
fn wrong(path: &str, expected: &str, got: &Json) -> Error {
    let got = match got {
        Json::Null => "null",
        Json::Bool(_) => "a boolean",
        Json::Number(_) => "a number",
        Json::String(_) => "a string",
        Json::Array(_) => "an array",
        Json::Object(_) => "an object",
    };
    let path = if path.is_empty() { "the configuration" } else { path };
    wrong_type(path, expected, got)
}

/// The error for a field with that path.
pub(super) fn misuse(path: &str, problem: &str) -> Error {
    Error::new(ErrorKind::Type, format!("{path}: {problem}"))
}
