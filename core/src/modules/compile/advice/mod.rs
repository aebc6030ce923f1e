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
mod source;
mod tokens;
mod words;

use oxc_ast::ast::Program;

use self::{
    source::{Advice, Source},
    tokens::Tokens,
};
use super::{
    failure::Failure,
    module::{IfGiven, one_line},
    text::lines::Lines,
};

pub(super) use self::{
    formats::begins_with_fence,
    source::{FENCED, Reader},
    tokens::MOST_LEVELS,
};

/// Longer texts get the parser's message alone.
const LONGEST: usize = 128 << 10;

/// An error with its remedy.
pub(super) struct Explained {
    pub(super) message: String,
    /// The offset of the mistake.
    pub(super) at: Option<usize>,
    pub(super) if_given: Option<IfGiven>,
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

/// Whether a text can be the name of a variable.
pub(crate) fn can_be_name(text: &str) -> bool {
    words::is_plain(text) && text.chars().all(source::is_name)
}

#[cfg(test)]
mod tests;
