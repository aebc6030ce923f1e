//! Kinds of nodes in a message that some host may be unable to hold.
//!
//! In: the nodes of a message, as they are written or checked. Out: a set of kinds, which a host compares with those
//! that it wants to validate. Most messages have none of them, and no host reads those twice.

use std::ops::{BitOr, BitOrAssign};

/// A set of kinds of nodes that a host may want to refuse.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kinds(u8);

impl Kinds {
    /// None of them.
    pub const NONE: Self = Self(0);
    /// Missing elements of arrays.
    pub const HOLES: Self = Self(1);
    /// Maps and Sets of any size.
    pub const COLLECTIONS: Self = Self(1 << 1);
    /// Maps with numbers among their keys and Sets with numbers among their members, if they have more than
    /// [`LARGE_COLLECTION`] entries; and any beside texts of more than 16,383 units.
    pub const LARGE_COLLECTIONS: Self = Self(1 << 2);
    /// Dates.
    pub const DATES: Self = Self(1 << 3);
    /// Regular expressions.
    pub const REGEXPS: Self = Self(1 << 4);
    /// Bytes that several nodes share.
    pub const SHARED_BYTES: Self = Self(1 << 5);
    /// A `Float16Array`.
    pub const HALF_FLOATS: Self = Self(1 << 6);
    /// All of them.
    pub const ALL: Self = Self(u8::MAX >> 1);

    /// Whether there is any kind that is in both sets.
    #[must_use]
    pub fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Both sets.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) fn bits(self) -> u8 {
        self.0
    }

    pub(crate) fn from_bits(bits: u8) -> Self {
        Self(bits & Self::ALL.0)
    }

    /// The kinds of a message, given whether it may have a text that a host hashes by its length.
    pub(super) fn beside_long_text(self, long_text: bool) -> Self {
        let hashed = long_text && self.intersects(Self::COLLECTIONS);
        if hashed { self.with(Self::LARGE_COLLECTIONS) } else { self }
    }

    /// The kinds of a Map or a Set, given the number of its entries and whether its keys or members include numbers.
    pub(super) fn of_collection(entries: u32, numbers: bool) -> Self {
        let large = numbers && entries > LARGE_COLLECTION;
        Self::COLLECTIONS | if large { Self::LARGE_COLLECTIONS } else { Self::NONE }
    }
}

/// The most entries of a Map or a Set that is not large.
pub const LARGE_COLLECTION: u32 = 256;

impl BitOr for Kinds {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        self.with(other)
    }
}

impl BitOrAssign for Kinds {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}
