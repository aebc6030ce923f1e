//! A text that is cut in the middle.
//!
//! In: parts. Out: their beginning and their end, at most that many bytes of JSON, with a line that says
//! how much is left out.

/// The most bytes of the beginning, and those of the end.
const HALF: usize = 16 << 10;

/// The bytes of a character in JSON, which writes most control characters as `\u0000`.
fn cost(char: char) -> usize {
    if char < ' ' && !matches!(char, '\n' | '\r' | '\t') { 6 } else { char.len_utf8() }
}

#[derive(Default)]
pub(super) struct Bounded {
    head: String,
    /// The bytes of the head in JSON, and those of the tail.
    head_cost: usize,
    tail: String,
    tail_cost: usize,
    /// The bytes that were dropped between them.
    dropped: usize,
}

impl Bounded {
    /// Appends a part. Costs its length.
    pub(super) fn push(&mut self, mut text: &str) {
        if self.tail.is_empty() && self.dropped == 0 {
            let (mut cost_so_far, mut split) = (self.head_cost, text.len());
            for (at, char) in text.char_indices() {
                if cost_so_far + cost(char) > HALF {
                    split = at;
                    break;
                }
                cost_so_far += cost(char);
            }
            self.head_cost = cost_so_far;
            let (first, rest) = text.split_at(split);
            self.head.push_str(first);
            text = rest;
            if rest.is_empty() {
                return;
            }
        }
        self.tail.push_str(text);
        self.tail_cost += text.chars().map(cost).sum::<usize>();
        if self.tail_cost > 2 * HALF {
            self.shorten();
        }
    }

    /// The whole, if it is short enough.
    pub(super) fn finish(mut self) -> String {
        if self.tail_cost > HALF {
            self.shorten();
        }
        if self.dropped == 0 {
            return self.head + &self.tail;
        }
        format!("{}\n… {} bytes are left out …\n{}", self.head, self.dropped, self.tail)
    }

    fn shorten(&mut self) {
        let (mut cost_of_kept, mut from) = (0, self.tail.len());
        for (at, char) in self.tail.char_indices().rev() {
            if cost_of_kept + cost(char) > HALF {
                break;
            }
            cost_of_kept += cost(char);
            from = at;
        }
        self.tail_cost = cost_of_kept;
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

    #[test]
    fn control_characters_count_as_json_writes_them() {
        let mut text = Bounded::default();
        for _ in 0..100 {
            text.push(&"\u{1}".repeat(1000));
        }
        let text = text.finish();
        assert!(serde_json::Value::from(text.as_str()).to_string().len() < 2 * HALF + 100);
        assert!(text.starts_with('\u{1}') && text.ends_with('\u{1}'));
    }
}
