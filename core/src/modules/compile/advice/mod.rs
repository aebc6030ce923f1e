//! Remedies of sources that do not compile.
//!
//! In: a text, its first error, and the tree of the part that was parsed. Out: one clause for the message that says what
//! to write instead, and the place of the mistake where the parser noticed it later. A remedy is given only where the
//! text leaves no doubt: where its tokens, its tree or a second parse show the mistake. Nothing of this runs for a
//! source that compiles. The time is linear in the length of the text: one reading of its tokens, one visit of its tree,
//! and a few parses of parts of it, if it is short.

mod brackets;
mod characters;
mod formats;
mod functions;
mod imports;
mod literals;
mod other_languages;
mod python;
mod tokens;
mod words;

use oxc_ast::ast::Program;
use oxc_diagnostics::OxcDiagnostic;
use oxc_span::LabeledSpan;

use self::tokens::Tokens;
use super::{
    lines::Lines,
    module::{IfGiven, one_line},
};

pub(super) use self::formats::begins_with_fence;

/// Longer texts get the parser's message alone.
const LONGEST: usize = 128 << 10;

/// Longer or more deeply nested texts are not parsed again: that would take more than a few milliseconds. The tokens of
/// more deeply nested ones are not kept, either.
const LONGEST_PARSED: usize = 24 << 10;
pub(super) const MOST_LEVELS: usize = 1_000;

/// The message for a program that begins with a fence. Most of those parse: as templates.
pub(super) const FENCED: &str =
    "The code is fenced in Markdown: send only the lines inside of the fence";

/// The first error of a text.
pub(super) struct Failure {
    pub(super) message: String,
    /// The offset of its first label.
    at: Option<usize>,
    /// The offset of its last label, where it has several.
    last: Option<usize>,
    help: Option<String>,
}

/// A remedy.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Advice {
    clause: String,
    /// The place of the mistake, where that is not the place of the error.
    at: Option<usize>,
    /// A specifier, and the clause if the run has a module of that name.
    if_given: Option<(String, String)>,
}

/// An error with its remedy.
pub(super) struct Explained {
    pub(super) message: String,
    /// The offset of the mistake.
    pub(super) at: Option<usize>,
    pub(super) if_given: Option<IfGiven>,
}

impl Advice {
    fn new(clause: impl Into<String>) -> Self {
        Self { clause: clause.into(), at: None, if_given: None }
    }

    fn at(clause: impl Into<String>, at: usize) -> Self {
        Self { at: Some(at), ..Self::new(clause) }
    }
}

/// A text that does not compile, as far as it is known.
struct Source<'s, 'a, 'l> {
    text: &'a str,
    typescript: bool,
    /// The offset of the error.
    at: usize,
    failure: &'s Failure,
    tokens: Tokens<'a>,
    program: &'s Program<'a>,
    lines: &'s mut Lines<'l>,
    reader: &'s Reader<'s>,
}

/// Answers about other texts.
pub(super) struct Reader<'r> {
    /// Whether a text, read as TypeScript or not, is a module without errors.
    pub(super) parses: &'r dyn Fn(&str, bool) -> bool,
    /// Whether a text of TypeScript is a module of JavaScript as soon as its types are blanks.
    pub(super) runs_without_types: &'r dyn Fn(&str) -> bool,
}

type Rule = fn(&mut Source<'_, '_, '_>) -> Option<Advice>;

/// The rules, the most certain first.
const RULES: &[Rule] = &[
    formats::declared_twice,
    formats::fence,
    formats::conflict,
    formats::diff,
    formats::html,
    formats::json,
    formats::types,
    formats::sentence,
    characters::escaped,
    characters::look_alike,
    characters::entity,
    python::advice,
    functions::advice,
    imports::advice,
    literals::advice,
    other_languages::advice,
    formats::jsx,
    formats::prose,
    words::misspelled,
    words::reserved,
    characters::ellipsis,
    brackets::advice,
    help,
];

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

    /// The error with its remedy.
    pub(super) fn explain(
        self,
        program: &Program<'_>,
        typescript: bool,
        lines: &mut Lines<'_>,
        reader: &Reader<'_>,
    ) -> Explained {
        let text = program.source_text;
        let Some(at) = self.at.filter(|at| text.len() <= LONGEST && *at <= text.len()) else {
            return Explained { message: self.message, at: self.at, if_given: None };
        };
        let tokens = Tokens::before(text, at);
        let failure = &self;
        let mut source = Source { text, typescript, at, failure, tokens, program, lines, reader };
        let Some(advice) = RULES.iter().find_map(|rule| rule(&mut source)) else {
            return Explained { message: self.message, at: self.at, if_given: None };
        };
        let with = |clause| format!("{}; {clause}", self.message.trim_end_matches('.'));
        let if_given = advice
            .if_given
            .map(|(specifier, clause)| IfGiven { specifier, message: one_line(&with(clause)) });
        Explained { message: with(advice.clause), at: advice.at.or(self.at), if_given }
    }
}

impl<'a> Source<'_, 'a, '_> {
    /// The text from an offset on.
    fn from(&self, at: usize) -> &'a str {
        self.text.get(at..).unwrap_or_default()
    }

    /// The text up to an offset.
    fn to(&self, at: usize) -> &'a str {
        self.text.get(..at).unwrap_or_default()
    }

    /// The text after the error, without blanks on its line.
    fn rest(&self) -> &'a str {
        self.from(self.at).trim_start_matches([' ', '\t'])
    }

    /// The line of an offset, counted from 1.
    fn line(&mut self, at: usize) -> u32 {
        self.lines.position(at).line
    }

    /// Where the line of the error starts.
    fn line_start(&self) -> usize {
        self.to(self.at).rfind('\n').map_or(0, |end| end + 1)
    }

    /// The line of the error, without blanks around it.
    fn error_line(&self) -> &'a str {
        self.from(self.line_start()).lines().next().unwrap_or_default().trim()
    }
}

/// The parser's own remedy, where it is one.
fn help(source: &mut Source<'_, '_, '_>) -> Option<Advice> {
    let help = source.failure.help.as_deref()?.trim_end_matches('.').trim_end_matches(" here");
    let first = help.split(' ').next()?;
    if !matches!(first, "Wrap" | "Remove" | "Replace" | "Move" | "The") || help.len() > 100 {
        return None;
    }
    let help = help.split(" to make ").next().unwrap_or(help);
    let mut clause = help.replace('`', "'");
    clause.get_mut(..1)?.make_ascii_lowercase();
    Some(Advice::new(clause))
}

/// The word at the start of a text: letters, digits, `_` and `$`.
fn first_word(text: &str) -> &str {
    let end = text.find(|char: char| !is_name(char)).unwrap_or(text.len());
    text.get(..end).unwrap_or_default()
}

/// Whether a text can be the name of a variable.
pub(crate) fn can_be_name(text: &str) -> bool {
    imports::is_plain(text) && text.chars().all(is_name)
}

/// Whether a name or a keyword begins a text.
fn begins_name(text: &str) -> bool {
    text.starts_with(|char: char| char.is_alphabetic() || matches!(char, '_' | '$'))
}

/// Whether a text has a name, other than that of a member and before one of C.
fn mentions(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(at, _)| {
        let (before, after) = text.split_at(at);
        let after = after.get(name.len()..).unwrap_or_default();
        !before.ends_with(|char: char| is_name(char) || char == '.')
            && !before.ends_with("->")
            && !after.starts_with(is_name)
            && !after.starts_with("->")
    })
}

fn is_name(char: char) -> bool {
    char.is_alphanumeric() || matches!(char, '_' | '$')
}

/// The beginning of a name, for a clause.
fn shown(name: &str) -> &str {
    name.get(..name.floor_char_boundary(40)).unwrap_or_default()
}

#[cfg(test)]
mod tests;
