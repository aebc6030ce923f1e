//! Lines and columns of a source text.
//!
//! In: a text and byte offsets into it. Out: positions as the contract counts them: from 1, columns in UTF-16 units. A
//! line ends where the engine ends one: after `\n`, `\r\n`, a lone `\r` (except within a block comment), U+2028 and
//! U+2029 (except within a literal or a comment).

use std::ops::Range;

use crate::data::{outcome::Position, portable::portable};

/// Distance in bytes between the offsets whose line is stored. The text between them is read again, so a text of only
/// line breaks takes no more memory than any other.
const STEP_BYTES: usize = 512;

/// The lines of a text.
pub(in super::super) struct Lines<'a> {
    text: &'a str,
    line_terminators: &'a Silent,
    /// The first start of a line after each step, ascending. The first entry is the start of the text.
    starts: Vec<Start>,
    /// The last place asked for: the time of a query is about linear in its distance from that place.
    last: Place,
}

/// A line, counted from 1, and the offset of its start.
#[derive(Clone, Copy)]
struct Start {
    offset: u32,
    line: u32,
}

/// A place: its line, the offset of the line's start, and its UTF-16 column from 0.
#[derive(Clone, Copy)]
struct Place {
    offset: usize,
    start: Start,
    column: usize,
}

impl<'a> Lines<'a> {
    /// The lines of `text`, in which terminators count everywhere except in `line_terminators`.
    pub(in super::super) fn new(text: &'a str, line_terminators: &'a Silent) -> Self {
        let mut here = Start { offset: 0, line: 1 };
        let mut starts = vec![here];
        let mut next = STEP_BYTES;
        for offset in Starts::after(text.as_bytes(), line_terminators, 0) {
            here = Start { offset: saturate(offset), line: here.line.saturating_add(1) };
            if offset >= next {
                starts.push(here);
                next = offset + STEP_BYTES;
            }
        }
        let last = Place { offset: 0, start: Start { offset: 0, line: 1 }, column: 0 };
        Self { text, line_terminators, starts, last }
    }

    /// The position of a byte offset.
    pub(in super::super) fn position(&mut self, offset: usize) -> Position {
        let offset = self.text.floor_char_boundary(offset);
        let known = self.starts.partition_point(|start| start.offset as usize <= offset);
        let known = known.checked_sub(1).and_then(|index| self.starts.get(index)).copied();
        let mut start = known.unwrap_or(Start { offset: 0, line: 1 });
        let mut from = start.offset as usize;
        let last = self.last;
        if (last.start.offset as usize..=last.offset).contains(&offset) {
            // Before the last place, on its line.
            (start, from) = (last.start, offset);
        } else if last.offset <= offset && last.start.offset >= start.offset {
            (start, from) = (last.start, last.offset);
        }
        let before = self.text.as_bytes().get(..=offset).unwrap_or(self.text.as_bytes());
        for next in
            Starts::after(before, self.line_terminators, from).take_while(|next| *next <= offset)
        {
            start = Start { offset: saturate(next), line: start.line.saturating_add(1) };
        }
        let line = start.offset as usize;
        let length = |place: Range<usize>| utf16_length(self.text.get(place).unwrap_or_default());
        // From the last place, where that is on this line and nearer than the line's start.
        let near =
            last.start.offset == start.offset && offset.abs_diff(last.offset) < offset - line;
        let column = match near {
            false => length(line..offset),
            true if offset < last.offset => last.column - length(offset..last.offset),
            true => last.column + length(last.offset..offset),
        };
        self.last = Place { offset, start, column };
        Position { line: start.line, column: saturate(column + 1) }
    }

    /// The offset of a line and a column, both from 1, the column in bytes.
    pub(in super::super) fn offset(&self, line: u32, column: u32) -> Option<usize> {
        let known = self.starts.partition_point(|start| start.line <= line).checked_sub(1)?;
        let known = self.starts.get(known)?;
        let mut after =
            Starts::after(self.text.as_bytes(), self.line_terminators, known.offset as usize);
        let start = match (line - known.line).checked_sub(1) {
            None => known.offset as usize,
            Some(between) => after.nth(usize::try_from(between).ok()?)?,
        };
        let end = after.next().unwrap_or(self.text.len());
        let column = usize::try_from(column).ok()?.checked_sub(1)?;
        Some((start + column).min(end))
    }

    /// The start and the end of a line as the engine counts: it takes a U+2028 or U+2029 that ends a line comment for a
    /// part of the comment.
    pub(in super::super) fn engine_line(&self, line: u32) -> Option<Range<usize>> {
        const TERMINATOR_BYTES: usize = 3;
        let silent = self.line_terminators;
        if silent.swallowed.is_empty() {
            return Some(self.offset(line, 1)?..self.offset(line, u32::MAX)?);
        }
        let starts = Starts::after(self.text.as_bytes(), silent, 0);
        let mut counted = 1;
        let mut range = 0..self.text.len();
        for start in starts {
            if silent.swallowed.binary_search(&(start - TERMINATOR_BYTES.min(start))).is_ok() {
                continue;
            }
            if counted == line {
                range.end = start;
                return Some(range);
            }
            counted += 1;
            range.start = start;
        }
        (counted == line).then_some(range)
    }

    /// The offset of a line and a column, both from 1, the column in UTF-16 units.
    pub(in super::super) fn utf16_offset(&self, line: u32, column: u32) -> Option<usize> {
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
}

/// The starts of lines after a place.
struct Starts<'a> {
    text: &'a [u8],
    at: usize,
    line_terminators: &'a Silent,
    /// The next span and the next comment to check.
    span: usize,
    comment: usize,
}

impl<'a> Starts<'a> {
    fn after(text: &'a [u8], line_terminators: &'a Silent, at: usize) -> Self {
        let before = |spans: &[Range<usize>]| spans.partition_point(|span| span.end <= at);
        let (span, comment) = (before(&line_terminators.spans), before(&line_terminators.comments));
        Self { text, at, line_terminators, span, comment }
    }
}

impl Iterator for Starts<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        loop {
            let rest = self.text.get(self.at..)?;
            let found = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r' | 0xe2))?;
            let at = self.at + found;
            self.at = at + 1;
            match rest.get(found) {
                Some(b'\n') => return Some(self.at),
                Some(b'\r') => {
                    if self.text.get(self.at) != Some(&b'\n')
                        && !within(&self.line_terminators.comments, &mut self.comment, at)
                    {
                        return Some(self.at);
                    }
                }
                _ => {
                    if matches!(self.text.get(self.at..at + 3), Some([0x80, 0xa8 | 0xa9]))
                        && !within(&self.line_terminators.spans, &mut self.span, at)
                    {
                        self.at = at + 3;
                        return Some(self.at);
                    }
                }
            }
        }
    }
}

/// The parts of a text in which the engine ignores some line terminators.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Silent {
    /// Literals and comments, ascending: U+2028 and U+2029 do not count within them.
    pub(in super::super) spans: Vec<Range<usize>>,
    /// Block comments, ascending: a lone `\r` does not count within them.
    pub(in super::super) comments: Vec<Range<usize>>,
    /// U+2028 and U+2029 right behind a line comment, ascending. They end a line, which the engine does not see.
    pub(in super::super) swallowed: Vec<usize>,
}

portable!(struct Silent { spans, comments, swallowed });

/// Whether `text` has terminators that count or not depending on their context.
pub(in super::super) fn has_rare_terminators(text: &str) -> bool {
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

/// The length of `text` in UTF-16 units.
pub(in super::super) fn utf16_length(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.chars().map(char::len_utf16).sum() }
}

/// Whether a place is within one of the spans. `next` is the first span that does not end before it.
fn within(spans: &[Range<usize>], next: &mut usize, at: usize) -> bool {
    while spans.get(*next).is_some_and(|span| span.end <= at) {
        *next += 1;
    }
    spans.get(*next).is_some_and(|span| span.contains(&at))
}

fn saturate(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn positions(text: &str, offsets: &[usize]) -> Vec<(u32, u32)> {
        let line_terminators = Silent::default();
        let mut lines = Lines::new(text, &line_terminators);
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
        let line_terminators = Silent::default();
        let lines = Lines::new(text, &line_terminators);
        assert_eq!(lines.utf16_offset(1, 4), Some(6));
        assert_eq!(lines.offset(2, 1), Some(8));
        assert_eq!(lines.offset(9, 1), None);
    }

    #[test]
    fn places_of_several_lines_are_found_in_any_order() {
        let text = "ab\u{1F600}cde\n\u{e9}fgh\r\nijk";
        let offsets: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
        let expected = positions(text, &offsets);
        for (first, second) in offsets.iter().flat_map(|a| offsets.iter().map(move |b| (a, b))) {
            let place = |at: &usize| expected[offsets.binary_search(at).expect("a character")];
            assert_eq!(positions(text, &[*first, *second]), [place(first), place(second)]);
        }
    }

    #[test]
    fn places_far_apart_are_found_in_any_order() {
        let mut text = String::new();
        let mut expected = Vec::new();
        for line in 1..3_000_u32 {
            expected.push((text.len(), line));
            text.push_str(["", "é", "x", "some words"][line as usize % 4]);
            text.push_str(["\n", "\r\n", "\u{2028}", "\u{2029}"][line as usize / 4 % 4]);
        }
        let line_terminators = Silent::default();
        let mut lines = Lines::new(&text, &line_terminators);
        for step in [1, 7, 2_999, 1_500] {
            for index in 0..expected.len() {
                let (offset, line) = expected[index * step % expected.len()];
                let place = lines.position(offset);
                assert_eq!((place.line, place.column), (line, 1), "{offset}");
                assert_eq!(lines.offset(line, 1), Some(offset));
            }
        }
        assert!(lines.starts.len() <= text.len() / STEP_BYTES + 1);
    }

    #[test]
    fn the_engine_takes_the_end_of_a_line_comment_for_a_part_of_it() {
        let text = "//\u{2028}//\u{2029}a\nb\u{2028}c";
        let silent = Silent { swallowed: vec![2, 7], ..Silent::default() };
        let lines = Lines::new(text, &silent);
        let of_engine: Vec<_> = (1..=4).map(|line| lines.engine_line(line)).collect();
        assert_eq!(of_engine, [Some(0..12), Some(12..16), Some(16..17), None]);
        assert_eq!(lines.offset(4, 1), Some(12));
        let none = Silent::default();
        let same = Lines::new("a\nb", &none).engine_line(2);
        assert_eq!(same, Some(2..3));
    }

    #[test]
    fn silent_parts_end_no_line() {
        let once = |span| std::iter::once(span).collect();
        let line_terminators =
            Silent { spans: once(0..5), comments: once(5..8), ..Silent::default() };
        assert_eq!(Lines::new("'\u{2028}'/\r/\rx", &line_terminators).position(9).line, 2);
        assert!(has_rare_terminators("a\rb") && has_rare_terminators("\u{2029}"));
        assert!(!has_rare_terminators("a\r\nb\nü"));
    }
}
