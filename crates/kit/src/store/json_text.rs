//! JSON text as a message.
//!
//! In: JSON text, which any program may have written into the table. Out: the message of its value, as `JSON.parse`
//! makes it. Nothing here recurses, so depth costs only a byte for each open object or array. Each node is charged
//! before it is written.

use isolane::{Value, value::Writer};

use super::charges::Charges;

/// Bytes that a node takes for its reader, at most; see `core/src/value/weight.rs`.
const NODE_BYTES: usize = 160;

/// A failure to read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum JsonError {
    /// The text is no JSON; the byte at which that shows.
    Malformed(usize),
    /// The run has no room for the value: it ends as `memory`.
    NoRoom,
}

/// An object or array whose end has not been read.
enum Open {
    Object,
    /// Its place in the message, and its elements so far.
    Array(usize, u32),
}

/// The message of a text.
pub(super) fn read(text: &str, charges: &mut Charges) -> Result<Value, JsonError> {
    let mut parser = Parser { text, at: 0, writer: Writer::new(), charges, open: Vec::new() };
    parser.document()?;
    Ok(parser.writer.finish())
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    writer: Writer,
    charges: &'a mut Charges,
    open: Vec<Open>,
}

impl Parser<'_> {
    fn document(&mut self) -> Result<(), JsonError> {
        loop {
            self.value()?;
            // Behind a value: the ends of its containers, or the next value.
            loop {
                let next = self.peek();
                match (self.open.last_mut(), next) {
                    (None, None) => return Ok(()),
                    (Some(Open::Object), Some(b',')) => {
                        self.at += 1;
                        self.key()?;
                        break;
                    }
                    (Some(Open::Array(_, count)), Some(b',')) => {
                        *count += 1;
                        self.at += 1;
                        break;
                    }
                    (Some(Open::Object), Some(b'}')) => {
                        self.writer.end_object();
                        self.close();
                    }
                    (Some(Open::Array(place, count)), Some(b']')) => {
                        self.writer.close_array(*place, *count + 1);
                        self.close();
                    }
                    _ => return self.malformed(),
                }
            }
        }
    }

    fn close(&mut self) {
        self.at += 1;
        self.open.pop();
    }

    /// Reads one value; of a container that is not empty only the start.
    fn value(&mut self) -> Result<(), JsonError> {
        loop {
            if !self.charges.take(NODE_BYTES) {
                return Err(JsonError::NoRoom);
            }
            match self.peek() {
                Some(b'{') => {
                    self.at += 1;
                    self.writer.object();
                    if self.peek() == Some(b'}') {
                        self.at += 1;
                        self.writer.end_object();
                        return Ok(());
                    }
                    self.open.push(Open::Object);
                    self.key()?;
                }
                Some(b'[') => {
                    self.at += 1;
                    let place = self.writer.open_array();
                    if self.peek() == Some(b']') {
                        self.at += 1;
                        self.writer.close_array(place, 0);
                        return Ok(());
                    }
                    self.open.push(Open::Array(place, 0));
                }
                Some(b'"') => {
                    return self.string(Writer::string, Writer::string16);
                }
                Some(b't') => return self.word("true", |writer| writer.bool(true)),
                Some(b'f') => return self.word("false", |writer| writer.bool(false)),
                Some(b'n') => return self.word("null", Writer::null),
                _ => return self.number(),
            }
        }
    }

    fn key(&mut self) -> Result<(), JsonError> {
        if self.peek() != Some(b'"') {
            return self.malformed();
        }
        if !self.charges.take(NODE_BYTES) {
            return Err(JsonError::NoRoom);
        }
        self.string(Writer::key, Writer::key16)?;
        if self.peek() != Some(b':') {
            return self.malformed();
        }
        self.at += 1;
        Ok(())
    }

    fn word(&mut self, word: &str, write: impl FnOnce(&mut Writer)) -> Result<(), JsonError> {
        if !self.text[self.at..].starts_with(word) {
            return self.malformed();
        }
        self.at += word.len();
        write(&mut self.writer);
        Ok(())
    }

    fn number(&mut self) -> Result<(), JsonError> {
        let rest = &self.text.as_bytes()[self.at..];
        let is_part = |byte: &&u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
        let length = rest.iter().take_while(is_part).count();
        let text = &self.text[self.at..self.at + length];
        match text.parse() {
            Ok(number) if is_number(text) => {
                self.at += length;
                self.writer.number(number);
                Ok(())
            }
            _ => self.malformed(),
        }
    }

    /// Reads a string, and writes it with one of two functions: the second is for one with a lone surrogate.
    fn string(
        &mut self,
        write: impl FnOnce(&mut Writer, &str),
        write16: impl FnOnce(&mut Writer, &[u16]),
    ) -> Result<(), JsonError> {
        let start = self.at + 1;
        let bytes = self.text.as_bytes();
        let plain =
            bytes[start..].iter().take_while(|byte| !matches!(byte, b'"' | b'\\' | 0..0x20));
        let end = start + plain.count();
        if !self.charges.take(3 * (end - start)) {
            return Err(JsonError::NoRoom);
        }
        if bytes.get(end) == Some(&b'"') {
            write(&mut self.writer, &self.text[start..end]);
            self.at = end + 1;
            return Ok(());
        }
        let units = self.escaped(start)?;
        write16(&mut self.writer, &units);
        Ok(())
    }

    /// The units of a string with escapes.
    fn escaped(&mut self, start: usize) -> Result<Vec<u16>, JsonError> {
        let mut units = Vec::new();
        self.at = start;
        let length = memchr::memchr(b'"', &self.text.as_bytes()[start..]).unwrap_or(0);
        if !self.charges.take(6 * length) {
            return Err(JsonError::NoRoom);
        }
        let mut charged = start + length;
        loop {
            let Some(c) = self.text[self.at..].chars().next() else { return self.malformed() };
            if self.at > charged {
                // An escaped quote: the string is longer than it looked.
                let more = memchr::memchr(b'"', &self.text.as_bytes()[self.at..]).unwrap_or(0);
                if !self.charges.take(6 * more.max(1)) {
                    return Err(JsonError::NoRoom);
                }
                charged = self.at + more;
            }
            match c {
                '"' => {
                    self.at += 1;
                    return Ok(units);
                }
                '\\' => units.push(self.escape()?),
                c if u32::from(c) < 0x20 => return self.malformed(),
                c => {
                    units.extend_from_slice(c.encode_utf16(&mut [0; 2]));
                    self.at += c.len_utf8();
                }
            }
        }
    }

    /// The unit of an escape.
    fn escape(&mut self) -> Result<u16, JsonError> {
        let bytes = self.text.as_bytes();
        let unit = match bytes.get(self.at + 1) {
            Some(byte @ (b'"' | b'\\' | b'/')) => u16::from(*byte),
            Some(b'b') => 8,
            Some(b'f') => 12,
            Some(b'n') => 10,
            Some(b'r') => 13,
            Some(b't') => 9,
            Some(b'u') => {
                let digits = self.text.get(self.at + 2..self.at + 6);
                let digits = digits.filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
                let unit = digits.and_then(|digits| u16::from_str_radix(digits, 16).ok());
                let Some(unit) = unit else { return self.malformed() };
                self.at += 4;
                unit
            }
            _ => return self.malformed(),
        };
        self.at += 2;
        Ok(unit)
    }

    /// The next byte that is no white space.
    fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while matches!(bytes.get(self.at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
        bytes.get(self.at).copied()
    }

    fn malformed<T>(&self) -> Result<T, JsonError> {
        Err(JsonError::Malformed(self.at))
    }
}

/// Whether a text is a number of JSON: no leading zero or plus, digits around a dot.
fn is_number(text: &str) -> bool {
    let text = text.strip_prefix('-').unwrap_or(text);
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    is_digits(whole)
        && (whole.len() == 1 || !whole.starts_with('0'))
        && fraction.is_none_or(is_digits)
        && exponent.is_none_or(|text| is_digits(text.strip_prefix(['+', '-']).unwrap_or(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Option<Value> {
        read(text, &mut Charges::new(None)).ok()
    }

    #[test]
    fn valid_texts_are_read_as_serde_reads_them() {
        for text in [
            "null",
            " true ",
            "false",
            "0",
            "-0",
            "1.5e3",
            "-12",
            "1E-2",
            "\"\"",
            "\"ä\"",
            "[]",
            "{}",
            "[[],{}]",
            "[1, [2, [3, null]], \"x\"]",
            "{\"a\": 1, \"b\": {\"c\": [1, 2]}}",
            "\"\\u00e4\\n\\\"\\/\"",
            "\"\\ud83d\\ude00\"",
            "\t[\r\n1 ,2 ]",
        ] {
            let ours = parsed(text).unwrap_or_else(|| panic!("{text}"));
            let theirs: serde_json::Value = serde_json::from_str(text).expect("valid");
            let theirs = Value::serialize(&theirs).expect("a message");
            let plain =
                |value: Value| value.deserialize::<serde_json::Value>().expect("plain data");
            assert_eq!(plain(ours), plain(theirs), "{text}");
        }
    }

    #[test]
    fn invalid_texts_are_refused() {
        for text in [
            "",
            " ",
            "nul",
            "truefalse",
            "01",
            "+1",
            "1.",
            ".5",
            "1e",
            "--1",
            "[",
            "[1",
            "[1,",
            "[1,]",
            "[,1]",
            "]",
            "{",
            "{\"a\"",
            "{\"a\":",
            "{\"a\":1",
            "{\"a\":1,}",
            "{a:1}",
            "{1:1}",
            "\"",
            "\"\\x\"",
            "\"\\u12\"",
            "\"\\u+123\"",
            "\"\n\"",
            "[1 2]",
            "{\"a\" 1}",
            "1 2",
            "[1}",
            "{\"a\":1]",
            "NaN",
            "Infinity",
            "'a'",
            "\"\\ud800",
            "\"\\",
        ] {
            assert_eq!(parsed(text), None, "{text}");
        }
    }

    #[test]
    fn lone_surrogates_are_kept() {
        let mut writer = Writer::new();
        writer.string16(&[0xD800, 0x61]);
        assert_eq!(parsed("\"\\ud800a\""), Some(writer.finish()));
    }

    #[test]
    fn depth_costs_no_stack() {
        let deep = format!("{}{}", "[".repeat(1_000_000), "]".repeat(1_000_000));
        assert!(parsed(&deep).is_some());
        assert_eq!(parsed(&"[{\"a\":".repeat(1_000_000)), None);
    }
}
