//! Numbers, dates and texts as English (United States) writes and orders them, as ECMA-402 says and V8 does it.
//!
//! In: values and resolved options, which are plain data. Out: texts in parts. Nothing here knows the engine: the room
//! `isolate/intl` reads options of the sandbox and gives it the texts. `decimal` holds and rounds numbers, `number`
//! writes them, `date` and `zone` write times, `words` has plurals and lists, `collate` orders texts and `segment` cuts them, `options` has the names of all options that are one of a list, and `data/` the tables of the Unicode
//! CLDR for this locale, made by `tests/intl/generate.mjs`.

pub(crate) mod collate;
pub(crate) mod date;
pub(crate) mod decimal;
pub(crate) mod money;
pub(crate) mod number;
pub(crate) mod options;
pub(crate) mod segment;
pub(crate) mod units;
pub(crate) mod words;
pub(crate) mod zone;

/// A part of a text, with the name of its kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) kind: &'static str,
    pub(crate) text: String,
}

impl Part {
    pub(crate) fn new(kind: &'static str, text: impl Into<String>) -> Self {
        Self { kind, text: text.into() }
    }
}

/// The text of all parts.
pub(crate) fn joined(parts: &[Part]) -> String {
    parts.iter().map(|part| part.text.as_str()).collect()
}
