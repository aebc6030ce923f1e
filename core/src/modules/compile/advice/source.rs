//! A text that does not compile, and the remedies that the rules give for it.

use oxc_ast::ast::Program;

use super::{
    super::{failure::Failure, text::lines::Lines},
    tokens::Tokens,
};

/// The message for a program that begins with a fence. Most of those parse: as templates.
pub(in super::super) const FENCED: &str =
    "The code is fenced in Markdown: send only the lines inside of the fence";

/// A remedy.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Advice {
    pub(super) clause: String,
    /// The place of the mistake, where that is not the place of the error.
    pub(super) at: Option<usize>,
    /// A specifier, and the clause if the run has a module of that name.
    pub(super) if_given: Option<(String, String)>,
}

impl Advice {
    pub(super) fn new(clause: impl Into<String>) -> Self {
        Self { clause: clause.into(), at: None, if_given: None }
    }

    pub(super) fn at(clause: impl Into<String>, at: usize) -> Self {
        Self { at: Some(at), ..Self::new(clause) }
    }
}

/// A text that does not compile, as far as it is known.
pub(super) struct Source<'s, 'a, 'l> {
    pub(super) text: &'a str,
    pub(super) typescript: bool,
    /// The offset of the error.
    pub(super) at: usize,
    pub(super) failure: &'s Failure,
    pub(super) tokens: Tokens<'a>,
    pub(super) program: &'s Program<'a>,
    pub(super) lines: &'s mut Lines<'l>,
    pub(super) reader: &'s Reader<'s>,
}

/// Answers about other texts.
pub(in super::super) struct Reader<'r> {
    /// Whether a text, read as TypeScript or not, is a module without errors.
    pub(in super::super) parses: &'r dyn Fn(&str, bool) -> bool,
    /// Whether a text of TypeScript is a module of JavaScript as soon as its types are blanks.
    pub(in super::super) runs_without_types: &'r dyn Fn(&str) -> bool,
}

impl<'a> Source<'_, 'a, '_> {
    /// The text from an offset on.
    pub(super) fn from(&self, at: usize) -> &'a str {
        self.text.get(at..).unwrap_or_default()
    }

    /// The text up to an offset.
    pub(super) fn to(&self, at: usize) -> &'a str {
        self.text.get(..at).unwrap_or_default()
    }

    /// The text after the error, without blanks on its line.
    pub(super) fn rest(&self) -> &'a str {
        self.from(self.at).trim_start_matches([' ', '\t'])
    }

    /// The line of an offset, counted from 1.
    pub(super) fn line(&mut self, at: usize) -> u32 {
        self.lines.position(at).line
    }

    /// Where the line of the error starts.
    pub(super) fn line_start(&self) -> usize {
        self.to(self.at).rfind('\n').map_or(0, |end| end + 1)
    }

    /// The line of the error, without blanks around it.
    pub(super) fn error_line(&self) -> &'a str {
        self.from(self.line_start()).lines().next().unwrap_or_default().trim()
    }
}

/// The word at the start of a text: letters, digits, `_` and `$`.
pub(super) fn first_word(text: &str) -> &str {
    let end = text.find(|char: char| !is_name(char)).unwrap_or(text.len());
    text.get(..end).unwrap_or_default()
}

/// Whether a name or a keyword begins a text.
pub(super) fn begins_name(text: &str) -> bool {
    text.starts_with(|char: char| char.is_alphabetic() || matches!(char, '_' | '$'))
}

/// Whether a text has a name, other than that of a member and before one of C.
pub(super) fn mentions(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(at, _)| {
        let (before, after) = text.split_at(at);
        let after = after.get(name.len()..).unwrap_or_default();
        !before.ends_with(|char: char| is_name(char) || char == '.')
            && !before.ends_with("->")
            && !after.starts_with(is_name)
            && !after.starts_with("->")
    })
}

pub(super) fn is_name(char: char) -> bool {
    char.is_alphanumeric() || matches!(char, '_' | '$')
}

/// The beginning of a name, for a clause.
pub(super) fn shown(name: &str) -> &str {
    name.get(..name.floor_char_boundary(40)).unwrap_or_default()
}
