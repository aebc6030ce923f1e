//! The intrinsics that the functions of `Intl` need.
//!
//! In: values of a new realm. Out: plain data that the realm holds.

use crate::isolate::engine::Raw;

/// The count of services.
pub(super) const COUNT: usize = 7;

/// The intrinsics that the functions here need.
#[derive(Clone, Copy)]
pub(in crate::isolate) struct Intrinsics {
    /// The class of all objects of services.
    pub(super) class: u32,
    pub(super) prototypes: [Raw; COUNT],
    /// The key of the method that gives an iterator.
    pub(super) iterator: Raw,
    /// The prototypes of segments.
    pub(super) segments: [Raw; 2],
}

impl Intrinsics {
    /// Every value that is held.
    pub(in crate::isolate) fn all(&self) -> impl Iterator<Item = Raw> {
        self.prototypes.into_iter().chain([self.iterator]).chain(self.segments)
    }
}
