//! A text that is cut in the middle.
//!
//! In: parts. Out: their beginning and their end, at most that many bytes, with a line that says how much is left out.

/// The most bytes of the beginning, and those of the end.
const HALF: usize = 16 << 10;

#[derive(Default)]
pub(super) struct Bounded {
    head: String,
    tail: String,
    /// The bytes that were dropped between them.
    dropped: usize,
}

impl Bounded {
    /// Appends a part. Costs its length.
    pub(super) fn push(&mut self, mut text: &str) {
        if self.tail.is_empty() && self.dropped == 0 {
            let room = text.floor_char_boundary(HALF - self.head.len());
            let (first, rest) = text.split_at(room);
            self.head.push_str(first);
            text = rest;
            if rest.is_empty() {
                return;
            }
        }
        self.tail.push_str(text);
        if self.tail.len() > 2 * HALF {
            self.shorten();
        }
    }

    /// The whole, if it is short enough.
    pub(super) fn finish(mut self) -> String {
        if self.tail.len() > HALF {
            self.shorten();
        }
        if self.dropped == 0 {
            return self.head + &self.tail;
        }
        format!("{}\n… {} bytes are left out …\n{}", self.head, self.dropped, self.tail)
    }

    fn shorten(&mut self) {
        let mut from = self.tail.len() - HALF;
        while !self.tail.is_char_boundary(from) {
            from += 1;
        }
        self.dropped += from;
        self.tail.drain(..from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_loses_its_middle() {
        let mut text = Bounded::default();
        for _ in 0..10_000 {
            text.push("äöü ");
        }
        text.push("end");
        let text = text.finish();
        assert!(text.len() < 2 * HALF + 100);
        assert!(text.starts_with("äöü äöü ") && text.ends_with("äöü end"));
        assert!(
            text.contains("\n… 37235 bytes are left out …\n"),
            "{}",
            &text[HALF - 4..HALF + 60]
        );
    }

    #[test]
    fn a_short_text_stays() {
        let mut text = Bounded::default();
        text.push(&"a".repeat(HALF - 1));
        text.push("äb");
        assert_eq!(text.finish().len(), HALF + 2);
    }
}
