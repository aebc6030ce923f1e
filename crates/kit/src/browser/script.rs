//! The expressions that evaluate code in a page.
//!
//! In: code of the sandbox: an expression, a body with `return`, or a function. Out: expressions of JavaScript that give
//! a text. The code is in the page's hands: whatever it does to these texts, it can do nothing that a page cannot.

use serde::Deserialize;

/// A function of a function and a number: evaluates the former, and writes the result in JSON form, as the text of an
/// [`Outcome`].
const WRITER: &str = include_str!("script.js");

/// The outcome of an evaluation.
#[derive(Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default)]
pub(super) struct Outcome {
    /// The JSON text of the value.
    pub(super) json: Option<String>,
    #[serde(rename = "isTooLarge")]
    pub(super) is_too_large: bool,
    /// The name of the error; empty for any other throw.
    pub(super) name: String,
    pub(super) message: String,
}

/// An expression that has the code in a function as an expression, and does not call it. It fails only if the code is
/// no expression.
pub(super) fn probe(code: &str) -> String {
    format!("(async () => (\n{code}\n), '')")
}

/// An expression that evaluates the code, which is one itself.
pub(super) fn expression(code: &str, most_units: u64) -> String {
    format!("({WRITER})(async () => (\n{code}\n), {most_units})")
}

/// An expression that evaluates the code as the body of an asynchronous function.
pub(super) fn body(code: &str, most_units: u64) -> String {
    format!("({WRITER})(async () => {{\n{code}\n}}, {most_units})")
}
