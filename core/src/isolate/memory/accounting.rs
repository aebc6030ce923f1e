//! The books of a heap: what is held, what may be, and what happens when it is too much.
//!
//! In: what the engine wants and what was handed out. Out: granted or not. Nothing here depends on
//! where blocks come from but the few lines that ask [`Arena`] or [`System`] for one.
#![expect(unsafe_code, reason = "hands out raw memory, and writes a counter of the engine")]

use super::{arena::Arena, escape, system::System, termination::Termination};
use std::cell::{Cell, RefCell};
use std::ffi::c_void;
use std::ptr::{self, NonNull};
use std::sync::{
    Arc,
    atomic::{AtomicI32, Ordering},
};

/// What a heap knows. It stands outside of the blocks, so that it can still be read when they have
/// been restored.
pub(in crate::isolate) struct Accounting {
    pub(in crate::isolate) blocks: Blocks,
    pub(in crate::isolate) limit_bytes: Cell<usize>,
    /// What the engine holds.
    pub(in crate::isolate) used_bytes: Cell<usize>,
    /// What the run makes others hold.
    pub(in crate::isolate) charged_bytes: Cell<usize>,
    pub(in crate::isolate) peak_bytes: Cell<usize>,
    pub(in crate::isolate) exhausted: Cell<bool>,
    /// Whether a request that is refused leaves the engine; else it gets nothing, which the engine
    /// does not survive everywhere.
    pub(in crate::isolate) leaves: Cell<bool>,
    /// Raised by other threads. Shared with the handle of the run, so that a handle of an earlier
    /// run in the same heap ends nothing.
    pub(in crate::isolate) termination: RefCell<Option<Arc<Termination>>>,
    /// The engine's count of polls until it asks its interrupt handler, or null.
    pub(in crate::isolate) countdown: Cell<*mut i32>,
}

/// Where blocks come from.
pub(in crate::isolate) enum Blocks {
    Arena(Arena),
    System(System),
}

impl Accounting {
    pub(in crate::isolate) fn total_bytes(&self) -> usize {
        let termination = self.termination.borrow();
        let in_flight = termination.as_ref().map_or(0, |termination| termination.in_flight.bytes());
        self.used_bytes.get() + self.charged_bytes.get() + in_flight
    }

    pub(in crate::isolate) fn must_end(&self) -> bool {
        self.exhausted.get()
            || self
                .termination
                .borrow()
                .as_ref()
                .is_some_and(|termination| termination.is_raised() || termination.is_exhausted())
    }

    pub(in crate::isolate) fn part_with_ending(&self) {
        if let Some(termination) = self.termination.take() {
            termination.detach();
        }
    }

    pub(in crate::isolate) fn raise_peak(&self) {
        self.peak_bytes.set(self.peak_bytes.get().max(self.total_bytes()));
    }

    /// The limit is hit. What ended the run first stays its reason.
    pub(in crate::isolate) fn hit(&self) {
        if !self.must_end() {
            self.exhausted.set(true);
            if let Some(termination) = &*self.termination.borrow() {
                termination.exhaust();
            }
        }
        self.hurry();
    }

    /// Lets the engine ask its interrupt handler at the next call or backward jump.
    pub(in crate::isolate) fn hurry(&self) {
        let countdown = self.countdown.get();
        if !countdown.is_null() {
            // SAFETY: `set_countdown`'s caller vouches for it. Whoever ends the run writes it from
            // elsewhere.
            unsafe { AtomicI32::from_ptr(countdown) }.store(1, Ordering::Relaxed);
        }
    }

    /// Whether the engine may have `bytes` more. None once the run has to end: a builtin that makes
    /// something of many small pieces, and never polls, is ended by the next of them.
    pub(in crate::isolate) fn grants(&self, bytes: usize) -> bool {
        #[cfg(test)]
        if crate::isolate::faults::refuses() {
            self.hit();
            return false;
        }
        if self.total_bytes().saturating_add(bytes) > self.limit_bytes.get() {
            self.hit();
        }
        !self.must_end()
    }

    /// A block for the engine, or the way out of it.
    pub(in crate::isolate) fn or_leave(&self, block: *mut c_void) -> *mut c_void {
        if block.is_null() && self.leaves.get() {
            escape::leave()
        }
        block
    }

    /// Counts a block that was handed out; none means that the limit is hit, in other words that
    /// the range is full or the process has no more.
    pub(in crate::isolate) fn take(&self, block: *mut u8) -> *mut c_void {
        let Some(taken) = NonNull::new(block) else {
            self.hit();
            return ptr::null_mut();
        };
        self.used_bytes.set(self.used_bytes.get() + self.blocks.cost_bytes(taken));
        self.raise_peak();
        block.cast()
    }
}

impl Blocks {
    pub(in crate::isolate) fn allocate(&self, bytes: usize) -> *mut u8 {
        match self {
            Self::Arena(arena) => arena.allocate(bytes),
            Self::System(system) => system.allocate(bytes),
        }
    }

    pub(in crate::isolate) fn allocate_zeroed(&self, bytes: usize) -> *mut u8 {
        match self {
            Self::Arena(arena) => arena.allocate_zeroed(bytes),
            Self::System(system) => system.allocate_zeroed(bytes),
        }
    }

    pub(in crate::isolate) fn resize(&self, block: NonNull<u8>, bytes: usize) -> *mut u8 {
        // SAFETY: the engine names blocks that it got from here and has not freed.
        unsafe {
            match self {
                Self::Arena(arena) => arena.resize(block, bytes),
                Self::System(system) => system.resize(block, bytes),
            }
        }
    }

    pub(in crate::isolate) fn free(&self, block: NonNull<u8>) {
        // SAFETY: the engine names blocks that it got from here and has not freed.
        unsafe {
            match self {
                Self::Arena(arena) => arena.free(block),
                Self::System(system) => system.free(block),
            }
        }
    }

    pub(in crate::isolate) fn cost_bytes(&self, block: NonNull<u8>) -> usize {
        // SAFETY: asked for blocks in use only.
        unsafe {
            match self {
                Self::Arena(_) => Arena::cost_bytes(block),
                Self::System(_) => System::cost_bytes(block),
            }
        }
    }
}
