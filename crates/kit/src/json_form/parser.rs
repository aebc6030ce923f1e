//! JSON text as a message, or only checked.
//!
//! In: JSON text, of any program. Out: the message of its value, as `JSON.parse` makes it; or whether it is JSON.
//! Nothing here recurses, so depth costs only some bytes for each open object or array. Each node is taken from a
//! [`Room`] before it is written.

use isolane::{Value, value::Writer};

use crate::room::Room;

/// Bytes that a node takes for its reader, at most; see `core/src/value/weight.rs`.
const NODE_BYTES: usize = 160;

/// Why a text has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParseFault {
    /// The text is no JSON; the byte at which that shows.
    Malformed(usize),
    /// There is no room for the value.
    NoRoom,
}

/// Open objects and arrays for which there is room at first.
const FIRST_OPEN: usize = 4;

/// An object or array whose end has not been read.
enum Open {
    Object,
    /// Its place in the message, and its elements so far.
    Array(usize, u32),
}

/// The value of a JSON text. The time is linear in the text.
///
/// # Errors
/// The text is no JSON, or there is no room for its value.
pub fn parse_json(text: &str, room: &mut dyn Room) -> Result<Value, ParseFault> {
    let mut writer = Writer::new();
    Parser { text, at: 0, writer: Some(&mut writer), room, open: Vec::new() }.document()?;
    Ok(writer.finish())
}

/// Checks that a text is JSON, in a fraction of the time of [`parse_json`].
///
/// # Errors
/// The text is no JSON, or there is no room for the stack of its open objects and arrays.
pub fn check_json(text: &str, room: &mut dyn Room) -> Result<(), ParseFault> {
    Parser { text, at: 0, writer: None, room, open: Vec::new() }.document()
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    /// `None` if the text is only checked.
    writer: Option<&'a mut Writer>,
    room: &'a mut dyn Room,
    open: Vec<Open>,
}

impl Parser<'_> {
    fn document(&mut self) -> Result<(), ParseFault> {
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
                        self.write(Writer::end_object);
                        self.close();
                    }
                    (Some(Open::Array(place, count)), Some(b']')) => {
                        let (place, count) = (*place, *count + 1);
                        self.write(|writer| writer.close_array(place, count));
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

    fn open(&mut self, open: Open) -> Result<(), ParseFault> {
        // A node that is written was charged at more.
        if self.writer.is_none() && self.open.len() == self.open.capacity() {
            self.take(size_of::<Open>() * (self.open.len() * 2).max(FIRST_OPEN))?;
        }
        self.open.push(open);
        Ok(())
    }

    fn write(&mut self, write: impl FnOnce(&mut Writer)) {
        if let Some(writer) = self.writer.as_deref_mut() {
            write(writer);
        }
    }

    /// Takes the bytes of a value that is written.
    fn take_written(&mut self, bytes: usize) -> Result<(), ParseFault> {
        if self.writer.is_some() { self.take(bytes) } else { Ok(()) }
    }

    fn take(&mut self, bytes: usize) -> Result<(), ParseFault> {
        if self.room.take(bytes) { Ok(()) } else { Err(ParseFault::NoRoom) }
    }

    /// Reads one value; of a container that is not empty only the start.
    fn value(&mut self) -> Result<(), ParseFault> {
        loop {
            self.take_written(NODE_BYTES)?;
            match self.peek() {
                Some(b'{') => {
                    self.at += 1;
                    self.write(Writer::object);
                    if self.peek() == Some(b'}') {
                        self.at += 1;
                        self.write(Writer::end_object);
                        return Ok(());
                    }
                    self.open(Open::Object)?;
                    self.key()?;
                }
                Some(b'[') => {
                    self.at += 1;
                    let place = self.writer.as_deref_mut().map_or(0, Writer::open_array);
                    if self.peek() == Some(b']') {
                        self.at += 1;
                        self.write(|writer| writer.close_array(place, 0));
                        return Ok(());
                    }
                    self.open(Open::Array(place, 0))?;
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

    fn key(&mut self) -> Result<(), ParseFault> {
        if self.peek() != Some(b'"') {
            return self.malformed();
        }
        self.take_written(NODE_BYTES)?;
        self.string(Writer::key, Writer::key16)?;
        if self.peek() != Some(b':') {
            return self.malformed();
        }
        self.at += 1;
        Ok(())
    }

    fn word(&mut self, word: &str, write: impl FnOnce(&mut Writer)) -> Result<(), ParseFault> {
        if !self.text[self.at..].starts_with(word) {
            return self.malformed();
        }
        self.at += word.len();
        self.write(write);
        Ok(())
    }

    fn number(&mut self) -> Result<(), ParseFault> {
        let rest = &self.text.as_bytes()[self.at..];
        let is_part = |byte: &&u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
        let length = rest.iter().take_while(is_part).count();
        let text = &self.text[self.at..self.at + length];
        match text.parse() {
            Ok(number) if is_number(text) => {
                self.at += length;
                self.write(|writer| writer.number(number));
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
    ) -> Result<(), ParseFault> {
        let start = self.at + 1;
        let bytes = self.text.as_bytes();
        let plain =
            bytes[start..].iter().take_while(|byte| !matches!(byte, b'"' | b'\\' | 0..0x20));
        let end = start + plain.count();
        self.take_written(3 * (end - start))?;
        if bytes.get(end) == Some(&b'"') {
            let text = self.text;
            self.write(|writer| write(writer, &text[start..end]));
            self.at = end + 1;
            return Ok(());
        }
        let units = self.escaped(start)?;
        self.write(|writer| write16(writer, &units));
        Ok(())
    }

    /// The units of a string with escapes; none if it is only checked.
    fn escaped(&mut self, start: usize) -> Result<Vec<u16>, ParseFault> {
        let mut units = Vec::new();
        self.at = start;
        let length = memchr::memchr(b'"', &self.text.as_bytes()[start..]).unwrap_or(0);
        self.take_written(6 * length)?;
        let is_written = self.writer.is_some();
        let mut charged = start + length;
        loop {
            let Some(c) = self.text[self.at..].chars().next() else { return self.malformed() };
            if self.at > charged {
                // An escaped quote: the string is longer than it looked.
                let more = memchr::memchr(b'"', &self.text.as_bytes()[self.at..]).unwrap_or(0);
                self.take_written(6 * more.max(1))?;
                charged = self.at + more;
            }
            match c {
                '"' => {
                    self.at += 1;
                    return Ok(units);
                }
                '\\' => {
                    let unit = self.escape()?;
                    if is_written {
                        units.push(unit);
                    }
                }
                c if u32::from(c) < 0x20 => return self.malformed(),
                c => {
                    if is_written {
                        units.extend_from_slice(c.encode_utf16(&mut [0; 2]));
                    }
                    self.at += c.len_utf8();
                }
            }
        }
    }

    /// The unit of an escape.
    fn escape(&mut self) -> Result<u16, ParseFault> {
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

    fn malformed<T>(&self) -> Result<T, ParseFault> {
        Err(ParseFault::Malformed(self.at))
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
    use crate::room::FixedRoom;

    fn parsed(text: &str) -> Option<Value> {
        let parsed = parse_json(text, &mut FixedRoom::new(1 << 30)).ok();
        let checked = check_json(text, &mut FixedRoom::new(1 << 30));
        assert_eq!(checked.is_ok(), parsed.is_some(), "{}", text.len());
        parsed
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
        assert_eq!(check_json(&deep, &mut FixedRoom::new(1 << 20)), Err(ParseFault::NoRoom));
    }
}
