//! Escapes of a value for the part of a request that it stands in.
//!
//! In: a value. Out: its bytes in a URL, in a JSON text or in a form.

use zeroize::Zeroizing;

/// How a value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Escape {
    /// As it is.
    None,
    /// Percent-encoded, but for letters, digits and `-._~`.
    Url,
    /// As `application/x-www-form-urlencoded` has it.
    Form,
    /// As between the quotes of a JSON text.
    Json,
}

impl Escape {
    /// The escape for a body of that media type.
    pub(super) fn of_body(content_type: Option<&str>) -> Self {
        let essence = content_type.and_then(|text| text.split(';').next()).unwrap_or_default();
        let essence = essence.trim().to_ascii_lowercase();
        if essence == "application/x-www-form-urlencoded" {
            Self::Form
        } else if essence == "application/json"
            || essence == "text/json"
            || essence.ends_with("+json")
        {
            Self::Json
        } else {
            Self::None
        }
    }

    /// Writes a value.
    pub(super) fn write(self, value: &str) -> Zeroizing<Vec<u8>> {
        // Six bytes at most for each: so the buffer never moves.
        let mut out = Zeroizing::new(Vec::with_capacity(6 * value.len()));
        for byte in value.bytes() {
            match self {
                Self::Url if is_plain(byte, b"-._~") => out.push(byte),
                Self::Form if is_plain(byte, b"-._*") => out.push(byte),
                Self::Form if byte == b' ' => out.push(b'+'),
                Self::Url | Self::Form => out.extend(hex(*b"%00", byte)),
                Self::Json if byte == b'"' || byte == b'\\' => out.extend([b'\\', byte]),
                Self::Json if byte < b' ' => out.extend(hex(*b"\\u0000", byte)),
                Self::None | Self::Json => out.push(byte),
            }
        }
        out
    }
}

fn is_plain(byte: u8, others: &[u8]) -> bool {
    byte.is_ascii_alphanumeric() || others.contains(&byte)
}

/// The text whose last two bytes are the byte's hexadecimal digits.
fn hex<const N: usize>(mut text: [u8; N], byte: u8) -> [u8; N] {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    if let [.., high, low] = &mut text[..] {
        *high = DIGITS[usize::from(byte >> 4)];
        *low = DIGITS[usize::from(byte & 0xF)];
    }
    text
}
