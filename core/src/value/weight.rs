//! What a value weighs for whoever reads it.
//!
//! A message is small: an empty object takes one byte of it, and some 70 as an object of Node.js or
//! Python. A run is charged for what it makes its host hold, so each node that is written counts what
//! it takes beyond its bytes in the message. Measured on Node.js 20 and Python 3.11, the larger of the
//! two where they are near each other; numbers are cheap because programs have many of them, at about
//! half of what Python takes. The place of a value in what holds it is part of its weight.

/// A value that is no object of its own, or one that the message holds already.
pub(super) const SCALAR: usize = 8;
pub(super) const NUMBER: usize = 16;
pub(super) const BIGINT: usize = 32;
pub(super) const STRING: usize = 32;
pub(super) const OBJECT: usize = 72;
pub(super) const PROPERTY: usize = 24;
/// A key that stands in the message for the first time: its text, and a shape of object.
pub(super) const NEW_KEY: usize = 120;
pub(super) const EMPTY_ARRAY: usize = 56;
/// An array makes room for more than it is given.
pub(super) const ARRAY: usize = 120;
pub(super) const COLLECTION: usize = 192;
/// An entry of a Map or a member of a Set, beyond the key and the value.
pub(super) const ENTRY: usize = 24;
pub(super) const DATE: usize = 96;
pub(super) const REGEXP: usize = 136;
pub(super) const ERROR: usize = 240;
pub(super) const BUFFER: usize = 160;

/// What a text takes beyond its bytes in UTF-8: its widest character decides how many bytes each has.
pub(super) fn of_text(text: &str) -> usize {
    const FIRST_BEYOND_LATIN_1: u8 = 0xC4;
    const FIRST_OF_FOUR_BYTES: u8 = 0xF0;
    if text.is_ascii() {
        return 0;
    }
    let widest = text.bytes().max().unwrap_or(0);
    if widest < FIRST_BEYOND_LATIN_1 {
        return 0;
    }
    let each = if widest < FIRST_OF_FOUR_BYTES { 2 } else { 4 };
    (each * text.chars().count()).saturating_sub(text.len())
}

#[cfg(test)]
mod tests {
    use super::of_text;

    #[test]
    fn a_text_takes_as_many_bytes_as_its_widest_character_asks_for() {
        assert_eq!((of_text(""), of_text("abc"), of_text("é"), of_text("aé")), (0, 0, 0, 0));
        assert_eq!((of_text("aaa€"), of_text("€€")), (2, 0));
        assert_eq!((of_text("aaa😀"), of_text("😀")), (9, 0));
    }
}
