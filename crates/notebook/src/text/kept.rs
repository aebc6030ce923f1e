//! A text of any length, of which the beginning and the end are kept.
//!
//! In: text as it comes. Out: its first and its last bytes, and how many bytes and lines it has in all.

use std::collections::VecDeque;

/// The beginning and the end of a text, at most `limit` bytes of each.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    limit: usize,
    head: Vec<u8>,
    /// Whether bytes between head and tail are missing.
    has_gap: bool,
    tail: VecDeque<u8>,
    bytes: u64,
    newlines: u64,
}

impl Kept {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            head: Vec::new(),
            has_gap: false,
            tail: VecDeque::new(),
            bytes: 0,
            newlines: 0,
        }
    }

    pub(crate) fn push(&mut self, text: &str) {
        self.bytes += text.len() as u64;
        self.newlines += text.bytes().filter(|byte| *byte == b'\n').count() as u64;
        self.keep(text.as_bytes());
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room =
            if self.has_gap || !self.tail.is_empty() { 0 } else { self.limit - self.head.len() };
        let (head, rest) = bytes.split_at(bytes.len().min(room));
        self.head.extend_from_slice(head);
        let skipped = rest.len().saturating_sub(self.limit);
        let surplus = (self.tail.len() + rest.len() - skipped).saturating_sub(self.limit);
        self.has_gap |= skipped + surplus > 0;
        self.tail.drain(..surplus);
        self.tail.extend(rest.get(skipped..).unwrap_or_default());
    }

    /// Appends another one, whose middle may be missing.
    pub(crate) fn append(&mut self, other: &Self) {
        self.bytes += other.bytes;
        self.newlines += other.newlines;
        self.keep(&other.head);
        if other.has_gap {
            self.has_gap = true;
            self.tail.clear();
        }
        let (first, second) = other.tail.as_slices();
        self.keep(first);
        self.keep(second);
    }

    /// Appends blank lines.
    pub(crate) fn push_newlines(&mut self, count: u64) {
        self.bytes += count;
        self.newlines += count;
        let kept = usize::try_from(count).unwrap_or(usize::MAX).min(self.limit * 2 + 1);
        self.keep(&vec![b'\n'; kept]);
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::new(self.limit);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Whether it is white space alone, as far as it is kept.
    pub(crate) fn is_blank(&self) -> bool {
        self.head.iter().chain(&self.tail).all(u8::is_ascii_whitespace)
    }

    /// All of its bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// All of its lines: the last one needs no newline.
    pub(crate) fn lines(&self) -> u64 {
        if self.is_empty() { 0 } else { self.newlines + 1 }
    }

    /// The whole text, if nothing of it is missing.
    pub(crate) fn whole(&self) -> Option<String> {
        if self.has_gap {
            return None;
        }
        let mut bytes = self.head.clone();
        bytes.extend(&self.tail);
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The beginning, without half a character at its end.
    pub(crate) fn start(&self) -> String {
        let bytes = &self.head;
        let end = match std::str::from_utf8(bytes) {
            Ok(_) => bytes.len(),
            Err(error) => error.valid_up_to(),
        };
        String::from_utf8_lossy(&bytes[..end]).into_owned()
    }

    /// The end, without half a character at its beginning; the beginning if there is no end apart from it.
    pub(crate) fn end(&self) -> String {
        if let Some(whole) = self.whole() {
            return whole;
        }
        let bytes: Vec<u8> = self.tail.iter().copied().collect();
        let start = bytes.iter().take_while(|byte| **byte & 0xC0 == 0x80).count();
        String::from_utf8_lossy(&bytes[start..]).into_owned()
    }

    /// The text with its beginning and its end changed, as far as there is a change.
    pub(crate) fn changed(self, change: impl Fn(&str) -> Option<String>) -> Self {
        if let Some(whole) = self.whole() {
            let Some(changed) = change(&whole) else { return self };
            let mut kept = Self::new(self.limit);
            kept.push(&changed);
            return kept;
        }
        let (start, end) = (self.start(), self.end());
        let (head, tail) = (change(&start), change(&end));
        if head.is_none() && tail.is_none() {
            return self;
        }
        let mut head = head.unwrap_or(start).into_bytes();
        head.truncate(self.limit);
        let tail = tail.unwrap_or(end).into_bytes();
        let surplus = tail.len().saturating_sub(self.limit);
        Self { head, tail: tail[surplus..].iter().copied().collect(), ..self }
    }

    /// Takes white space from the end.
    pub(crate) fn trim_end(&mut self) {
        let end = self.end();
        let surplus = end.len() - end.trim_end().len();
        let newlines = end.as_bytes()[end.len() - surplus..].iter().filter(|byte| **byte == b'\n');
        self.newlines -= newlines.count() as u64;
        self.bytes -= surplus as u64;
        let from_tail = surplus.min(self.tail.len());
        self.tail.truncate(self.tail.len() - from_tail);
        self.head.truncate(self.head.len() - (surplus - from_tail));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_whole_and_of_more_both_ends_are_kept() {
        let mut kept = Kept::new(4);
        kept.push("abc");
        kept.push("defg");
        assert_eq!(kept.whole().as_deref(), Some("abcdefg"));
        kept.push("hij\nk");
        assert_eq!((kept.whole(), kept.start(), kept.end()), (None, "abcd".into(), "ij\nk".into()));
        assert_eq!((kept.bytes(), kept.lines()), (12, 2));
    }

    #[test]
    fn a_gap_inside_of_an_appended_text_stays_one() {
        let (mut all, mut line) = (Kept::new(4), Kept::new(4));
        line.push("0123456789");
        all.push("a");
        all.append(&line);
        all.push("z");
        assert_eq!((all.start(), all.end()), ("a012".into(), "789z".into()));
        assert_eq!(all.bytes(), 12);
    }

    #[test]
    fn half_characters_go() {
        let mut kept = Kept::new(3);
        kept.push("éééééé");
        assert_eq!((kept.start(), kept.end()), ("é".into(), "é".into()));
    }

    #[test]
    fn both_ends_of_a_text_can_be_changed() {
        let change = |text: &str| text.contains("ab").then(|| text.replace("ab", "..."));
        let mut kept = Kept::new(6);
        kept.push("xabz");
        assert_eq!(kept.clone().changed(change).whole().as_deref(), Some("x...z"));
        assert_eq!(kept.clone().changed(|_| None).whole().as_deref(), Some("xabz"));
        kept.push("0123456789ab");
        let kept = kept.changed(change);
        assert_eq!(
            (kept.start(), kept.end(), kept.bytes()),
            ("x...z0".into(), "789...".into(), 16)
        );
    }

    #[test]
    fn white_space_goes_from_the_end() {
        let mut kept = Kept::new(6);
        kept.push("ab \n \n");
        kept.trim_end();
        assert_eq!((kept.whole().as_deref(), kept.bytes(), kept.lines()), (Some("ab"), 2, 1));
    }
}
