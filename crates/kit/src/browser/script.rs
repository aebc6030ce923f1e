//! The expression that evaluates code in a page.
//!
//! In: code of the sandbox: an expression, a body, or a function. Out: an expression of JavaScript that gives a text, and
//! the reading of that text. The code is in the page's hands: whatever it does to the text, it can do nothing that a page
//! cannot, and the text has a bound that no page can change.

use isolane::async_function;
use serde::Deserialize;

/// A function of the text of a function and a number: evaluates the former, and writes the result in JSON form, as the
/// text of an [`Outcome`].
const WRITER: &str = include_str!("script.js");

/// The outcome of an evaluation.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome<'t> {
    /// The JSON text of the value.
    Json(&'t str),
    TooLarge,
    /// The JSON text of a [`Thrown`].
    Thrown(&'t str),
}

/// An error that the code has thrown.
#[derive(Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default)]
pub(super) struct Thrown {
    /// Its name; empty for any other throw.
    pub(super) name: String,
    pub(super) message: String,
}

impl<'t> Outcome<'t> {
    /// The outcome that a text tells, if it tells one.
    pub(super) fn read(text: &'t str) -> Option<Self> {
        let rest = text.get(1..)?;
        match text.as_bytes()[0] {
            b'v' => Some(Self::Json(rest)),
            b't' => Some(Self::TooLarge),
            b'e' => Some(Self::Thrown(rest)),
            _ => None,
        }
    }
}

/// An expression that evaluates the code.
pub(super) fn expression(code: &str, most_units: u64) -> String {
    let function = literal(&format!("({})", async_function(code)));
    format!("({WRITER})({function}, {most_units})")
}

/// A text as a literal of JavaScript.
fn literal(text: &str) -> String {
    let mut literal = String::with_capacity(text.len() + 2);
    literal.push('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => literal.extend(['\\', character]),
            '\n' => literal.push_str("\\n"),
            '\r' => literal.push_str("\\r"),
            _ => literal.push(character),
        }
    }
    literal.push('"');
    literal
}
