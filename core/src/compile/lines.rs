//! Lines and columns of a source text.
//!
//! In: a text and byte offsets into it. Out: positions as the contract counts them, from 1, columns
//! in UTF-16 units. A line ends where the engine ends one: after `\n`, `\r\n`, a lone `\r` (but not
//! within a block comment), U+2028 and U+2029 (but not within a literal or a comment).

use std::ops::Range;

use crate::outcome::Position;

/// Where the lines of a text start.
pub(super) struct Lines<'a> {
    text: &'a str,
    /// Byte offsets, rising; the first is 0.
    starts: Vec<usize>,
    /// The last offset asked for and its UTF-16 column from 0: asking in rising order is linear.
    last: (usize, usize),
}

impl<'a> Lines<'a> {
    /// The lines of `text`, in which terminators count everywhere but in `silent`.
    pub(super) fn new(text: &'a str, silent: &Silent) -> Self {
        Self { text, starts: line_starts(text, silent), last: (0, 0) }
    }

    /// The position of a byte offset.
    pub(super) fn position(&mut self, offset: usize) -> Position {
        let offset = self.text.floor_char_boundary(offset);
        let line = self.starts.partition_point(|&start| start <= offset);
        let start = self.start(line);
        let (from, column) =
            if self.last.0 >= start && self.last.0 <= offset { self.last } else { (start, 0) };
        let between = self.text.get(from..offset).unwrap_or_default();
        let column = column + utf16_length(between);
        self.last = (offset, column);
        Position { line: saturate(line), column: saturate(column + 1) }
    }

    /// The offset of a line and a column, both from 1, the column in bytes.
    pub(super) fn offset(&self, line: u32, column: u32) -> Option<usize> {
        let line = usize::try_from(line).ok()?;
        let start = self.starts.get(line.checked_sub(1)?).copied()?;
        let end = self.starts.get(line).copied().unwrap_or(self.text.len());
        let column = usize::try_from(column).ok()?.checked_sub(1)?;
        Some((start + column).min(end))
    }

    /// The offset of a line and a column, both from 1, the column in UTF-16 units.
    pub(super) fn utf16_offset(&self, line: u32, column: u32) -> Option<usize> {
        let start = self.offset(line, 1)?;
        let mut left = usize::try_from(column).ok()?.checked_sub(1)?;
        let rest = self.text.get(start..)?;
        for (at, char) in rest.char_indices() {
            if left == 0 {
                return Some(start + at);
            }
            left = left.saturating_sub(char.len_utf16());
        }
        Some(self.text.len())
    }

    fn start(&self, line: usize) -> usize {
        line.checked_sub(1).and_then(|index| self.starts.get(index)).copied().unwrap_or(0)
    }
}

/// The parts of a text in which the engine does not see every line terminator.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Silent {
    /// Literals and comments, in rising order: U+2028 and U+2029 do not count within.
    pub(super) spans: Vec<Range<usize>>,
    /// Block comments, in rising order: a lone `\r` does not count within.
    pub(super) comments: Vec<Range<usize>>,
    /// U+2028 and U+2029 count nowhere.
    pub(super) everywhere: bool,
}

/// Whether `text` has terminators whose counting depends on where they stand.
pub(super) fn has_rare_terminators(text: &str) -> bool {
    let bytes = text.as_bytes();
    let lone_return = || {
        let mut at = 0;
        while let Some(found) =
            bytes.get(at..).and_then(|rest| rest.iter().position(|&b| b == b'\r'))
        {
            at += found + 1;
            if bytes.get(at) != Some(&b'\n') {
                return true;
            }
        }
        false
    };
    (!text.is_ascii() && text.contains(['\u{2028}', '\u{2029}'])) || lone_return()
}

/// How many UTF-16 units `text` has.
pub(super) fn utf16_length(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.chars().map(char::len_utf16).sum() }
}

fn line_starts(text: &str, silent: &Silent) -> Vec<usize> {
    let bytes = text.as_bytes();
    let mut starts = vec![0];
    let mut spans = silent.spans.iter().peekable();
    let mut comments = silent.comments.iter().peekable();
    for (at, &byte) in bytes.iter().enumerate() {
        match byte {
            b'\n' => starts.push(at + 1),
            b'\r' if bytes.get(at + 1) != Some(&b'\n') && !within(&mut comments, at) => {
                starts.push(at + 1);
            }
            0xe2 if !silent.everywhere
                && matches!(bytes.get(at + 1..at + 3), Some([0x80, 0xa8 | 0xa9]))
                && !within(&mut spans, at) =>
            {
                starts.push(at + 3);
            }
            _ => {}
        }
    }
    starts
}

fn within<'a>(
    spans: &mut std::iter::Peekable<impl Iterator<Item = &'a Range<usize>>>,
    at: usize,
) -> bool {
    while spans.next_if(|span| span.end <= at).is_some() {}
    spans.peek().is_some_and(|span| span.contains(&at))
}

fn saturate(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn positions(text: &str, offsets: &[usize]) -> Vec<(u32, u32)> {
        let mut lines = Lines::new(text, &Silent::default());
        offsets.iter().map(|&at| lines.position(at)).map(|p| (p.line, p.column)).collect()
    }

    #[test]
    fn every_terminator_ends_a_line() {
        let text = "a\nb\r\nc\rd\u{2028}e\u{2029}f";
        assert_eq!(
            positions(text, &[0, 1, 2, 5, 7, 11, 15]),
            [(1, 1), (1, 2), (2, 1), (3, 1), (4, 1), (5, 1), (6, 1)]
        );
    }

    #[test]
    fn columns_are_utf16_units_in_any_order() {
        let text = "é😀x\ny";
        assert_eq!(
            positions(text, &[6, 2, 8, 0, 3, 99]),
            [(1, 4), (1, 2), (2, 1), (1, 1), (1, 2), (2, 2)]
        );
        let lines = Lines::new(text, &Silent::default());
        assert_eq!(lines.utf16_offset(1, 4), Some(6));
        assert_eq!(lines.offset(2, 1), Some(8));
        assert_eq!(lines.offset(9, 1), None);
    }

    #[test]
    fn silent_parts_end_no_line() {
        let once = |span| std::iter::once(span).collect();
        let silent = Silent { spans: once(0..5), comments: once(5..8), everywhere: false };
        assert_eq!(Lines::new("'\u{2028}'/\r/\rx", &silent).position(9).line, 2);
        assert!(has_rare_terminators("a\rb") && has_rare_terminators("\u{2029}"));
        assert!(!has_rare_terminators("a\r\nb\nü"));
    }
}
