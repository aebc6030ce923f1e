//! A text in which types are overwritten with white space, and into which code is inserted.
//!
//! In: a source text, places in it to erase, and text to insert. Out: the code, and the list of insertions. Each byte of
//! an erased place is a space, except for the line terminators that the engine counts, so every token that is left stands
//! at its line, and at its column where nothing was inserted before it on the line. A semicolon takes the place of an
//! erased token that kept two statements apart. Inserted text has no line terminators.

use std::ops::Range;

use oxc_span::Span;

use super::{super::bounds::lexer::is_blank, edits::Edits, lines::Silent};

/// The bytes of a token or a tree.
pub(in super::super) fn place(span: Span) -> Range<usize> {
    span.start as usize..span.end as usize
}

/// The bytes from one end of a token to another.
pub(in super::super) fn between(from: u32, to: u32) -> Range<usize> {
    from as usize..to as usize
}

/// Whether a code has nothing but blanks and semicolons in place of some of its source.
pub(in super::super) fn are_all(code: &str, source: &str) -> bool {
    let erased = |byte: u8| matches!(byte, b' ' | b';');
    let mut bytes = code.bytes().zip(source.bytes());
    code.len() == source.len() && bytes.all(|(left, byte)| left == byte || erased(left))
}

/// A text and its copy, which is made at the first place that is erased.
pub(in super::super) struct Blanks<'t> {
    text: &'t str,
    line_terminators: &'t Silent,
    code: Option<Vec<u8>>,
    /// Of all erased places, the one that ends last.
    last: Range<usize>,
    /// The inserted texts, one after the other.
    inserted: String,
    /// In the order of the calls. Of two at one place, the first call's text comes first.
    insertions: Vec<Insertion>,
}

#[derive(Clone, Copy)]
struct Insertion {
    /// The place in the source.
    at: u32,
    /// The text, as a part of all that was inserted.
    start: u32,
    end: u32,
}

impl<'t> Blanks<'t> {
    pub(in super::super) fn new(text: &'t str, line_terminators: &'t Silent) -> Self {
        let (inserted, insertions) = (String::new(), Vec::new());
        Self { text, line_terminators, code: None, last: 0..0, inserted, insertions }
    }

    /// The code and its insertions; none if nothing was erased or inserted.
    pub(in super::super) fn into_code(self) -> Option<(Box<str>, Edits)> {
        // Whole characters are overwritten, by characters, so this is UTF-8.
        let code = self.code.and_then(|code| String::from_utf8(code).ok());
        if self.insertions.is_empty() {
            return code.map(|code| (code.into_boxed_str(), Edits::default()));
        }
        let erased = code.as_deref().unwrap_or(self.text);
        let mut insertions = self.insertions;
        insertions.sort_by_key(|insertion| insertion.at);
        let mut code = String::with_capacity(erased.len() + self.inserted.len());
        let mut done = 0;
        for insertion in &insertions {
            let at = insertion.at as usize;
            code.push_str(erased.get(done..at).unwrap_or_default());
            let text = insertion.start as usize..insertion.end as usize;
            code.push_str(self.inserted.get(text).unwrap_or_default());
            done = at;
        }
        code.push_str(erased.get(done..).unwrap_or_default());
        let lengths =
            insertions.iter().map(|insertion| (insertion.at, insertion.end - insertion.start));
        Some((code.into_boxed_str(), Edits::new(lengths)))
    }

    /// Inserts text before what stands at `at`, an end of a token.
    pub(in super::super) fn insert(&mut self, at: usize, text: &str) {
        let start = saturate(self.inserted.len());
        self.inserted.push_str(text);
        let end = saturate(self.inserted.len());
        self.insertions.push(Insertion { at: saturate(at), start, end });
    }

    /// Inserts text before all else.
    pub(in super::super) fn prepend(&mut self, text: &str) {
        self.insert(0, text);
        self.insertions.rotate_right(1);
    }

    /// Erases a place, and writes text in its stead. Only as much is inserted as does not fit on the line.
    pub(in super::super) fn replace(&mut self, place: Range<usize>, text: &str) {
        let start = place.start;
        self.erase(place.clone());
        // No semicolon may be put into the text.
        self.last = 0..0;
        let erased = self.code.as_mut().and_then(|code| code.get_mut(place)).unwrap_or_default();
        let room = erased.iter().take_while(|byte| **byte == b' ').count();
        let (fits, rest) = text.split_at(text.floor_char_boundary(room));
        for (byte, new) in erased.iter_mut().zip(fits.bytes()) {
            *byte = new;
        }
        if !rest.is_empty() {
            self.insert(start + fits.len(), rest);
        }
    }

    /// Overwrites a place, whose ends are ends of tokens.
    pub(in super::super) fn erase(&mut self, place: Range<usize>) {
        let (text, line_terminators) = (self.text.as_bytes(), self.line_terminators);
        let code = self.code.get_or_insert_with(|| text.to_vec());
        let mut at = place.start;
        while at < place.end {
            let terminator = terminator(text, at, line_terminators);
            if terminator == 0
                && let Some(byte) = code.get_mut(at)
            {
                *byte = b' ';
            }
            at += terminator.max(1);
        }
        if place.end > self.last.end {
            self.last = place;
        }
    }

    /// Erases a statement. In a list, a semicolon takes its place only if what follows could continue what precedes.
    pub(in super::super) fn erase_statement(&mut self, place: Range<usize>, in_list: bool) {
        let next = self.next_token(place.end);
        // A string that was no directive must not become one.
        let continues =
            |byte| matches!(byte, b'(' | b'[' | b'`' | b'/' | b'+' | b'-' | b'<' | b'\'' | b'"');
        let separate = !in_list || self.byte(next).is_some_and(continues);
        self.erase(place.clone());
        if separate {
            self.put_first(place, b';');
        }
    }

    /// Puts a semicolon at `erased`, the first of erased tokens of a class, if the token at `next` could continue the
    /// field before it.
    pub(in super::super) fn separate_element(&mut self, erased: usize, next: usize) {
        if matches!(self.byte(next), Some(b'[' | b'*' | b'('))
            || matches!(self.word(next), "in" | "instanceof")
        {
            self.put_first(erased..next, b';');
        }
    }

    /// Erases an element of a list and the comma after it.
    pub(in super::super) fn erase_element(&mut self, place: Range<usize>) {
        let comma = self.next_token(place.end);
        let end = if self.byte(comma) == Some(b',') { comma + 1 } else { place.end };
        self.erase(place.start..end);
    }

    /// Ends a statement or a field that ends at `end` without a semicolon, if its last token was erased.
    pub(in super::super) fn end_statement(&mut self, end: usize) {
        if self.last.end == end {
            self.put_first(self.last.clone(), b';');
        }
    }

    /// Moves the parenthesis at `from` to an erased place.
    pub(in super::super) fn move_parenthesis(&mut self, from: usize, to: usize) {
        if let Some(code) = &mut self.code
            && let Some(parenthesis) = code.get_mut(from)
        {
            let byte = std::mem::replace(parenthesis, b' ');
            if let Some(erased) = code.get_mut(to) {
                *erased = byte;
            }
        }
    }

    /// Whether a line ends in this place after erasing.
    pub(in super::super) fn breaks_line(&self, place: Range<usize>) -> bool {
        let code = self.code.as_deref().unwrap_or(self.text.as_bytes());
        let counts = |at| terminator(code, at, &Silent::default()) > 0;
        place.into_iter().any(counts)
    }

    /// The start of the first token at or after a place between tokens.
    pub(in super::super) fn next_token(&self, at: usize) -> usize {
        let mut rest = self.text.get(at..).unwrap_or_default();
        loop {
            rest = rest.trim_start_matches(is_blank);
            if let Some(comment) = rest.strip_prefix("//") {
                let end = comment.find(['\n', '\r', '\u{2028}', '\u{2029}']);
                rest = end.and_then(|end| comment.get(end..)).unwrap_or_default();
            } else if let Some(comment) = rest.strip_prefix("/*") {
                rest = comment.split_once("*/").map_or("", |(_, rest)| rest);
            } else {
                return self.text.len() - rest.len();
            }
        }
    }

    /// A part of the original text.
    pub(in super::super) fn source(&self, place: Range<usize>) -> &'t str {
        self.text.get(place).unwrap_or_default()
    }

    /// The byte at a place of the original text.
    pub(in super::super) fn byte(&self, at: usize) -> Option<u8> {
        self.text.as_bytes().get(at).copied()
    }

    /// The identifier or keyword at a place of the original text, if there is one.
    pub(in super::super) fn word(&self, at: usize) -> &'t str {
        let rest = self.text.get(at..).unwrap_or_default();
        let ends = |char: char| !(char.is_alphanumeric() || matches!(char, '_' | '$' | '\\'));
        rest.split(ends).next().unwrap_or_default()
    }

    /// Writes one byte into an erased place.
    pub(in super::super) fn put_first(&mut self, erased: Range<usize>, byte: u8) {
        let blank = self.code.as_mut().and_then(|code| code.get_mut(erased));
        if let Some(blank) = blank.and_then(|blank| blank.iter_mut().find(|byte| **byte == b' ')) {
            *blank = byte;
        }
    }
}

/// The length of the line terminator at a place; 0 if there is none that the engine counts.
fn terminator(text: &[u8], at: usize, line_terminators: &Silent) -> usize {
    let within = |spans: &[Range<usize>]| {
        let next = spans.partition_point(|span| span.end <= at);
        spans.get(next).is_some_and(|span| span.contains(&at))
    };
    match text.get(at) {
        Some(b'\n') => 1,
        Some(b'\r') => {
            let silent = text.get(at + 1) != Some(&b'\n') && within(&line_terminators.comments);
            usize::from(!silent)
        }
        Some(0xe2) if matches!(text.get(at + 1..at + 3), Some([0x80, 0xa8 | 0xa9])) => {
            if within(&line_terminators.spans) { 0 } else { 3 }
        }
        _ => 0,
    }
}

fn saturate(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
