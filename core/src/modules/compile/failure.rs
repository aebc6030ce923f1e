//! The first error of a text, before it is explained.
//!
//! In: the parser's diagnostics, or an error that this room finds itself. Out: its message, its places, and the parser's own
//! remedy. `advice` makes the message for people of it.

use oxc_diagnostics::OxcDiagnostic;
use oxc_span::LabeledSpan;

/// The first error of a text.
pub(super) struct Failure {
    pub(super) message: String,
    /// The offset of its first label.
    pub(super) at: Option<usize>,
    /// The offset of its last label, where it has several.
    pub(super) last: Option<usize>,
    pub(super) help: Option<String>,
}

impl Failure {
    pub(super) fn new(diagnostic: &OxcDiagnostic) -> Self {
        let offset = |label: &LabeledSpan| label.offset() as usize;
        let labels = &diagnostic.labels;
        Self {
            message: diagnostic.message.to_string(),
            at: labels.first().map(offset),
            last: labels.get(1..).and_then(<[LabeledSpan]>::last).map(offset),
            help: diagnostic.help.as_ref().map(ToString::to_string),
        }
    }

    /// An error without a place.
    pub(super) fn without_place(message: &str) -> Self {
        Self { message: message.to_owned(), at: None, last: None, help: None }
    }

    /// An error at a place.
    pub(super) fn at(message: String, at: usize) -> Self {
        Self { message, at: Some(at), last: None, help: None }
    }

    /// A name that is declared at one place and again at a later one. The parser has the same words.
    pub(super) fn declared_twice(name: &str, first: usize, second: usize) -> Self {
        let message = format!("Identifier `{name}` has already been declared");
        Self { last: Some(second), ..Self::at(message, first) }
    }

    /// A name that is exported at one place and again at a later one. The parser has the same words.
    pub(super) fn exported_twice(name: &str, first: usize, second: usize) -> Self {
        let message = if name == "default" {
            "A module cannot have multiple default exports.".to_owned()
        } else {
            format!("Duplicated export '{name}'")
        };
        Self { last: Some(second), ..Self::at(message, first) }
    }
}
