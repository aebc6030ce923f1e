//! What a value weighs for whoever reads it.
//!
//! A message is small: an empty object takes one byte of it, and some 70 as an object of Node.js or
//! Python. A run is charged for what it makes its host hold, so each node that is written counts what
//! it takes beyond its bytes in the message. Measured on Node.js 20 and Python 3.11, the larger of the
//! two where they are near each other; numbers are cheap because programs have many of them, at about
//! half of what Python takes. The place of a value in what holds it is part of its weight.

use super::{Event, Str};

/// A value that is no object of its own, or one that the message holds already.
const SCALAR: usize = 8;
const NUMBER: usize = 16;
const BIGINT: usize = 32;
const STRING: usize = 32;
const OBJECT: usize = 72;
pub(super) const PROPERTY: usize = 24;
/// A key that stands in the message for the first time: its text, and a shape of object.
const NEW_KEY: usize = 120;
const EMPTY_ARRAY: usize = 56;
/// An array makes room for more than it is given.
const ARRAY: usize = 120;
const COLLECTION: usize = 192;
/// An entry of a Map or a member of a Set, beyond the key and the value.
pub(super) const ENTRY: usize = 24;
const DATE: usize = 96;
const REGEXP: usize = 136;
const ERROR: usize = 240;
const BUFFER: usize = 160;

/// What the host's side of an entry takes that stands until it is settled or let go of, measured on
/// Node.js: a pending promise with what waits for it, and a function or a promise of the sandbox with what
/// watches over it.
pub(crate) const HOST_PROMISE_BYTES: usize = 512;
pub(crate) const EXPORTED_BYTES: usize = 768;

/// What a node weighs, without what is nested in it.
#[inline]
pub(super) fn of(event: &Event<'_>) -> usize {
    match *event {
        Event::Undefined
        | Event::Null
        | Event::Bool(_)
        | Event::Hole
        | Event::Ref(_)
        | Event::HostFunction(_)
        | Event::SandboxFunction(_)
        | Event::HostPromise(_)
        | Event::SandboxPromise(_) => SCALAR,
        Event::Int(_) | Event::Double(_) => NUMBER,
        Event::BigInt { .. } => BIGINT,
        Event::String(text) => STRING + of_str(text),
        Event::Object => OBJECT,
        Event::Array(0) => EMPTY_ARRAY,
        Event::Array(_) | Event::SparseArray(_) => ARRAY,
        Event::Map(count) | Event::Set(count) => COLLECTION + ENTRY * count as usize,
        Event::Date(_) => DATE,
        Event::RegExp => REGEXP,
        Event::Error(_) => ERROR,
        Event::Buffer(_) | Event::View { .. } => BUFFER,
    }
}

/// What a key weighs where it stands in the message for the first time.
pub(super) fn of_new_key(text: Str<'_>) -> usize {
    PROPERTY + NEW_KEY + of_str(text)
}

fn of_str(text: Str<'_>) -> usize {
    match text {
        Str::Utf8(text) => of_text(text),
        // Read as text it may have four bytes for each unit, which has two here.
        Str::Utf16(bytes) => bytes.len(),
    }
}

/// What a text takes beyond its bytes in UTF-8: its widest character decides how many bytes each has.
fn of_text(text: &str) -> usize {
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
