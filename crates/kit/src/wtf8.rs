//! WTF-8: UTF-8 that may hold lone surrogates.
//!
//! In: UTF-16 of JavaScript. Out: bytes in which every ASCII character is one byte that occurs nowhere else, so that code
//! for UTF-8 reads them; and back.

/// The rest of a message about a text that has to be UTF-8, after its name.
pub(crate) const ILL_FORMED: &str =
    "must be well-formed: it has a lone surrogate, which is no character";

/// The bytes of UTF-16 code units, of two bytes each.
pub(crate) fn from_utf16(units: &[u8]) -> Vec<u8> {
    let pairs = units.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
    let mut bytes = Vec::with_capacity(units.len() / 2 * 3);
    for unit in char::decode_utf16(pairs) {
        match unit {
            Ok(c) => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            Err(lone) => bytes.extend(surrogate(lone.unpaired_surrogate())),
        }
    }
    bytes
}

/// The three bytes of a surrogate.
pub(crate) fn surrogate(unit: u16) -> [u8; 3] {
    let [high, low] = unit.to_be_bytes();
    [0xE0 | high >> 4, 0x80 | (high & 0xF) << 2 | low >> 6, 0x80 | low & 0x3F]
}

/// The UTF-16 code units of bytes that [`from_utf16`] made, or of a part of them between characters.
pub(crate) fn to_utf16(bytes: &[u8]) -> Vec<u16> {
    let mut units = Vec::with_capacity(bytes.len());
    for chunk in split(bytes) {
        match chunk {
            Ok(text) => units.extend(text.encode_utf16()),
            Err(unit) => units.push(unit),
        }
    }
    units
}

/// The texts and the lone surrogates of such bytes.
pub(crate) fn split(bytes: &[u8]) -> impl Iterator<Item = Result<&str, u16>> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let (text, after) = match std::str::from_utf8(rest) {
            Ok("") => return None,
            Ok(text) => (text, &[][..]),
            Err(error) => {
                let (valid, after) = rest.split_at(error.valid_up_to());
                (std::str::from_utf8(valid).unwrap_or_default(), after)
            }
        };
        if !text.is_empty() {
            rest = after;
            return Some(Ok(text));
        }
        let (&[first, second, third], after) = rest.split_first_chunk()?;
        rest = after;
        let bits = |byte, mask| u16::from(byte & mask);
        Some(Err(bits(first, 0xF) << 12 | bits(second, 0x3F) << 6 | bits(third, 0x3F)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_units_come_back() {
        let units: Vec<u16> =
            (0..=u16::MAX).chain([0xD83D, 0xDE00, 0xDE00, 0xD83D, 0x41]).collect();
        let bytes: Vec<u8> = units.iter().flat_map(|unit| unit.to_le_bytes()).collect();
        assert_eq!(to_utf16(&from_utf16(&bytes)), units);
        assert_eq!(surrogate(0xD83D), [0xED, 0xA0, 0xBD]);
    }
}
