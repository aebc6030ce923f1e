//! The engine's counts of polls until it calls its interrupt handler.
//!
//! In: the places of these counts, one in each context in which code runs. Out: all of them set at once.
#![expect(unsafe_code, reason = "writes counters of the engine")]

use std::{
    ptr,
    sync::atomic::{AtomicI32, Ordering},
};

/// The places; null where there is none, or where the engine's field is not known.
#[derive(Clone, Copy)]
pub(crate) struct Countdown([*mut i32; 2]);

impl Countdown {
    pub(crate) const NONE: Self = Self([ptr::null_mut(); 2]);

    /// # Safety
    /// Each place is null or aligned, and valid for as long as this is used.
    pub(crate) const unsafe fn new(places: [*mut i32; 2]) -> Self {
        Self(places)
    }

    /// Has the engine call its handler after that many polls. Any thread may ask for that: the engine counts down with
    /// plain loads and stores. It may overwrite this store in a loop of nothing but counting, where the next poll is near
    /// anyway. No processor tears an aligned word.
    pub(crate) fn set(self, polls: i32) {
        for place in self.0 {
            if !place.is_null() {
                // SAFETY: `new`'s caller vouches for it.
                unsafe { AtomicI32::from_ptr(place) }.store(polls, Ordering::Relaxed);
            }
        }
    }
}
