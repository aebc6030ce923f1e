//! The lines of the input that are too long to be read.
//!
//! In: bytes, in pieces. Out: at the end of each line that is too long, the id of its request, if the line has one. The
//! id may stand at the end of a line, so all bytes are looked at; at most 128 of a line are kept.

use rmcp::model::RequestId;

/// The most bytes of a line.
pub(super) const MOST_LINE_BYTES: usize = 16 << 20;

/// The most bytes of an id, or of the name of a field, that are kept.
const MOST_KEPT: usize = 128;

/// Looks for the lines that are too long.
#[derive(Default)]
pub(super) struct Lines {
    /// The bytes of the line so far.
    length: usize,
    depth: usize,
    is_text: bool,
    is_escaped: bool,
    /// Whether the value of the field `id` is being read.
    is_id: bool,
    /// The latest name, or the value of `id` so far.
    kept: Vec<u8>,
    id: Option<RequestId>,
}

impl Lines {
    /// Looks at the next bytes; gives the ids of the long lines that end in them. Costs a step for each byte.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Vec<Option<RequestId>> {
        let mut ended = Vec::new();
        for &byte in bytes {
            self.length = self.length.saturating_add(1);
            if byte != b'\n' {
                self.step(byte);
                continue;
            }
            let Self { length, id, .. } = std::mem::take(self);
            if length > MOST_LINE_BYTES {
                ended.push(id);
            }
        }
        ended
    }

    fn step(&mut self, byte: u8) {
        if self.is_text {
            self.keep(byte);
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' => self.is_escaped = true,
                b'"' => self.is_text = false,
                _ => {}
            }
            return;
        }
        match byte {
            b'"' => {
                self.is_text = true;
                self.kept.clear();
                self.keep(byte);
            }
            b':' if self.depth == 1 => {
                self.is_id = self.kept == b"\"id\"";
                self.kept.clear();
            }
            b',' | b'}' if self.depth == 1 => {
                if std::mem::take(&mut self.is_id) {
                    self.id = serde_json::from_slice(&self.kept).ok();
                }
                self.kept.clear();
                self.depth -= usize::from(byte == b'}');
            }
            b'{' | b'[' => self.depth = self.depth.saturating_add(1),
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            byte if byte.is_ascii_whitespace() => {}
            byte => self.keep(byte),
        }
    }

    /// One byte more than fits is kept, and no id is read from so many.
    fn keep(&mut self, byte: u8) {
        if self.depth == 1 && self.kept.len() < MOST_KEPT {
            self.kept.push(byte);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id_of(head: &str, tail: &str) -> Vec<Option<RequestId>> {
        let mut lines = Lines::default();
        assert_eq!(lines.push(head.as_bytes()), []);
        assert_eq!(lines.push(&vec![b'a'; MOST_LINE_BYTES]), []);
        lines.push(format!("{tail}\n").as_bytes())
    }

    #[test]
    fn the_id_of_a_long_line_is_found_wherever_it_stands() {
        let five = || vec![Some(RequestId::Number(5))];
        assert_eq!(id_of("{\"id\": 5, \"params\": {\"id\":6,\"a\":\"", "\"}}"), five());
        assert_eq!(id_of("{\"params\":{\"a\":\"\\\"}", "\",\"id\":6},\"id\":5}"), five());
        assert_eq!(
            id_of("{\"id\":\"a,\\\"b\",\"x\":\"", "\"}"),
            [Some(RequestId::String("a,\"b".into()))]
        );
        let long = format!("{{\"id\":\"{}\",\"x\":\"", "i".repeat(200));
        for none in ["", "{\"a\":{\"id\":5},\"x\":\"", "[[{\"id\":5", "}}]\"id\":5", &long] {
            assert_eq!(id_of(none, ""), [None], "{none}");
        }
    }

    #[test]
    fn a_line_that_just_fits_is_none_of_them() {
        let mut lines = Lines::default();
        assert_eq!(lines.push(&vec![b'a'; MOST_LINE_BYTES - 1]), []);
        assert_eq!(lines.push(b"\n{\"id\":1}\n"), []);
        assert_eq!(lines.push(&vec![b'a'; MOST_LINE_BYTES]), []);
        assert_eq!(lines.push(b"\n{\"id\":1}\n"), [None]);
    }
}
