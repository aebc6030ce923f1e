//! Blocks out of one [`Range`].
//!
//! In: a range. Out: blocks of it, with all that is known about them kept at its start, so that
//! copying an image of the range back undoes every allocation since. Two things are kept outside:
//! how far up it has ever been written (above that it reads as zero, which saves clearing), and how
//! far up it may be, so that fragmentation cannot make a run hold much more than it is accounted.
#![expect(unsafe_code, reason = "hands out raw memory")]

use super::range::Range;
use std::{alloc::Layout, cell::Cell, mem, ptr, ptr::NonNull};

/// 16-byte steps in 27 doublings: blocks of up to 4 GiB.
type Blocks = rlsf::Tlsf<'static, u32, u16, 27, 16>;

/// What the C allocator would promise.
const ALIGN: usize = 2 * size_of::<usize>();
/// What a block costs beyond its size.
const BLOCK_OVERHEAD_BYTES: usize = 2 * size_of::<usize>();
/// The header of a free block may stand this far above the last block in use.
const MARGIN_BYTES: usize = 64;
/// The end of the range holds the mark of its last block.
pub(crate) const TAIL_BYTES: usize = 64;

/// The allocator of one range. It does not own the range: whoever made both keeps it mapped for as
/// long as the arena is used.
pub(crate) struct Arena {
    blocks: NonNull<Blocks>,
    start: usize,
    end: usize,
    /// Everything from here to `end` (its tail aside) is zero.
    high: Cell<usize>,
    /// No block may end above this.
    ceiling: Cell<usize>,
}

impl Arena {
    /// Makes all of `range`, which reads as zero, one free block; `None` if it is too small.
    pub(crate) fn new(range: &Range) -> Option<Self> {
        let state_bytes = size_of::<Blocks>().next_multiple_of(MARGIN_BYTES);
        let pool_bytes = range.bytes().checked_sub(state_bytes)?;
        #[expect(clippy::cast_ptr_alignment, reason = "a range starts at a page")]
        let blocks = NonNull::new(range.start().cast::<Blocks>())?;
        // SAFETY: the range starts at a page, is ours to write, and is longer than the state.
        unsafe {
            blocks.write(Blocks::new());
            let pool = NonNull::new(range.start().add(state_bytes))?;
            let pool = NonNull::slice_from_raw_parts(pool, pool_bytes);
            (*blocks.as_ptr()).insert_free_block_ptr(pool)?;
        }
        let start = range.start().addr();
        Some(Self {
            blocks,
            start,
            end: start + range.bytes(),
            high: Cell::new(start + state_bytes + MARGIN_BYTES),
            ceiling: Cell::new(usize::MAX),
        })
    }

    /// How many bytes from the start have been written.
    pub(crate) fn high_bytes(&self) -> usize {
        self.high.get().min(self.end) - self.start
    }

    /// Declares everything above `bytes` zero again.
    pub(crate) fn lower_high(&self, bytes: usize) {
        self.high.set(self.start + bytes);
    }

    /// Forbids blocks that end more than `bytes` above the start.
    pub(crate) fn set_ceiling(&self, bytes: usize) {
        self.ceiling.set(self.start.saturating_add(bytes));
    }

    pub(crate) fn allocate(&self, bytes: usize) -> *mut u8 {
        let Ok(layout) = Layout::from_size_align(bytes.max(1), ALIGN) else {
            return ptr::null_mut();
        };
        // SAFETY: the state was written by `new`, the engine calls from one thread at a time, and
        // no reference to the state outlives a call.
        let block = unsafe { (*self.blocks.as_ptr()).allocate(layout) };
        let Some(block) = block else { return ptr::null_mut() };
        if !self.reach(block) {
            // SAFETY: allocated above with this alignment, and known to nobody.
            unsafe { (*self.blocks.as_ptr()).deallocate(block, ALIGN) };
            return ptr::null_mut();
        }
        block.as_ptr()
    }

    /// As `allocate`, cleared. Above the high-water mark nothing has to be.
    pub(crate) fn allocate_zeroed(&self, bytes: usize) -> *mut u8 {
        let zero_from = self.high.get();
        let block = self.allocate(bytes);
        if !block.is_null() {
            // SAFETY: the block is at least `bytes` long.
            unsafe { block.write_bytes(0, bytes.min(zero_from.saturating_sub(block.addr()))) };
        }
        block
    }

    /// Moves or grows a block; null if that fails, and the old block then stays.
    ///
    /// # Safety
    /// `block` came from this arena and is in use.
    pub(crate) unsafe fn resize(&self, block: NonNull<u8>, bytes: usize) -> *mut u8 {
        let Ok(layout) = Layout::from_size_align(bytes.max(1), ALIGN) else {
            return ptr::null_mut();
        };
        // SAFETY: as in `allocate`; the caller vouches for the block.
        let moved = unsafe { (*self.blocks.as_ptr()).reallocate(block, layout) };
        let Some(moved) = moved else { return ptr::null_mut() };
        // Too late to refuse: the content has moved. The next allocation up there is refused.
        self.reach(moved);
        moved.as_ptr()
    }

    /// # Safety
    /// `block` came from this arena and is in use.
    pub(crate) unsafe fn free(&self, block: NonNull<u8>) {
        // SAFETY: as in `allocate`; the caller vouches for the block.
        unsafe { (*self.blocks.as_ptr()).deallocate(block, ALIGN) }
    }

    /// # Safety
    /// `block` came from an arena and is in use.
    pub(crate) unsafe fn usable_bytes(block: NonNull<u8>) -> usize {
        // SAFETY: the caller vouches for the block.
        unsafe { Blocks::allocation_usable_size(block) }
    }

    /// What a block costs, all told.
    ///
    /// # Safety
    /// `block` came from an arena and is in use.
    pub(crate) unsafe fn cost_bytes(block: NonNull<u8>) -> usize {
        // SAFETY: the caller vouches for the block.
        unsafe { Self::usable_bytes(block) + BLOCK_OVERHEAD_BYTES }
    }

    /// Records that the block may be written; false if it ends above the ceiling.
    fn reach(&self, block: NonNull<u8>) -> bool {
        // SAFETY: called with blocks just handed out.
        let end = block.addr().get() + unsafe { Self::usable_bytes(block) };
        self.high.set(self.high.get().max(end + MARGIN_BYTES));
        end <= self.ceiling.get()
    }
}

const _: () = assert!(mem::align_of::<Blocks>() <= super::range::PAGE_BYTES);

#[cfg(all(test, target_os = "linux", target_pointer_width = "64"))]
mod tests {
    use super::*;

    #[test]
    fn zeroed_blocks_are_zero_wherever_they_come_from() {
        let range = Range::reserve(64 << 20).expect("64 MiB of addresses");
        let arena = Arena::new(&range).expect("an arena");
        let mut kept = Vec::new();
        for round in 0..400_usize {
            let bytes = 1 + round * 977 % 150_000;
            let block = NonNull::new(arena.allocate_zeroed(bytes)).expect("memory");
            // SAFETY: the block is `bytes` long and ours.
            unsafe {
                assert!(std::slice::from_raw_parts(block.as_ptr(), bytes).iter().all(|b| *b == 0));
                block.write_bytes(0xff, Arena::usable_bytes(block));
            }
            kept.push(block);
            if round % 3 != 0 {
                let old = kept.swap_remove(round * 31 % kept.len());
                // SAFETY: in use until now, and forgotten here.
                unsafe { arena.free(old) };
            }
        }
    }

    #[test]
    fn nothing_above_the_ceiling() {
        let range = Range::reserve(64 << 20).expect("64 MiB of addresses");
        let arena = Arena::new(&range).expect("an arena");
        arena.set_ceiling(1 << 20);
        assert!(arena.allocate(2 << 20).is_null());
        assert!(!arena.allocate(1 << 19).is_null());
    }

    #[test]
    fn more_than_there_is_fails() {
        let range = Range::reserve(1 << 20).expect("a MiB of addresses");
        let arena = Arena::new(&range).expect("an arena");
        assert!(arena.allocate(2 << 20).is_null());
        assert!(arena.allocate(usize::MAX).is_null());
    }
}
