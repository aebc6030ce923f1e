//! An image of a pristine heap, and the restore from it.
//!
//! In: a range with a heap in which a realm was built, and later the remains of a run. Out: the range as it was, byte
//! for byte. Keeps "each run starts from pristine intrinsics" without a teardown: the engine keeps all its knowledge of
//! a runtime in the range, so a copy of the image to the same addresses undoes everything since.
//!
//! The image is read-only and belongs to its address. It holds the range from its start to the last byte ever written,
//! and the few bytes at the very end, the mark of the last block.
#![expect(unsafe_code, reason = "copies raw memory")]

use super::{
    arena::TAIL_BYTES,
    heap::{Heap, Mark, ceiling_bytes},
    range::{LARGE_PAGES_FROM_BYTES, PAGE_BYTES, Range},
};
use crate::testing::step_timer::{Step, lap};
use std::cell::Cell;
use std::hash::Hasher;
use std::slice;

pub(crate) type Page = [u8; PAGE_BYTES];

static ZERO_PAGE: Page = [0; PAGE_BYTES];

/// Addresses, not memory: several times the most that a run may use, because an arena spreads.
const RANGE_BYTES: usize = 2 << 30;
/// The largest limit for which a slot has the addresses; runs with a larger one get a plain instance.
pub(crate) const LARGEST_LIMIT_BYTES: usize = RANGE_BYTES / 4;
/// Bytes above the image that are cleared by hand after a run. That is quicker than mapping them anew (2 µs a page on
/// the machine this was measured on), and a parked slot keeps them.
pub(crate) const CLEARED_BY_HAND_BYTES: usize = 1 << 20;
/// How far above the ceiling for new blocks a block may grow, as a share of the limit: once for all of it, and once
/// more while it is moved.
const GROWTH: usize = 2;
/// Bytes at either end in which pages stay small, because a parked slot holds memory there.
const SMALL_PAGES_BYTES: usize = 2 << 20;

/// A range and the image of its pristine content. Owns both; the heap over it must not be used after this is dropped.
pub(crate) struct Slot {
    range: Range,
    image: Range,
    image_bytes: usize,
    tail: [u8; TAIL_BYTES],
    mark: Mark,
    /// How far up the last run wrote, for the check.
    last_high_bytes: Cell<usize>,
    large_pages: Cell<bool>,
}

impl Slot {
    /// Addresses for one slot; `None` where they cannot be had.
    pub(crate) fn reserve() -> Option<Range> {
        let range = Range::reserve(RANGE_BYTES)?;
        range.prefer_small_pages();
        Some(range)
    }

    /// Takes the image. `heap` is the heap in `range`, and no code of its runtime is on any stack.
    pub(crate) fn take_image(range: Range, heap: &Heap) -> Option<Self> {
        let mark = heap.mark();
        let image_bytes = mark.high_bytes();
        let image = Range::reserve(image_bytes.next_multiple_of(PAGE_BYTES))?;
        let mut tail = [0; TAIL_BYTES];
        // SAFETY: both ranges are at least that long, and the engine is not at work.
        unsafe {
            image.start().copy_from_nonoverlapping(range.start(), image_bytes);
            tail.as_mut_ptr().copy_from_nonoverlapping(tail_of(&range), TAIL_BYTES);
        }
        image.seal();
        Some(Self {
            range,
            image,
            image_bytes,
            tail,
            mark,
            last_high_bytes: Cell::new(image_bytes),
            large_pages: Cell::new(false),
        })
    }

    /// Sets how much the next run may hold. Costs a system call where that changes the size of pages.
    pub(crate) fn expect(&self, limit_bytes: usize) {
        let large = limit_bytes >= LARGE_PAGES_FROM_BYTES;
        if self.large_pages.replace(large) != large {
            self.range.set_large_pages(SMALL_PAGES_BYTES, large);
        }
    }

    /// Gives back the addresses that no run under this limit, or a lower one, can reach, and makes large blocks begin
    /// where pages are large. For good: it is for a process that has one run. Returns the number of bytes.
    pub(crate) fn trim(&self, heap: &Heap, limit_bytes: usize) -> usize {
        if limit_bytes >= LARGE_PAGES_FROM_BYTES {
            heap.start_large_at(SMALL_PAGES_BYTES);
        }
        let reach = ceiling_bytes(limit_bytes).saturating_add(limit_bytes.saturating_mul(GROWTH));
        let reach = reach.max(self.image_bytes).min(self.range.bytes());
        let end = self.range.bytes() - PAGE_BYTES;
        // SAFETY: no block will be there, and the tail, in the last page, stays.
        unsafe { self.range.cut(reach.next_multiple_of(PAGE_BYTES), end) }
    }

    /// Undoes everything since the image was taken, in the accounting of `heap` too.
    ///
    /// # Safety
    /// `heap` is the heap in this slot. No code of its runtime is on any stack, and no value that was made in it since
    /// is used again.
    pub(crate) unsafe fn restore(&self, heap: &Heap) {
        // First, so that no other thread writes to the memory that is about to be pristine.
        heap.disarm();
        let high_bytes = heap.mark().high_bytes();
        let start = self.range.start();
        lap(Step::Restored);
        // SAFETY: all of it is within the range, and the caller vouches that nobody reads it.
        unsafe {
            start.copy_from_nonoverlapping(self.image.start(), self.image_bytes);
            lap(Step::Copied);
            let by_hand = (self.image_bytes + CLEARED_BY_HAND_BYTES).next_multiple_of(PAGE_BYTES);
            let cleared = high_bytes.min(by_hand).saturating_sub(self.image_bytes);
            start.add(self.image_bytes).write_bytes(0, cleared);
            if high_bytes > by_hand {
                let end = high_bytes.next_multiple_of(PAGE_BYTES);
                self.range.give_back(by_hand, end - by_hand);
            }
            tail_of(&self.range).copy_from_nonoverlapping(self.tail.as_ptr(), TAIL_BYTES);
            heap.rewind(self.mark);
        }
        self.last_high_bytes.set(high_bytes);
    }

    /// The address of the range, and the length and a hash of the image. A slot of another process that has the same is
    /// a copy of this one, in which all that the image refers to has the same address too.
    pub(crate) fn identity(&self) -> (usize, usize, u64) {
        let mut hasher = rustc_hash::FxHasher::default();
        // SAFETY: within the image, which nobody writes.
        hasher.write(unsafe { slice::from_raw_parts(self.image.start(), self.image_bytes) });
        hasher.write(&self.tail);
        (self.range.start().addr(), self.image_bytes, hasher.finish())
    }

    pub(crate) fn range(&self) -> &Range {
        &self.range
    }

    /// The page with that number, as it is now.
    pub(crate) fn page(&self, number: usize) -> *mut Page {
        debug_assert!((number + 1) * PAGE_BYTES <= self.range.bytes());
        // SAFETY: within the range.
        unsafe { self.range.start().add(number * PAGE_BYTES).cast() }
    }

    /// The page with that number, as the image has it.
    pub(crate) fn pristine(&self, number: usize) -> &Page {
        if number >= self.image_pages() {
            return &ZERO_PAGE;
        }
        // SAFETY: within the image, which nobody writes; its last page is zero behind the image's end.
        unsafe { &*self.image.start().add(number * PAGE_BYTES).cast::<Page>() }
    }

    /// The number of pages that the image has.
    pub(crate) fn image_pages(&self) -> usize {
        self.image_bytes.div_ceil(PAGE_BYTES)
    }

    /// The mark of the last block.
    pub(crate) fn tail(&self) -> [u8; TAIL_BYTES] {
        // SAFETY: within the range.
        unsafe { tail_of(&self.range).cast::<[u8; TAIL_BYTES]>().read() }
    }

    /// Writes the mark of the last block, and notes how far up the range was written, for the check.
    ///
    /// # Safety
    /// No code of the runtime runs.
    pub(crate) unsafe fn set_tail(&self, tail: [u8; TAIL_BYTES], high_bytes: usize) {
        // SAFETY: within the range.
        unsafe { tail_of(&self.range).cast::<[u8; TAIL_BYTES]>().write(tail) };
        self.last_high_bytes.set(high_bytes);
    }

    /// Clears pages and gives their memory back.
    ///
    /// # Safety
    /// Nothing may refer to anything in there.
    pub(crate) unsafe fn give_back(&self, first: usize, end: usize) {
        // SAFETY: as the caller promises.
        unsafe { self.range.give_back(first * PAGE_BYTES, (end - first) * PAGE_BYTES) }
    }

    /// Checks that the range equals the image, byte for byte, and is zero above as far as the last run wrote.
    #[cfg(test)]
    pub(crate) fn check_pristine(&self) -> Result<(), String> {
        let checked_bytes = self.last_high_bytes.get().max(self.image_bytes);
        // SAFETY: within the ranges; reading leaves them as they are, and nothing writes meanwhile.
        let (found, image, tail) = unsafe {
            (
                slice::from_raw_parts(self.range.start(), checked_bytes),
                slice::from_raw_parts(self.image.start(), self.image_bytes),
                slice::from_raw_parts(tail_of(&self.range), TAIL_BYTES),
            )
        };
        let (low, above) = found.split_at(self.image_bytes);
        if low != image {
            let at = low.iter().zip(image).position(|(x, y)| x != y).unwrap_or_default();
            return Err(format!("differs from its image at byte {at} of {}", self.image_bytes));
        }
        // Memory that reaches the end of the range reaches the tail, which is not zero.
        let above = &above[..above.len().min(self.range.bytes() - TAIL_BYTES - low.len())];
        let zero = [0; PAGE_BYTES];
        if let Some(at) = above.chunks(PAGE_BYTES).position(|page| *page != zero[..page.len()]) {
            return Err(format!("not zero in page {at} above its image"));
        }
        if tail == self.tail { Ok(()) } else { Err("differs in its tail".into()) }
    }

    /// The size of the image. A parked slot holds it twice.
    #[cfg(test)]
    pub(crate) fn image_bytes(&self) -> usize {
        self.image_bytes
    }
}

fn tail_of(range: &Range) -> *mut u8 {
    // SAFETY: a range is longer than its tail.
    unsafe { range.start().add(range.bytes() - TAIL_BYTES) }
}
