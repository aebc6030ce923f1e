//! The parser of oxc, as this room uses it.

use oxc_allocator::Allocator;
use oxc_parser::{ParseOptions, Parser};
use oxc_span::SourceType;

/// The kind of program that a text is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Goal {
    Module,
    Cell,
    /// A module that may return at the top.
    Returning,
    /// The body of a function, as a cell whose declarations stay.
    Body,
    /// A function of the ways in and out of a library.
    Library,
}

/// A text without a byte order mark.
pub(super) fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

pub(super) fn source_type(typescript: bool) -> SourceType {
    if typescript { SourceType::ts().with_module(true) } else { SourceType::mjs() }
}

/// A parser. Only a cell may return at its top.
pub(super) fn parser<'a>(
    allocator: &'a Allocator,
    text: &'a str,
    typescript: bool,
    returns: bool,
) -> Parser<'a> {
    let options =
        ParseOptions { allow_return_outside_function: returns, ..ParseOptions::default() };
    Parser::new(allocator, text, source_type(typescript)).with_options(options)
}
