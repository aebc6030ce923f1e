//! The tokens before an error.
//!
//! In: a text and an offset. Out: the last tokens before it, and the brackets that are open there. One reading of the
//! lexer; where a `/` may divide or begin a regular expression, it divides.

use std::collections::VecDeque;

use super::super::bounds::lexer::Lexer;

/// Longer or more deeply nested texts are not parsed again: that would take more than a few milliseconds. The tokens of
/// more deeply nested ones are not kept, either.
pub(super) const LONGEST_PARSED: usize = 24 << 10;
pub(in super::super) const MOST_LEVELS: usize = 1_000;

/// How many tokens are kept.
const KEPT: usize = 32;

/// A token and its text.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Token<'a> {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) text: &'a str,
    /// Whether it is the first one of its line.
    pub(super) first: bool,
}

/// An open bracket, or the backtick of a template.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bracket<'a> {
    pub(super) at: usize,
    /// `(`, `[`, `{`, `` ` `` or `${`.
    pub(super) text: &'a str,
    /// The token before it.
    pub(super) before: Token<'a>,
    /// The column, from 0, of the first token of its line.
    pub(super) indent: usize,
}

/// The tokens before an offset.
#[derive(Debug, Default)]
pub(super) struct Tokens<'a> {
    last: VecDeque<Token<'a>>,
    /// The first three tokens of the text.
    pub(super) first: Vec<Token<'a>>,
    /// The brackets that are open, from the outside in.
    pub(super) open: Vec<Bracket<'a>>,
    /// The bracket that was closed by the last token, if that is a closing one.
    pub(super) closed: Option<Bracket<'a>>,
    /// The first bracket whose closing one begins a line further to the left than its own line.
    pub(super) suspect: Option<Bracket<'a>>,
    /// Whether the text was read up to the offset.
    pub(super) complete: bool,
}

impl<'a> Tokens<'a> {
    pub(super) fn before(text: &'a str, at: usize) -> Self {
        let mut lexer = Lexer::new(text);
        let mut tokens = Self::default();
        let (mut end, mut indent) = (0, 0);
        while let Some(next) = lexer.next_token() {
            if next.start >= at {
                tokens.complete = true;
                break;
            }
            if tokens.open.len() > MOST_LEVELS {
                return Self::default();
            }
            let gap = text.get(end..next.start).unwrap_or_default();
            let break_before = gap.rfind('\n').map(|line| end + line + 1);
            if let Some(line) = break_before {
                indent = next.start - line;
            }
            end = lexer.offset();
            let first = break_before.is_some() || tokens.first.is_empty();
            let words = text.get(next.start..end).unwrap_or_default();
            let token = Token { start: next.start, end, text: words, first };
            tokens.push(token, next.text, indent);
        }
        let blank = |from: usize| text.get(from..at).is_none_or(|rest| rest.trim().is_empty());
        tokens.complete |= blank(end) || tokens.in_template();
        tokens
    }

    fn push(&mut self, token: Token<'a>, kind: &'a str, indent: usize) {
        self.closed = None;
        match kind {
            "(" | "[" | "{" | "`" | "${" => {
                let before = self.last.back().copied().unwrap_or_default();
                let at = token.end - kind.len();
                self.open.push(Bracket { at, text: kind, before, indent });
            }
            ")" | "]" | "}" | "`}" => {
                self.closed = self.open.pop();
                let outer = |bracket: &Bracket<'_>| token.first && indent < bracket.indent;
                if self.suspect.is_none() && kind == "}" {
                    self.suspect = self.closed.filter(outer);
                }
            }
            _ => {}
        }
        if self.first.len() < 3 {
            self.first.push(token);
        }
        if self.last.len() == KEPT {
            self.last.pop_front();
        }
        self.last.push_back(token);
    }

    /// The token before the offset; 1 is the one before that. None at the start of the text.
    pub(super) fn back(&self, count: usize) -> Option<&Token<'a>> {
        self.last.iter().rev().nth(count)
    }

    /// The text of a token before the offset.
    pub(super) fn text(&self, count: usize) -> &'a str {
        self.back(count).map_or("", |token| token.text)
    }

    /// The last tokens, the nearest first.
    pub(super) fn backwards(&self) -> impl Iterator<Item = &Token<'a>> {
        self.last.iter().rev()
    }

    /// The innermost open bracket.
    pub(super) fn innermost(&self) -> Option<&Bracket<'a>> {
        self.open.last()
    }

    /// Whether a statement may begin with the token before the offset.
    pub(super) fn begins_statement(&self, count: usize) -> bool {
        self.back(count).is_some_and(|token| token.first)
            || matches!(self.text(count + 1), "" | ";" | "{" | "}" | ")" | "else")
    }

    fn in_template(&self) -> bool {
        self.innermost().is_some_and(|bracket| bracket.text == "`")
    }
}
