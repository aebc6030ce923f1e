//! Numbers that were chosen to collide in a Map or a Set of V8.
//!
//! In: the keys of large Maps and the members of large Sets. Out: whether building them stays in proportion to
//! how many they are. V8 hashes texts and objects with secrets, but numbers and big integers without one:
//! some ten thousand of them in one bucket take seconds to insert. This knows its two functions
//! (`ComputeUnseededHash`, `ComputeLongHash`) and counts, bucket by bucket, the comparisons that it would make.

use isolane::value::Event;

/// Comparisons that a message may cost, beyond some for each member.
const FREE_COMPARISONS: u64 = 500_000;
const COMPARISONS_PER_MEMBER: u64 = 32;

/// The comparisons that one message costs.
#[derive(Debug, Default)]
pub(crate) struct Collisions {
    /// The collections that are open, innermost last: how many members each bucket has.
    open: Vec<Vec<u32>>,
    comparisons: u64,
    members: u64,
}

impl Collisions {
    /// A collection of so many entries begins.
    pub(crate) fn begin(&mut self, entries: u32) {
        // A table has room for a power of two of entries, and half as many buckets.
        let buckets = (entries as usize).next_power_of_two() / 2;
        self.open.push(vec![0; buckets.max(1)]);
    }

    /// The innermost collection ends.
    pub(crate) fn end(&mut self) {
        self.open.pop();
    }

    /// Counts a key or a member of the innermost collection; false if it is one too many in its bucket.
    pub(crate) fn take(&mut self, event: &Event<'_>) -> bool {
        self.members += 1;
        let (hash, digits) = match *event {
            Event::Int(value) => (hash_int(value), 1),
            Event::Double(value) => (hash_double(value), 1),
            Event::BigInt { magnitude, .. } => (hash_bigint(magnitude), 1 + magnitude.len() / 64),
            _ => return true,
        };
        let Some(buckets) = self.open.last_mut() else { return true };
        let bucket = hash as usize & (buckets.len() - 1);
        let Some(count) = buckets.get_mut(bucket) else { return true };
        self.comparisons += u64::from(*count) * digits as u64;
        *count += 1;
        self.comparisons <= FREE_COMPARISONS + COMPARISONS_PER_MEMBER * self.members
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
