//! Patterns with the flag `v` that the engine refuses by mistake.
//!
//! In: a literal with that flag. Out: the flag `u` in its stead, if the engine takes a sign outside of classes for one
//! within, and both flags mean the same for the pattern: outside of classes they do. docs/upstream has the patch.

use std::{iter::Peekable, str::Chars};

use oxc_ast::ast::{Program, RegExpFlags, RegExpLiteral};
use oxc_ast_visit::VisitJs;

use super::blanks::Blanks;

/// Replaces the flags of a program of JavaScript where the engine needs it.
pub(in super::super) fn replace<'t>(program: &Program<'_>, blanks: Blanks<'t>) -> Blanks<'t> {
    let mut literals = Literals { blanks };
    let mut slashes = program.source_text.split('/').skip(1);
    let is_flag = |char: &char| char.is_ascii_alphabetic();
    if slashes.any(|rest| rest.chars().take_while(is_flag).any(|flag| flag == 'v')) {
        literals.visit_program(program);
    }
    literals.blanks
}

/// Does so for one literal.
pub(in super::super) fn replace_one(literal: &RegExpLiteral<'_>, blanks: &mut Blanks<'_>) {
    if !is_replaced(literal) {
        return;
    }
    let (start, end) = (literal.span.start as usize, literal.span.end as usize);
    if let Some(flag) = blanks.source(start..end).rfind('v') {
        let at = start + flag;
        blanks.replace(at..at + 1, "u");
    }
}

/// The flags of a literal for the engine.
pub(in super::super) fn flags(literal: &RegExpLiteral<'_>) -> String {
    let flags = literal.regex.flags.to_string();
    if is_replaced(literal) { flags.replace('v', "u") } else { flags }
}

fn is_replaced(literal: &RegExpLiteral<'_>) -> bool {
    let flags = literal.regex.flags;
    let ignores_case = flags.contains(RegExpFlags::I);
    flags.contains(RegExpFlags::V)
        && Pattern::read(&literal.regex.pattern.text, ignores_case)
            .is_some_and(|pattern| pattern.is_refused)
}

/// A pattern for which `u` and `v` mean the same.
struct Pattern {
    /// Whether the engine refuses it with `v`.
    is_refused: bool,
}

impl Pattern {
    /// `None` for a pattern for which the flags may differ: one with more than plain classes, with properties of texts, or
    /// with the complement of a set where case does not count.
    fn read(text: &str, ignores_case: bool) -> Option<Self> {
        /// Signs that the engine refuses in pairs, of those that mean nothing outside of classes.
        const PAIRS: &str = "&!#%,:;<=>@`~";
        let mut is_refused = false;
        let mut chars = text.chars().peekable();
        while let Some(char) = chars.next() {
            match char {
                '\\' => match chars.next()? {
                    'p' if is_of_texts(&mut chars.clone()) => return None,
                    'P' | 'W' if ignores_case => return None,
                    _ => {}
                },
                '[' => class(&mut chars, ignores_case)?,
                '-' => is_refused = true,
                sign if PAIRS.contains(sign) => is_refused |= chars.peek() == Some(&sign),
                _ => {}
            }
        }
        Some(Self { is_refused })
    }
}

/// Whether a property that follows has texts of several characters.
fn is_of_texts(rest: &mut Peekable<Chars<'_>>) -> bool {
    let name: String =
        rest.skip_while(|char| *char == '{').take_while(|char| *char != '}').collect();
    name.starts_with("RGI_") || matches!(name.as_str(), "Basic_Emoji" | "Emoji_Keycap_Sequence")
}

/// Reads a class to its end, if both flags mean the same for it.
fn class(chars: &mut Peekable<Chars<'_>>, ignores_case: bool) -> Option<()> {
    if chars.next_if_eq(&'^').is_some() && ignores_case {
        return None;
    }
    let mut last = None;
    loop {
        let char = chars.next()?;
        match char {
            ']' => return Some(()),
            '\\' => match chars.next()? {
                'W' if ignores_case => return None,
                'd' | 'D' | 'w' | 'W' | 's' | 'S' | 'n' | 'r' | 't' | '.' | '^' | '$' | '*'
                | '+' | '?' | '(' | ')' | '[' | ']' | '{' | '}' | '|' | '/' | '\\' | '-' => {}
                _ => return None,
            },
            // Between two characters.
            '-' if last.is_some_and(|last| last != '-') && chars.peek() != Some(&']') => {}
            char if char.is_alphanumeric() || matches!(char, '_' | ' ') => {}
            _ => return None,
        }
        last = Some(char);
    }
}

struct Literals<'t> {
    blanks: Blanks<'t>,
}

impl<'a> VisitJs<'a> for Literals<'_> {
    fn visit_reg_exp_literal(&mut self, literal: &RegExpLiteral<'a>) {
        replace_one(literal, &mut self.blanks);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_patterns_that_mean_the_same_are_refused_by_mistake() {
        let is_replaced = |text, ignores_case| {
            Pattern::read(text, ignores_case).is_some_and(|pattern| pattern.is_refused)
        };
        for text in [r"^\d{4}-\d{2}$", "a::b", "[a-z]+-[0-9]+", r"[^\s]-\p{Lu}", "a-b&&c", "--"] {
            assert!(is_replaced(text, false), "{text}");
        }
        for text in [
            r"^\d+$",
            "a:b",
            "[a-z]",
            r"\-",
            r"[a--b]-",
            "[[a]]-",
            r"[\q{ab}]-",
            "[a&&b]-",
            r"\p{RGI_Emoji}-",
            "[(]-",
            "[a-",
        ] {
            assert!(!is_replaced(text, false), "{text}");
        }
        for text in [r"\W-", r"\P{Lu}-", "[^a]-", r"[\W]-"] {
            assert!(is_replaced(text, false), "{text}");
            assert!(!is_replaced(text, true), "{text}");
        }
    }
}
