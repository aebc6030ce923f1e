//! A stream of output within a bound: its beginning, its end, and how much is missing between them.
//!
//! In: bytes as they come, and the bound. Out: text. The first three quarters of the bound are kept, and the last quarter.

use std::collections::VecDeque;

/// The bytes of a stream that are kept unless told otherwise.
pub const DEFAULT_LIMIT_BYTES: usize = 1 << 20;

/// A stream of output, or as much of it as is kept.
#[derive(Debug)]
pub struct Output {
    head: Vec<u8>,
    head_limit: usize,
    tail: VecDeque<u8>,
    tail_limit: usize,
    left_out: u64,
}

impl Output {
    /// An empty one, of which at most so many bytes are kept.
    #[must_use]
    pub fn new(limit_bytes: usize) -> Self {
        let tail_limit = limit_bytes / 4;
        let head_limit = limit_bytes - tail_limit;
        Self { head: Vec::new(), head_limit, tail: VecDeque::new(), tail_limit, left_out: 0 }
    }

    /// Takes bytes that come next.
    pub fn push(&mut self, bytes: &[u8]) {
        let (head, rest) = bytes.split_at(bytes.len().min(self.head_limit - self.head.len()));
        self.head.extend_from_slice(head);
        // Of the rest no more is copied than can be kept.
        let (skipped, rest) = rest.split_at(rest.len().saturating_sub(self.tail_limit));
        let surplus = (self.tail.len() + rest.len()).saturating_sub(self.tail_limit);
        self.left_out += if skipped.is_empty() { surplus } else { skipped.len() + surplus } as u64;
        self.tail.drain(..surplus);
        self.tail.extend(rest);
    }

    /// Whether bytes between the beginning and the end are missing.
    #[must_use]
    pub fn is_overfull(&self) -> bool {
        self.left_out > 0
    }

    /// The bytes at the beginning.
    #[must_use]
    pub fn into_head(self) -> Vec<u8> {
        self.head
    }

    /// The text of what is kept. Bytes that are no UTF-8 become U+FFFD, and so does a character across the cut.
    #[must_use]
    pub fn into_text(mut self) -> String {
        if self.left_out == 0 {
            self.head.extend(self.tail);
            return lossy(self.head);
        }
        let mut text = lossy(self.head);
        push_line(&mut text, &format!("... {} bytes left out ...", self.left_out));
        text.push_str(&lossy(self.tail.into()));
        text
    }
}

/// Adds a line, at the start of one, and ends it.
pub fn push_line(text: &mut String, line: &str) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(line);
    text.push('\n');
}

fn lossy(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(limit_bytes: usize, parts: &[&[u8]]) -> String {
        let mut output = Output::new(limit_bytes);
        for part in parts {
            output.push(part);
        }
        output.into_text()
    }

    #[test]
    fn what_fits_is_kept_as_it_is() {
        assert_eq!(kept(8, &[b"abc", b"defgh"]), "abcdefgh");
        assert_eq!(kept(8, &[]), "");
    }

    #[test]
    fn of_more_the_beginning_and_the_end_are_kept() {
        let expected = "abcdef\n... 3 bytes left out ...\njk";
        assert_eq!(kept(8, &[b"abcdefghijk"]), expected);
        let single: Vec<_> = b"abcdefghijk".chunks(1).collect();
        assert_eq!(kept(8, &single), expected);
        assert_eq!(kept(8, &[b"abcdefg", b"hijk"]), expected);
        assert_eq!(kept(8, &[b"abcdefghi", b"jk"]), expected);
    }

    #[test]
    fn a_character_across_the_cut_becomes_a_replacement() {
        assert_eq!(kept(4, &["aaäbbbbc".as_bytes()]), "aa\u{fffd}\n... 5 bytes left out ...\nc");
        assert_eq!(kept(8, &[b"\xff"]), "\u{fffd}");
    }

    #[test]
    fn the_smallest_bounds_hold() {
        assert_eq!(kept(1, &[b"ab"]), "a\n... 1 bytes left out ...\n");
    }
}
