//! Decoders of escapes, one byte after the other.
//!
//! In: the bytes of an escape so far. Out: whether it goes on, the bytes that it stands for, or that it is none.

use crate::wtf8;

/// A kind of escapes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Escapes {
    /// `%2F`
    Percent,
    /// `%2F`, and `+` for a space.
    Form,
    /// `\n`, `\/`, `\u00e9`
    Json,
}

/// The longest escape: two surrogates of JSON.
pub(super) const LONGEST: usize = 12;

/// The meaning of bytes, by the rules of a kind of escapes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The beginning of an escape.
    More,
    /// The first byte stands for itself.
    Literal,
    /// The first `read` bytes stand for the first `length` of `bytes`.
    Decoded { read: usize, bytes: [u8; 4], length: usize },
}

impl Escapes {
    /// Whether an escape may begin with that byte.
    pub(super) fn may_begin(self, byte: u8) -> bool {
        match self {
            Self::Percent => byte == b'%',
            Self::Form => byte == b'%' || byte == b'+',
            Self::Json => byte == b'\\',
        }
    }

    /// The meaning of these bytes, of which there is one at least.
    pub(super) fn decode(self, bytes: &[u8]) -> Step {
        match self {
            Self::Form if bytes.starts_with(b"+") => decoded(1, b" "),
            Self::Percent | Self::Form => percent(bytes),
            Self::Json => json(bytes),
        }
    }
}

fn decoded(read: usize, text: &[u8]) -> Step {
    let mut bytes = [0; 4];
    let length = text.len().min(4);
    bytes[..length].copy_from_slice(&text[..length]);
    Step::Decoded { read, bytes, length }
}

fn hex(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

fn percent(bytes: &[u8]) -> Step {
    let [b'%', digits @ ..] = bytes else { return Step::Literal };
    match digits {
        [] => Step::More,
        [high] if hex(*high).is_some() => Step::More,
        [high, low, ..] => match (hex(*high), hex(*low)) {
            (Some(high), Some(low)) => decoded(3, &[high << 4 | low]),
            _ => Step::Literal,
        },
        _ => Step::Literal,
    }
}

fn json(bytes: &[u8]) -> Step {
    let [b'\\', rest @ ..] = bytes else { return Step::Literal };
    let simple = match rest.first() {
        None => return Step::More,
        Some(b'u') => return unicode(bytes),
        Some(byte @ (b'"' | b'\\' | b'/')) => *byte,
        Some(b'b') => 8,
        Some(b'f') => 12,
        Some(b'n') => b'\n',
        Some(b'r') => b'\r',
        Some(b't') => b'\t',
        Some(_) => return Step::Literal,
    };
    decoded(2, &[simple])
}

/// `\u` and four digits, once or, for a pair of surrogates, twice.
fn unicode(bytes: &[u8]) -> Step {
    const ESCAPE: usize = 6;
    let unit = match unit(bytes) {
        Ok(unit) => unit,
        Err(step) => return step,
    };
    let lone = || decoded(ESCAPE, &wtf8::surrogate(unit));
    let pair = match unit {
        0xD800..0xDC00 => match bytes.get(ESCAPE..) {
            None | Some([] | [b'\\']) => return Step::More,
            Some([b'\\', b'u', ..]) => match self::unit(&bytes[ESCAPE..]) {
                Ok(low) => [unit, low],
                Err(Step::More) => return Step::More,
                Err(_) => return lone(),
            },
            Some(_) => return lone(),
        },
        _ => [unit, 0],
    };
    let read = if (0xDC00..0xE000).contains(&pair[1]) { 2 * ESCAPE } else { ESCAPE };
    match char::decode_utf16(pair).next() {
        Some(Ok(c)) => decoded(read, c.encode_utf8(&mut [0; 4]).as_bytes()),
        _ => lone(),
    }
}

fn unit(bytes: &[u8]) -> Result<u16, Step> {
    let digits = bytes.get(2..).unwrap_or_default();
    let digits = &digits[..digits.len().min(4)];
    let mut unit = 0;
    for digit in digits {
        unit = unit << 4 | u16::from(hex(*digit).ok_or(Step::Literal)?);
    }
    if digits.len() == 4 { Ok(unit) } else { Err(Step::More) }
}
