//! A stream of a process: bytes that become text.
//!
//! In: bytes in pieces, cut anywhere. Out: text, as much as may be kept. Bytes that are no UTF-8 are U+FFFD.

use std::str::from_utf8;

use crate::StreamInfo;

/// The text of a stream so far.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    text: String,
    decoder: Decoder,
    truncated: bool,
}

impl Stream {
    /// Takes bytes; the part of the text that was added. Empty if no character is complete or nothing more is kept.
    pub(crate) fn push(&mut self, bytes: &[u8], most_bytes: usize) -> &str {
        if self.truncated {
            return "";
        }
        let from = self.text.len();
        self.decoder.push(bytes, &mut self.text);
        self.cut(from, most_bytes)
    }

    /// The stream has ended: an unfinished character is U+FFFD. The part of the text that was added.
    pub(crate) fn end(&mut self, most_bytes: usize) -> &str {
        let from = self.text.len();
        if !self.truncated {
            self.decoder.end(&mut self.text);
        }
        self.cut(from, most_bytes)
    }

    fn cut(&mut self, from: usize, most_bytes: usize) -> &str {
        if self.text.len() > most_bytes {
            self.text.truncate(self.text.floor_char_boundary(most_bytes));
            self.truncated = true;
        }
        self.text.get(from..).unwrap_or_default()
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn info(&self) -> StreamInfo {
        StreamInfo { bytes: self.text.len() as u64, truncated: self.truncated }
    }
}

/// Decodes UTF-8 whose characters may lie across pieces.
#[derive(Debug, Default)]
struct Decoder {
    /// The beginning of a character: at most three bytes.
    begun: Vec<u8>,
}

impl Decoder {
    fn push(&mut self, bytes: &[u8], text: &mut String) {
        if self.begun.is_empty() {
            self.begun = decode(bytes, text).to_vec();
            return;
        }
        // A character has at most four bytes, so only the first ones of a piece can belong to one that was begun.
        let mut taken = 0;
        while !self.begun.is_empty() && taken < bytes.len() {
            self.begun.push(bytes[taken]);
            taken += 1;
            self.begun = decode(&std::mem::take(&mut self.begun), text).to_vec();
        }
        if taken < bytes.len() {
            self.begun = decode(&bytes[taken..], text).to_vec();
        }
    }

    fn end(&mut self, text: &mut String) {
        if !std::mem::take(&mut self.begun).is_empty() {
            text.push(char::REPLACEMENT_CHARACTER);
        }
    }
}

/// Appends what is complete; the beginning of a character that is not.
fn decode<'b>(mut bytes: &'b [u8], text: &mut String) -> &'b [u8] {
    loop {
        let fault = match from_utf8(bytes) {
            Ok(rest) => {
                text.push_str(rest);
                return &[];
            }
            Err(fault) => fault,
        };
        let (valid, rest) = bytes.split_at(fault.valid_up_to());
        text.push_str(from_utf8(valid).unwrap_or_default());
        let Some(length) = fault.error_len() else { return rest };
        text.push(char::REPLACEMENT_CHARACTER);
        bytes = rest.get(length..).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(pieces: &[&[u8]]) -> String {
        let mut stream = Stream::default();
        for piece in pieces {
            stream.push(piece, 1000);
        }
        stream.end(1000);
        stream.text().to_owned()
    }

    #[test]
    fn characters_across_pieces_stay_whole() {
        let text = "a\u{FEFF}ä€😀\u{FEFF}z";
        for size in 1..text.len() {
            let pieces: Vec<&[u8]> = text.as_bytes().chunks(size).collect();
            assert_eq!(decoded(&pieces), text, "{size}");
        }
        assert_eq!(decoded(&["\u{FEFF}x".as_bytes()]), "\u{FEFF}x");
    }

    #[test]
    fn what_is_no_utf_8_is_replaced_as_in_one_piece() {
        let bytes: &[u8] = b"a\xff\xe2\x82b\xf0\x9f\xf0\x9f\x98\x80\xc0\x80\xed\xa0\x80\xe2";
        let whole = String::from_utf8_lossy(bytes);
        for size in 1..=bytes.len() {
            let pieces: Vec<&[u8]> = bytes.chunks(size).collect();
            assert_eq!(decoded(&pieces), whole, "{size}");
        }
    }

    #[test]
    fn no_character_is_cut_and_the_rest_is_dropped() {
        let mut stream = Stream::default();
        assert_eq!(stream.push("abä".as_bytes(), 3), "ab");
        assert_eq!(stream.push(b"c", 3), "");
        assert_eq!(stream.end(3), "");
        assert_eq!(stream.info(), StreamInfo { bytes: 2, truncated: true });

        let mut full = Stream::default();
        assert_eq!(full.push(b"abc", 3), "abc");
        assert_eq!(full.info(), StreamInfo { bytes: 3, truncated: false });
        assert_eq!(full.push(b"", 3), "");
        assert!(!full.info().truncated);
        full.push(b"d", 3);
        assert_eq!(full.info(), StreamInfo { bytes: 3, truncated: true });
    }
}
