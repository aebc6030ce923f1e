//! Weights of values for their readers.
//!
//! A message is small: an empty object takes one byte of it, and some 70 as an object of Node.js or Python. A run is
//! charged for everything that it makes its host hold, so each written node counts the bytes that it takes beyond the
//! message. The figures are the larger ones of Node.js 20 and Python 3.11, as `tests/meter` measures them; its table
//! shows how near they are for each shape. The weight of a value includes its place in its container. The weight of a
//! key depends on its object: see `objects.rs`.

use super::{Event, Str};

/// A value that is no object of its own, or one that the message holds already.
const SCALAR: usize = 8;
const NUMBER: usize = 20;
const BIGINT: usize = 32;
const STRING: usize = 40;
/// Bytes that a text with other characters than ASCII takes beyond an ASCII text.
const WIDE: usize = 24;
const OBJECT: usize = 72;
const EMPTY_ARRAY: usize = 56;
/// An array makes room for more than it is given.
const ARRAY: usize = 120;
/// An array with holes is a table of its elements, or room for a few.
const SPARSE_ARRAY: usize = 320;
const COLLECTION: usize = 192;
/// An entry of a Map, beyond the key and the value.
const MAP_ENTRY: usize = 40;
/// A member of a Set, beyond the value: a set of Python has room for four times as many when it has grown.
const SET_MEMBER: usize = 72;
/// An element of an array with holes, beyond the value.
pub(super) const SPARSE_ELEMENT: usize = 72;
const DATE: usize = 96;
const REGEXP: usize = 136;
const ERROR: usize = 320;
const BUFFER: usize = 200;
/// Bytes that a view takes beyond its buffer.
const VIEW: usize = 96;

/// Bytes that the host's side of an entry takes until it is settled or dropped, measured on Node.js: a pending promise
/// with its reactions, and a function or a promise of the sandbox with its watcher.
pub(crate) const HOST_PROMISE_BYTES: usize = 512;
pub(crate) const EXPORTED_BYTES: usize = 768;

/// The weight of a node, without its nested nodes.
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
        Event::Array(_) => ARRAY,
        Event::SparseArray(_) => SPARSE_ARRAY,
        Event::Map(count) => COLLECTION + MAP_ENTRY * count as usize,
        Event::Set(count) => COLLECTION + SET_MEMBER * count as usize,
        Event::Date(_) => DATE,
        Event::RegExp => REGEXP,
        Event::Error(_) => ERROR,
        Event::Buffer(_) => BUFFER,
        Event::View { .. } => BUFFER + VIEW,
    }
}

/// Bytes that a text takes beyond its bytes in the message, without its header.
pub(super) fn of_str(text: Str<'_>) -> usize {
    match text {
        Str::Utf8(text) => of_text(text),
        // Read as text it may have four bytes for each unit, which has two here.
        Str::Utf16(bytes) => WIDE + bytes.len(),
    }
}

/// Bytes that a text takes beyond its bytes in UTF-8: its widest character decides how many bytes each has.
fn of_text(text: &str) -> usize {
    const FIRST_BEYOND_LATIN_1: u8 = 0xC4;
    const FIRST_OF_FOUR_BYTES: u8 = 0xF0;
    if text.is_ascii() {
        return 0;
    }
    let widest = text.bytes().max().unwrap_or(0);
    if widest < FIRST_BEYOND_LATIN_1 {
        return WIDE;
    }
    let each = if widest < FIRST_OF_FOUR_BYTES { 2 } else { 4 };
    WIDE + (each * text.chars().count()).saturating_sub(text.len())
}

#[cfg(test)]
mod tests {
    use super::{WIDE, of_text};

    #[test]
    fn a_text_takes_as_many_bytes_as_its_widest_character_asks_for() {
        assert_eq!((of_text(""), of_text("abc")), (0, 0));
        assert_eq!((of_text("é"), of_text("aé")), (WIDE, WIDE));
        assert_eq!((of_text("aaa€"), of_text("€€")), (WIDE + 2, WIDE));
        assert_eq!((of_text("aaa😀"), of_text("😀")), (WIDE + 9, WIDE));
    }
}
