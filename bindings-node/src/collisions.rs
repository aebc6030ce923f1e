//! Hash collisions in a Map or a Set of V8.
//!
//! In: the keys of Maps and the members of Sets. Out: whether the time to build them stays in proportion to their
//! number. V8 hashes objects and most texts with a secret, but numbers and big integers without one. It hashes
//! texts of more than 16,383 units by their length alone. Some ten thousand members in one bucket take seconds to
//! insert. This module has V8's two functions (`ComputeUnseededHash`, `ComputeLongHash`) and counts the
//! comparisons that V8 would make in each bucket.

use std::collections::HashMap;

use isolane::value::{Event, Str};

/// Comparisons that each message may cost, beyond those for its members and for the bytes of its long texts.
const FREE_COMPARISONS: u64 = 500_000;
const COMPARISONS_PER_MEMBER: u64 = 32;

/// Bytes that V8 compares in the time of one comparison.
const BYTES_PER_COMPARISON: usize = 64;

/// V8 makes a text flat before it compares it, both in one step of up to 1.4 ms a megabyte.
const MOST_COMPARED_BYTES: usize = 32 << 20;

/// V8 hashes longer texts by their length alone.
const MOST_HASHED_UNITS: usize = 16_383;

/// The comparisons of one message.
#[derive(Debug, Default)]
pub(crate) struct Collisions<'a> {
    /// The collections that are open, innermost last.
    open: Vec<Table<'a>>,
    comparisons: u64,
    allowed: u64,
}

/// The members of a collection so far.
#[derive(Debug)]
struct Table<'a> {
    /// The count of numbers in each bucket.
    buckets: Vec<u32>,
    /// Long texts, by their length.
    texts: HashMap<usize, Vec<&'a [u8]>>,
}

impl<'a> Collisions<'a> {
    /// Opens a collection of that many entries.
    pub(crate) fn begin(&mut self, entries: u32) {
        // V8's table has a power of two of entries, and half as many buckets.
        let buckets = (entries as usize).next_power_of_two() / 2;
        self.open.push(Table { buckets: vec![0; buckets.max(1)], texts: HashMap::new() });
    }

    /// Closes the innermost collection.
    pub(crate) fn end(&mut self) {
        self.open.pop();
    }

    /// Counts a key or a member of the innermost collection; false if the message costs too many comparisons.
    pub(crate) fn take(&mut self, event: &Event<'a>) -> bool {
        self.allowed += COMPARISONS_PER_MEMBER;
        let Some(table) = self.open.last_mut() else { return true };
        self.comparisons += match *event {
            Event::Int(value) => table.number(hash_int(value), 1),
            Event::Double(value) => table.number(hash_double(value), 1),
            Event::BigInt { magnitude, .. } => {
                let each = 1 + magnitude.len() / BYTES_PER_COMPARISON;
                table.number(hash_bigint(magnitude), each)
            }
            Event::String(text) => match LongText::of(text) {
                Some(text) => {
                    self.allowed += (text.bytes.len() / BYTES_PER_COMPARISON) as u64;
                    let left = (FREE_COMPARISONS + self.allowed).saturating_sub(self.comparisons);
                    let Some(comparisons) = table.text(text, left) else { return false };
                    comparisons
                }
                None => 0,
            },
            _ => 0,
        };
        self.comparisons <= FREE_COMPARISONS + self.allowed
    }
}

impl<'a> Table<'a> {
    /// The comparisons for a number; one with each other number in its bucket counts as `each`.
    fn number(&mut self, hash: u32, each: usize) -> u64 {
        let bucket = hash as usize & (self.buckets.len() - 1);
        let Some(count) = self.buckets.get_mut(bucket) else { return 0 };
        let before = u64::from(*count);
        *count += 1;
        before * each as u64
    }

    /// The comparisons for a long text; the count stops above `most`. None if one of them takes too long.
    fn text(&mut self, text: LongText<'a>, most: u64) -> Option<u64> {
        let others = self.texts.entry(text.units).or_default();
        if !others.is_empty() && text.is_too_long() {
            return None;
        }
        let mut comparisons = 0;
        for other in others.iter() {
            let same =
                text.bytes.iter().zip(*other).take_while(|(byte, other)| byte == other).count();
            comparisons += 1 + (same / BYTES_PER_COMPARISON) as u64;
            if comparisons > most {
                break;
            }
        }
        others.push(text.bytes);
        Some(comparisons)
    }
}

/// A text that V8 hashes by its length alone.
#[derive(Clone, Copy)]
struct LongText<'a> {
    units: usize,
    bytes: &'a [u8],
}

impl<'a> LongText<'a> {
    fn of(text: Str<'a>) -> Option<Self> {
        let (units, bytes) = match text {
            Str::Utf8(text) if text.len() <= MOST_HASHED_UNITS => return None,
            Str::Utf8(text) => (text.chars().map(char::len_utf16).sum(), text.as_bytes()),
            Str::Utf16(bytes) => (bytes.len() / 2, bytes),
        };
        (units > MOST_HASHED_UNITS).then_some(Self { units, bytes })
    }

    /// Whether one comparison takes too long. V8 may store any text but ASCII in two bytes for each unit.
    fn is_too_long(self) -> bool {
        let is_ascii = self.units == self.bytes.len();
        let bytes = if is_ascii { self.units } else { 2 * self.units };
        bytes > MOST_COMPARED_BYTES
    }
}

/// The hash of a number that is a 32-bit integer.
fn hash_int(value: i32) -> u32 {
    let mut hash = value.cast_unsigned();
    hash = (!hash).wrapping_add(hash << 15);
    hash ^= hash >> 12;
    hash = hash.wrapping_add(hash << 2);
    hash ^= hash >> 4;
    hash = hash.wrapping_mul(2057);
    hash ^ (hash >> 16)
}

/// The hash of any other number.
fn hash_double(value: f64) -> u32 {
    if value == 0.0 { hash_int(0) } else { hash_long(value.to_bits()) }
}

/// The hash of a big integer: only its lowest 64 bits count.
fn hash_bigint(magnitude: &[u8]) -> u32 {
    let mut digit = [0; 8];
    for (to, from) in digit.iter_mut().zip(magnitude) {
        *to = *from;
    }
    hash_long(u64::from_le_bytes(digit))
}

#[expect(clippy::cast_possible_truncation, reason = "the low bits choose the bucket")]
fn hash_long(key: u64) -> u32 {
    let mut hash = (!key).wrapping_add(key << 18);
    hash ^= hash >> 31;
    hash = hash.wrapping_mul(21);
    hash ^= hash >> 11;
    hash = hash.wrapping_add(hash << 6);
    (hash ^ (hash >> 22)) as u32
}
