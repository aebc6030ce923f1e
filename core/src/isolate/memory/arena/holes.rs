//! Free blocks of an arena, whose pages go back to the system.
//!
//! In: an arena. Out: the pages of its free blocks, given back when the process holds much more than is in use, and
//! taken back when they are handed out again.

use std::{ops, ptr::NonNull};

use super::{
    Arena, BLOCK_OVERHEAD_BYTES, Blocks, LARGE_BYTES, MARGIN_BYTES, SWEEP_SHARE, most_held_bytes,
};
use crate::isolate::memory::range::{self, LARGE_PAGE_BYTES, LARGE_PAGES_FROM_BYTES, PAGE_BYTES};

/// The share of the expected bytes that must be free for more after a search for every hole, which is slow.
const ROOM_SHARE: usize = 64;

impl Arena {
    /// Gives the pages of large free blocks back to the system. It reads every block, so it runs less often if it gives
    /// back little.
    pub(super) fn sweep(&self) {
        let given_bytes = self.give_back_holes(LARGE_BYTES);
        let least = (self.expected.get() - self.start) / SWEEP_SHARE;
        let came_of_it = given_bytes >= self.touched.replace(0) / 2;
        self.until_sweep.set(if came_of_it { least } else { 2 * least });
    }

    /// Whether the process holds no more than it may. Gives back every hole of a page first if it must.
    pub(super) fn holds_little(&self) -> bool {
        if self.high.get() <= self.expected.get() {
            return true;
        }
        let expected_bytes = self.expected.get() - self.start;
        let most_bytes = most_held_bytes(expected_bytes);
        self.held_bytes() <= most_bytes || {
            self.give_back_holes(PAGE_BYTES);
            self.held_bytes() <= most_bytes - expected_bytes / ROOM_SHARE
        }
    }

    /// Gives back whole pages of free blocks that have at least `least_bytes` of them; returns the number of bytes.
    pub(super) fn give_back_holes(&self, least_bytes: usize) -> usize {
        let mut given_bytes = 0;
        self.each_free(|start, end| {
            // SAFETY: a free block; its header and links stay.
            given_bytes += unsafe { self.give_back(start, end, least_bytes) };
        });
        given_bytes
    }

    /// Calls the function with the addresses of each free block, below `high` and without its header.
    pub(super) fn each_free(&self, mut each: impl FnMut(usize, usize)) {
        let state_bytes = size_of::<Blocks>().next_multiple_of(MARGIN_BYTES);
        let (start, high) = (self.start + state_bytes, self.high.get().min(self.end));
        let pool = self.blocks.as_ptr().cast::<u8>().wrapping_add(state_bytes);
        let Some(pool) = NonNull::new(pool) else { return };
        let pool = NonNull::slice_from_raw_parts(pool, self.end - start);
        // SAFETY: the pool as `new` inserted it, which no one changes while it is walked.
        let blocks = unsafe { (*self.blocks.as_ptr()).iter_blocks(pool) };
        for block in blocks.filter(|block| !block.is_occupied()) {
            let start = block.as_ptr().addr().get() + BLOCK_OVERHEAD_BYTES;
            each(start, (start + block.max_payload_size()).min(high));
        }
    }

    /// Counts pages that may be written from now on as held.
    pub(super) fn take_back(&self, start: usize, end: usize) {
        if self.returned.bytes() == 0 {
            return;
        }
        if self.expected.get() - self.start >= LARGE_PAGES_FROM_BYTES {
            // The first write to a large page without content brings in all of it.
            for place in [start, end - 1] {
                let page = place / LARGE_PAGE_BYTES * LARGE_PAGE_BYTES;
                let (from, to) = (page.max(self.start), page + LARGE_PAGE_BYTES);
                if self.returned.has_all(from - self.start, to - self.start) {
                    self.returned.remove(from - self.start, to - self.start);
                }
            }
        }
        self.returned.remove(start - self.start, end - self.start);
    }

    /// Gives back to the system the whole pages within a block that is free or about to be, if they come to at least
    /// `least_bytes`; returns the number of bytes. The block's first bytes stay: the allocator writes there.
    ///
    /// # Safety
    /// The addresses are those of such a block, below `high`.
    pub(super) unsafe fn give_back(&self, start: usize, end: usize, least_bytes: usize) -> usize {
        let ops::Range { start, end } = pages_within(start, end);
        if end < start.saturating_add(least_bytes)
            || self.returned.has_all(start - self.start, end - self.start)
        {
            return 0;
        }
        // SAFETY: whole pages whose content is of no use. A system that declines keeps them.
        if unsafe { range::give_back_pages(start, end - start) } {
            self.returned.insert(start - self.start, end - self.start);
        }
        end - start
    }
}

/// The whole pages within a free block, without the first bytes: the allocator writes there.
pub(super) fn pages_within(start: usize, end: usize) -> ops::Range<usize> {
    (start + MARGIN_BYTES).next_multiple_of(PAGE_BYTES)..end / PAGE_BYTES * PAGE_BYTES
}
