//! The fields of a CSV text.
//!
//! In: a text as bytes, whose line ends are LF, CRLF or CR, and a delimiter. Out: its fields in their order, as parts of
//! the text. Empty lines have none. A quote counts only at the start of a field; an unclosed one runs to the end of the
//! text; what follows a closing quote up to the delimiter belongs to the field. One pass; nothing is copied.

use std::borrow::Cow;

use memchr::memchr;

/// A character that parts fields, in UTF-8.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delimiter {
    bytes: [u8; 4],
    length: usize,
}

impl Delimiter {
    /// The delimiter if no other is given.
    pub(super) const COMMA: Self = Self { bytes: [b',', 0, 0, 0], length: 1 };

    /// The delimiter that is this text; `None` unless it is one character, no quote and no line end.
    pub(super) fn new(text: &str) -> Option<Self> {
        let mut chars = text.chars();
        let delimiter = chars.next().filter(|c| !matches!(c, '"' | '\n' | '\r'))?;
        if chars.next().is_some() {
            return None;
        }
        let mut bytes = [0; 4];
        let length = delimiter.encode_utf8(&mut bytes).len();
        Some(Self { bytes, length })
    }

    /// The bytes from the start of the text to the first delimiter or line end.
    fn part(&self, text: &[u8]) -> usize {
        let first = self.bytes[0];
        let mut from = 0;
        loop {
            let rest = &text[from..];
            let found =
                rest.iter().position(|&byte| byte == first || byte == b'\n' || byte == b'\r');
            let Some(found) = found else { return text.len() };
            if rest[found] != first || self.starts(&rest[found..]) {
                return from + found;
            }
            from += found + 1;
        }
    }

    fn starts(&self, text: &[u8]) -> bool {
        text.starts_with(&self.bytes[..self.length])
    }
}

/// A field: the part between quotes, then the part behind them. One without quotes has only the latter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field<'t> {
    quoted: &'t [u8],
    /// The quotes in `quoted` that stand twice.
    doubled: usize,
    bare: &'t [u8],
    /// Whether it is the last one of its row.
    pub(super) is_last: bool,
}

impl<'t> Field<'t> {
    /// The bytes of its text.
    pub(super) fn length(&self) -> usize {
        self.quoted.len() - self.doubled + self.bare.len()
    }

    /// Its text. It is a copy only of a field with doubled quotes, or with text behind its quotes.
    pub(super) fn text(&self) -> Cow<'t, [u8]> {
        if self.doubled == 0 {
            match (self.quoted, self.bare) {
                (text, []) | ([], text) => return Cow::Borrowed(text),
                _ => {}
            }
        }
        let mut text = Vec::with_capacity(self.length());
        let mut rest = self.quoted;
        while let Some(quote) = memchr(b'"', rest) {
            text.extend_from_slice(&rest[..=quote]);
            // The second of the two.
            rest = rest.get(quote + 2..).unwrap_or_default();
        }
        text.extend_from_slice(rest);
        text.extend_from_slice(self.bare);
        Cow::Owned(text)
    }
}

/// The fields of a text.
#[derive(Clone, Debug)]
pub(super) struct Fields<'t> {
    rest: &'t [u8],
    delimiter: Delimiter,
    is_in_row: bool,
}

impl<'t> Fields<'t> {
    pub(super) fn new(text: &'t [u8], delimiter: Delimiter) -> Self {
        const BYTE_ORDER_MARK: &[u8] = "\u{FEFF}".as_bytes();
        let rest = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
        Self { rest, delimiter, is_in_row: false }
    }

    /// The part between the quotes, whose first one was read, and how many quotes in it stand twice.
    fn quoted(&mut self) -> (&'t [u8], usize) {
        let (text, mut at, mut doubled) = (self.rest, 0, 0);
        while let Some(quote) = memchr(b'"', &text[at..]).map(|found| at + found) {
            if text.get(quote + 1) != Some(&b'"') {
                self.rest = &text[quote + 1..];
                return (&text[..quote], doubled);
            }
            doubled += 1;
            at = quote + 2;
        }
        self.rest = &[];
        (text, doubled)
    }
}

impl<'t> Iterator for Fields<'t> {
    type Item = Field<'t>;

    #[inline]
    fn next(&mut self) -> Option<Field<'t>> {
        if !self.is_in_row {
            while let [b'\n' | b'\r', rest @ ..] = self.rest {
                self.rest = rest;
            }
            if self.rest.is_empty() {
                return None;
            }
        }
        let (quoted, doubled) = match self.rest {
            [b'"', rest @ ..] => {
                self.rest = rest;
                self.quoted()
            }
            _ => (&[][..], 0),
        };
        let (bare, rest) = self.rest.split_at(self.delimiter.part(self.rest));
        let is_last = !self.delimiter.starts(rest);
        // The next row passes the rest of the line end.
        self.rest = &rest[if is_last { rest.len().min(1) } else { self.delimiter.length }..];
        self.is_in_row = !is_last;
        Some(Field { quoted, doubled, bare, is_last })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, delimiter: &str) -> Vec<(String, bool)> {
        let delimiter = Delimiter::new(delimiter).expect("a delimiter");
        let fields = Fields::new(text.as_bytes(), delimiter);
        let read = |field: Field<'_>| {
            let text = field.text();
            assert_eq!(text.len(), field.length());
            (String::from_utf8_lossy(&text).into_owned(), field.is_last)
        };
        fields.map(read).collect()
    }

    fn field(text: &str, is_last: bool) -> (String, bool) {
        (text.to_owned(), is_last)
    }

    #[test]
    fn the_last_field_of_a_row_is_known() {
        let rows = [field("a", false), field("", true), field("b", true)];
        assert_eq!(read("a,\r\n\r\nb", ","), rows);
    }

    #[test]
    fn copies_are_made_only_where_the_text_differs() {
        let delimiter = Delimiter::new(",").expect("a delimiter");
        let text = br#"a,"b,c",,"d""e","f"g"#;
        let copied =
            Fields::new(text, delimiter).map(|field| matches!(field.text(), Cow::Owned(_)));
        assert_eq!(copied.collect::<Vec<_>>(), [false, false, false, true, true]);
    }

    #[test]
    fn a_wide_delimiter_is_no_other_character_with_its_first_byte() {
        let row = [field("é", false), field("a", true)];
        assert_eq!(read("éèa", "è"), row);
    }

    #[test]
    fn delimiters_are_single_characters() {
        for delimiter in ["", "ab", "\"", "\n", "\r", "\r\n"] {
            assert!(Delimiter::new(delimiter).is_none(), "{delimiter:?}");
        }
    }

    /// A slow reader of one character after the other, for comparison.
    fn read_slowly(text: &str) -> Vec<(String, bool)> {
        let mut fields = Vec::new();
        let mut chars = text.chars().peekable();
        loop {
            while chars.next_if(|c| matches!(c, '\n' | '\r')).is_some() {}
            if chars.peek().is_none() {
                return fields;
            }
            loop {
                let mut text = String::new();
                if chars.next_if_eq(&'"').is_some() {
                    while let Some(c) = chars.next() {
                        if c == '"' && chars.next_if_eq(&'"').is_none() {
                            break;
                        }
                        text.push(c);
                    }
                }
                while let Some(c) = chars.next_if(|c| !matches!(c, ',' | '\n' | '\r')) {
                    text.push(c);
                }
                let is_last = chars.next_if_eq(&',').is_none();
                fields.push((text, is_last));
                if is_last {
                    break;
                }
            }
        }
    }

    #[test]
    fn every_short_text_is_read_as_one_character_after_the_other() {
        const ALPHABET: [char; 5] = ['a', ',', '"', '\n', '\r'];
        const LONGEST: u32 = 7;
        for length in 0..=LONGEST {
            for number in 0..5usize.pow(length) {
                let digit = |at| ALPHABET[number / 5usize.pow(at) % 5];
                let text: String = (0..length).map(digit).collect();
                assert_eq!(read(&text, ","), read_slowly(&text), "{text:?}");
            }
        }
    }
}
