//! The accounting of a heap: bytes held, the limit, and the consequence of exceeding it.
//!
//! In: sizes that the engine requests, blocks that were handed out. Out: granted or not. Only the few lines that
//! request a block from [`Arena`] or [`System`] depend on the source of blocks.
#![expect(unsafe_code, reason = "hands out raw memory")]

use super::{arena::Arena, countdown::Countdown, escape, system::System, termination::Termination};
use std::cell::{Cell, RefCell};
use std::ffi::c_void;
use std::ptr::{self, NonNull};
use std::sync::Arc;

/// The counters of a heap. They lie outside of the blocks, so that they stay readable after a restore of the blocks.
pub(in crate::isolate) struct Accounting {
    pub(in crate::isolate) blocks: Blocks,
    pub(in crate::isolate) limit_bytes: Cell<usize>,
    /// Bytes that the engine holds.
    pub(in crate::isolate) used_bytes: Cell<usize>,
    /// Bytes that the run makes others hold.
    pub(in crate::isolate) charged_bytes: Cell<usize>,
    pub(in crate::isolate) peak_bytes: Cell<usize>,
    pub(in crate::isolate) exhausted: Cell<bool>,
    /// Whether a refused request leaves the engine. Otherwise the request gets null, which the engine does not survive
    /// everywhere.
    pub(in crate::isolate) leaves: Cell<bool>,
    /// Whether a request to end is not heeded yet.
    pub(in crate::isolate) defers: Cell<bool>,
    /// Bytes that a run which must end may still have, in small blocks.
    pub(in crate::isolate) lent_bytes: Cell<usize>,
    /// Raised by other threads. Shared with the handle of the run, so that a handle of an earlier run in the same heap
    /// ends nothing.
    pub(in crate::isolate) termination: RefCell<Option<Arc<Termination>>>,
    /// The engine's counts of polls until it calls its interrupt handler.
    pub(in crate::isolate) countdown: Cell<Countdown>,
}

/// Bytes that a run which must end may still have.
pub(in crate::isolate) const LENT_BYTES: usize = 64 << 10;

/// The largest of the blocks for it.
const LARGEST_LENT_BYTES: usize = 16 << 10;

/// The source of blocks.
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
            || self.termination.borrow().as_ref().is_some_and(|termination| {
                (termination.is_raised() && !self.defers.get()) || termination.is_exhausted()
            })
    }

    pub(in crate::isolate) fn part_with_termination(&self) {
        if let Some(termination) = self.termination.take() {
            termination.detach();
        }
    }

    pub(in crate::isolate) fn raise_peak(&self) {
        // Memory that is lent does not count.
        let total_bytes = self.total_bytes().min(self.limit_bytes.get());
        self.peak_bytes.set(self.peak_bytes.get().max(total_bytes));
    }

    /// Records that the limit is hit. The first reason for the run's end stays its reason.
    pub(in crate::isolate) fn hit(&self) {
        if !self.must_end() {
            self.exhausted.set(true);
            if let Some(termination) = &*self.termination.borrow() {
                termination.exhaust();
            }
        }
        self.hurry();
    }

    /// Makes the engine call its interrupt handler at the next call or backward jump.
    pub(in crate::isolate) fn hurry(&self) {
        self.countdown.get().set(1);
    }

    /// Whether the engine may have `bytes` more. Once the run has to end, that is false after some small blocks: this
    /// ends a builtin that makes something of many small pieces and never polls.
    pub(in crate::isolate) fn grants(&self, bytes: usize) -> bool {
        #[cfg(test)]
        if crate::isolate::faults::refuses() {
            self.hit();
            return false;
        }
        if self.total_bytes().saturating_add(bytes) > self.limit_bytes.get() {
            self.hit();
        }
        !self.must_end() || self.lends(bytes)
    }

    /// Lends a run that must end a small block: then it comes to its next poll, which is one step away, and its place can be
    /// noted there.
    fn lends(&self, bytes: usize) -> bool {
        let left = self.lent_bytes.get();
        if bytes > LARGEST_LENT_BYTES || bytes > left || !self.leaves.get() {
            return false;
        }
        self.lent_bytes.set(left - bytes);
        true
    }

    /// A block for the engine; without one, leaves the engine.
    pub(in crate::isolate) fn or_leave(&self, block: *mut c_void) -> *mut c_void {
        if block.is_null() && self.leaves.get() {
            escape::leave()
        }
        block
    }

    /// Counts a block that was handed out. A null block means that the limit is hit: the range is full or the process
    /// has no more memory.
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

    /// Bytes that a request for that many bytes will cost.
    pub(in crate::isolate) fn next_cost_bytes(&self, bytes: usize) -> usize {
        match self {
            Self::Arena(arena) => arena.next_cost_bytes(bytes),
            Self::System(_) => System::next_cost_bytes(bytes),
        }
    }
}
