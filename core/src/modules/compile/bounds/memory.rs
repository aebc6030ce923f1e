//! The memory that parsing a source takes, known before it is parsed.
//!
//! In: a text and its tokens. Out: an approximate upper bound of the bytes that its text, its syntax tree, errors of the
//! parser, and the code with its insertions take at once. The engine allocates none of it, so nothing else counts it:
//! `a;a;a;…` takes a hundred times its length. Some two hundred constructs were measured over half a megabyte of each. A
//! token counts as much as the most expensive one, except for those that take far more, and for closing brackets. Comments
//! are no tokens and are counted beside them. The analysis is counted by `census`, when there is a tree.

use super::lexer::Token;

/// The most that a token took (a statement of one name).
const PER_TOKEN: usize = 124;
/// A bracket takes what its opening one takes.
const PER_CLOSING: usize = 16;
/// A token that may be an error wherever it is, a directive, and a property that is a parameter.
const PER_SUSPECT: usize = 300;
/// An import or export is also stored in the module's record.
const PER_RECORD: usize = 512;
/// An enum becomes a function.
const PER_ENUM: usize = 1_536;
/// A member of an enum becomes an assignment that has its name twice.
const PER_MEMBER: usize = 340;
/// The text is kept, and the engine reads it once more.
const PER_BYTE: usize = 3;
/// A comment is listed, and listed again where lines depend on comments.
const PER_COMMENT: usize = 104;
/// A rare blank is listed.
const PER_RARE_BLANK: usize = 24;
/// A name in a list of imports or exports is one more import or export.
const PER_NAME: usize = 1_024;
/// The stack that a level of nesting touches at most, and the levels that fit into any thread's.
const PER_LEVEL: usize = 1_024;
const FREE_LEVELS: usize = 256;

pub(in super::super) fn of_text(text: &str) -> usize {
    PER_BYTE * text.len()
}

/// A text whose tokens are not known, each of one byte.
pub(in super::super) fn of_unread(bytes: usize) -> usize {
    bytes.saturating_mul(PER_TOKEN)
}

pub(in super::super) fn of_levels(levels: usize) -> usize {
    PER_LEVEL.saturating_mul(levels.saturating_sub(FREE_LEVELS))
}

pub(in super::super) fn of_comments(count: usize) -> usize {
    PER_COMMENT.saturating_mul(count)
}

pub(in super::super) fn of_rare_blanks(count: usize) -> usize {
    PER_RARE_BLANK.saturating_mul(count)
}

/// Finds the commas between imported or exported names: `{a, b}`, and the names declared after `export`.
#[derive(Clone, Default)]
pub(in super::super) struct Names {
    /// Number of open brackets, while such a statement is read.
    open: Option<usize>,
    /// Within a value, the number of brackets open at its `=`. The commas of the value itself are deeper.
    value: Option<usize>,
    /// The expectation that the last token leaves.
    after: After,
}

/// Finds the commas between the braces of enums.
#[derive(Clone, Default)]
pub(in super::super) struct Members {
    /// `enum` was read, and no brace since.
    begins: bool,
    /// Number of brackets open in the outermost enum.
    open: usize,
}

impl Members {
    /// The amount that the token adds to the price of its enum.
    pub(in super::super) fn of(&mut self, token: &Token<'_>) -> usize {
        let within = self.open > 0;
        match token.text.as_bytes() {
            b"enum" => self.begins = !within,
            b"{" if self.begins => {
                self.begins = false;
                self.open = 1;
            }
            b"(" | b"[" | b"{" | b"${" | b"`" if within => self.open += 1,
            b")" | b"]" | b"}" | b"`}" if within => self.open -= 1,
            b"," if within => return PER_MEMBER,
            _ => {}
        }
        0
    }
}

#[derive(Clone, Copy, Default, PartialEq)]
enum After {
    Export,
    Import,
    From,
    #[default]
    Other,
}

impl Names {
    /// The amount that the token adds to the price of its list.
    pub(in super::super) fn of(&mut self, token: &Token<'_>) -> usize {
        let after = std::mem::take(&mut self.after);
        let Some(open) = self.open.filter(|open| *open > 0 || !token.starts_statement) else {
            self.begin(token);
            return 0;
        };
        match (after, token.text.as_bytes()) {
            (After::Export, b"{" | b"*" | b"type" | b"let" | b"const" | b"var") => {}
            (After::Export, _) | (After::Import, b"(" | b".") | (After::From, b"\"" | b"'") => {
                self.open = None;
                return 0;
            }
            _ => {}
        }
        match token.text.as_bytes() {
            b"(" | b"[" | b"{" => self.open = Some(open + 1),
            b")" | b"]" | b"}" => self.open = open.checked_sub(1),
            b"=" if self.value.is_none() => self.value = Some(open),
            b"from" => self.after = After::From,
            b";" | b"import" | b"export" if open == 0 => self.begin(token),
            b"," if self.value.is_none_or(|value| open <= value) => {
                self.value = None;
                return PER_NAME;
            }
            _ => {}
        }
        0
    }

    fn begin(&mut self, token: &Token<'_>) {
        self.after = match token.text.as_bytes() {
            b"export" => After::Export,
            b"import" => After::Import,
            _ => After::Other,
        };
        self.value = None;
        self.open = (self.after != After::Other).then_some(0);
    }
}

#[inline]
pub(in super::super) fn of_token(token: &Token<'_>) -> usize {
    let more = match token.text.as_bytes() {
        [b')' | b']' | b'}'] | b"`}" => return PER_CLOSING,
        [b'`' | b'"'] => PER_SUSPECT,
        [_] => 0,
        word => of_word(word),
    };
    PER_TOKEN + more
}

fn of_word(word: &[u8]) -> usize {
    match word {
        b"enum" => PER_ENUM,
        b"import" | b"export" => PER_RECORD,
        b"return" | b"super" | b"yield" | b"00" | b"public" | b"private" | b"protected"
        | b"readonly" | b"override" => PER_SUSPECT,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::super::lexer::Lexer;
    use super::*;

    #[test]
    fn members_of_enums_are_found() {
        for (text, members) in [
            ("enum E { A, B = f(1, `${[2, 3]}`), C } f(1, 2)", 4),
            ("enum E { A = (() => { enum F { B, C } })(), D } [1, 2]", 2),
            ("f(1, 2), { a, b }", 0),
        ] {
            let (mut lexer, mut of) = (Lexer::new(text), Members::default());
            let mut bytes = 0;
            while let Some(token) = lexer.next_token() {
                bytes += of.of(&token);
            }
            assert_eq!(bytes / PER_MEMBER, members, "{text}");
        }
    }

    #[test]
    fn names_in_lists_are_found() {
        for (text, names) in [
            ("import {a, b as c, d} from 'm'; [1, 2, 3]", 2),
            ("import a, {b} from 'm'\nf(1, 2)", 1),
            ("export {a as default, b}; f(1, 2)", 1),
            ("export {a, b}\nf(1, 2)", 1),
            ("export let a, b = [1, 2], c = f(1, 2), d", 3),
            ("export let {a = 1, b: {c}, d} = {x: 1, y: 2}, [e, f] = g", 4),
            ("export type {A, B} from 'm'", 1),
            ("export default [1, 2, 3]", 0),
            ("export function f(a, b) { return [a, b] }", 0),
            ("export const data = [1, [2, 3], {a: 1, b: 2}]", 0),
            ("import('m', a), f(1, 2)", 0),
            ("f(1, 2), [3, 4]", 0),
        ] {
            let (mut lexer, mut of) = (Lexer::new(text), Names::default());
            let mut bytes = 0;
            while let Some(token) = lexer.next_token() {
                bytes += of.of(&token);
            }
            assert_eq!(bytes / PER_NAME, names, "{text}");
        }
    }
}
