//! Blocks out of one [`Range`].
//!
//! In: a range. Out: blocks of it. The allocator's whole state lies at the start of the range, so copying an image of
//! the range back undoes every allocation since. Two marks are kept outside: how far up the range has ever been written
//! (above, it reads as zero, which saves clearing), and how far up it may be written.
//!
//! A run is charged for the bytes in use; the process holds every page that was ever written. Three measures keep the
//! two close. Sizes are rounded up to those that the allocator sorts free blocks by, so that a freed block fits the
//! next request of its size. Once blocks stand higher than the most that may be in use at once, the pages of large free
//! blocks go back to the system. A large block that grows is moved page by page, so that it is never there twice. If
//! used blocks are scattered among small holes, this may not suffice; then the arena hands out no more blocks. The
//! process never holds more than [`most_held_bytes`] says.
//!
//! The engine carves small blocks, objects among them, out of *chunks* of nearly a page, and hashes objects by the low
//! bits of their address. So chunks do not all begin at the same place of a page: see [`CHUNK_BYTES`].
#![expect(unsafe_code, reason = "hands out raw memory")]

mod holes;

use self::holes::pages_within;
use super::{
    range::{LARGE_PAGE_BYTES, PAGE_BYTES, Range},
    returned::{Returned, ReturnedPages},
};
use crate::data::portable::portable;
use std::{alloc::Layout, cell::Cell, mem, ptr, ptr::NonNull};

/// 16-byte steps in 27 doublings: blocks of up to 4 GiB.
type Blocks = rlsf::Tlsf<'static, u32, u16, 27, 16>;

/// The alignment that the C allocator guarantees.
const ALIGN: usize = 2 * size_of::<usize>();
/// Bytes that a block takes beyond its size.
const BLOCK_OVERHEAD_BYTES: usize = 2 * size_of::<usize>();
/// The allocator's own unit, and the number of sizes into which it divides each doubling.
const UNIT_BYTES: usize = 4 * size_of::<usize>();
const SIZES_PER_DOUBLING: usize = 16;
/// Smallest free block whose pages are worth a system call.
const LARGE_BYTES: usize = 32 << 10;
/// Smallest block that is worth a large page.
const SKIPPED_FOR_BYTES: usize = 256 << 10;
/// The share of the expected bytes that may be handed out between two searches for holes.
const SWEEP_SHARE: usize = 32;
/// Bytes that the process may hold beyond those in use, for holes between blocks: a share of the bytes in use, and as
/// much as a small run may waste.
const HOLES_SHARE: usize = 4;
const HOLES_BYTES: usize = 1 << 20;
/// Bytes of a large block that are moved at once.
const MOVED_AT_ONCE_BYTES: usize = 256 << 10;
/// The size of a block for one of the engine's chunks. Objects whose addresses agree modulo the number of buckets share
/// a bucket. If all chunks began at the same place of a page, the addresses of all objects would have 50 remainders
/// modulo a page, and a bucket would hold some eighty objects. So a chunk begins up to [`UNIT_BYTES`] later in its block
/// if it leaves that much unused, and the block of one chunk in [`CHUNKS_A_STEP`] is longer by a step.
const CHUNK_BYTES: usize = PAGE_BYTES;
const CHUNKS_A_STEP: usize = 32;
/// The alignment that the engine needs. It puts a header of this size before each of its own blocks.
const ENGINE_ALIGN: usize = 8;
/// The header of a free block may stand this far above the last block in use.
const MARGIN_BYTES: usize = 64;
/// Bytes at the end of the range for the mark of its last block.
pub(crate) const TAIL_BYTES: usize = 64;

/// The most that the process holds for an arena in which `expected_bytes` may be in use.
pub(in crate::isolate) fn most_held_bytes(expected_bytes: usize) -> usize {
    expected_bytes.saturating_add(expected_bytes / HOLES_SHARE).saturating_add(HOLES_BYTES)
}

/// The allocator of one range. It does not own the range: its maker keeps the range mapped for as long as the arena is
/// used.
pub(crate) struct Arena {
    blocks: NonNull<Blocks>,
    start: usize,
    end: usize,
    /// Everything from here to `end` (its tail aside) is zero.
    high: Cell<usize>,
    /// No block may end above this.
    ceiling: Cell<usize>,
    /// Blocks end above this only because of holes between them.
    expected: Cell<usize>,
    /// No large block begins below this.
    large_from: Cell<usize>,
    /// Bytes handed out since the last search for holes, and the number of them that makes a search due.
    touched: Cell<usize>,
    until_sweep: Cell<usize>,
    /// Chunks handed out since the last restore.
    chunks: Cell<usize>,
    /// Pages below `high` that the system has back, by their offset from the start.
    returned: Returned,
}

/// The state of an arena that lies outside of its range, for an arena whose range's content is exchanged.
#[derive(Clone)]
pub(in crate::isolate) struct ArenaState {
    high: usize,
    ceiling: usize,
    expected: usize,
    large_from: usize,
    touched: usize,
    until_sweep: usize,
    chunks: usize,
    returned: ReturnedPages,
}

portable!(struct ArenaState {
    high, ceiling, expected, large_from, touched, until_sweep, chunks, returned,
});

impl ArenaState {
    /// How many bytes of a range that starts there had been written.
    pub(in crate::isolate) fn high_bytes(&self, start: usize) -> Option<usize> {
        self.high.checked_sub(start)
    }

    /// Whether the system has the page of the range with that number.
    pub(in crate::isolate) fn has_returned(&self, page: usize) -> bool {
        self.returned.has(page)
    }
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
            expected: Cell::new(usize::MAX),
            large_from: Cell::new(0),
            touched: Cell::new(0),
            until_sweep: Cell::new(0),
            chunks: Cell::new(0),
            returned: Returned::default(),
        })
    }

    /// How many bytes from the start have been written.
    pub(crate) fn high_bytes(&self) -> usize {
        self.high.get().min(self.end) - self.start
    }

    /// Declares everything above `bytes` zero again.
    pub(crate) fn lower_high(&self, bytes: usize) {
        self.high.set(self.start + bytes);
        self.chunks.set(0);
        self.returned.clear();
    }

    /// The most that the process holds for the range.
    pub(crate) fn held_bytes(&self) -> usize {
        self.high_bytes().saturating_sub(self.returned.bytes())
    }

    /// Announces that at most `bytes` will be in use at once: a block that ends higher shows that there are holes.
    pub(crate) fn expect(&self, bytes: usize) {
        self.expected.set(self.start.saturating_add(bytes));
        self.touched.set(0);
        self.until_sweep.set(bytes / SWEEP_SHARE);
    }

    /// Forbids blocks that end more than `bytes` above the start.
    pub(crate) fn set_ceiling(&self, bytes: usize) {
        self.ceiling.set(self.start.saturating_add(bytes));
    }

    /// The state outside of the range.
    pub(crate) fn state(&self) -> ArenaState {
        ArenaState {
            high: self.high.get(),
            ceiling: self.ceiling.get(),
            expected: self.expected.get(),
            large_from: self.large_from.get(),
            touched: self.touched.get(),
            until_sweep: self.until_sweep.get(),
            chunks: self.chunks.get(),
            returned: self.returned.record(),
        }
    }

    /// Sets the state that belongs to the content which the range has by now.
    pub(crate) fn set_state(&self, state: &ArenaState) {
        self.high.set(state.high);
        self.ceiling.set(state.ceiling);
        self.expected.set(state.expected);
        self.large_from.set(state.large_from);
        self.touched.set(state.touched);
        self.until_sweep.set(state.until_sweep);
        self.chunks.set(state.chunks);
        self.returned.set(&state.returned);
    }

    /// Gives the pages of large free blocks back to the system. Reads the header of every block.
    pub(crate) fn give_back_free(&self) {
        self.give_back_holes(LARGE_BYTES);
    }

    /// Clears the whole pages within free blocks. Reads the header of every block.
    pub(crate) fn clear_free(&self) {
        self.each_free(|start, end| {
            for page in pages_within(start, end).step_by(PAGE_BYTES) {
                let offset = page - self.start;
                if !self.returned.has_all(offset, offset + PAGE_BYTES) {
                    // SAFETY: a whole page of a free block; its header and links stay.
                    unsafe {
                        self.blocks.as_ptr().cast::<u8>().add(offset).write_bytes(0, PAGE_BYTES);
                    };
                }
            }
        });
    }

    /// Makes large blocks begin with the first large page from that offset on. The first of them leaves the memory
    /// below unused, so this is for an arena which is not restored.
    pub(crate) fn start_large_at(&self, offset: usize) {
        self.large_from.set((self.start + offset).next_multiple_of(LARGE_PAGE_BYTES));
    }

    pub(crate) fn allocate(&self, bytes: usize) -> *mut u8 {
        let Some(block) = self.place(self.room_bytes(bytes)) else { return ptr::null_mut() };
        if !self.holds_little() {
            // SAFETY: placed above with this alignment, and known to nobody.
            unsafe { (*self.blocks.as_ptr()).deallocate(block, ALIGN) };
            return ptr::null_mut();
        }
        if !is_chunk(bytes) {
            return block.as_ptr();
        }
        self.chunks.set(self.chunks.get().wrapping_add(1));
        // SAFETY: placed above.
        unsafe { shifted(block, bytes) }.as_ptr()
    }

    /// The room that `allocate` makes for that many bytes.
    fn room_bytes(&self, bytes: usize) -> usize {
        let steps = is_chunk(bytes) && self.chunks.get() % CHUNKS_A_STEP == CHUNKS_A_STEP - 1;
        if steps { CHUNK_BYTES } else { bytes }
    }

    /// Bytes that the next block of that many bytes will take, overhead included.
    pub(crate) fn next_cost_bytes(&self, bytes: usize) -> usize {
        layout(self.room_bytes(bytes)).map_or(usize::MAX, |it| it.size() + BLOCK_OVERHEAD_BYTES)
    }

    /// A block, without regard to the memory that the process holds once it is written.
    fn place(&self, bytes: usize) -> Option<NonNull<u8>> {
        if bytes >= SKIPPED_FOR_BYTES {
            self.skip();
        }
        // SAFETY: the state was written by `new`, the engine calls from one thread at a time, and
        // no reference to the state outlives a call.
        let block = unsafe { (*self.blocks.as_ptr()).allocate(layout(bytes)?) }?;
        if !self.reach(block) {
            // SAFETY: allocated above with this alignment, and known to nobody.
            unsafe { (*self.blocks.as_ptr()).deallocate(block, ALIGN) };
            return None;
        }
        Some(block)
    }

    /// Takes the memory below the place of large blocks.
    fn skip(&self) {
        let bytes = self.large_from.replace(0).saturating_sub(self.high.get());
        if bytes > 0 {
            self.allocate(bytes);
        }
    }

    /// As `allocate`, cleared. Above the high-water mark nothing has to be cleared.
    pub(crate) fn allocate_zeroed(&self, bytes: usize) -> *mut u8 {
        let zero_from = self.high.get();
        let block = self.allocate(bytes);
        if !block.is_null() {
            // SAFETY: the block is at least `bytes` long.
            unsafe { block.write_bytes(0, bytes.min(zero_from.saturating_sub(block.addr()))) };
        }
        block
    }

    /// Moves or grows a block. Returns null if that fails; the old block then stays.
    ///
    /// # Safety
    /// `block` came from this arena and is in use.
    pub(crate) unsafe fn resize(&self, block: NonNull<u8>, bytes: usize) -> *mut u8 {
        let Some(layout) = layout(bytes) else { return ptr::null_mut() };
        // SAFETY: the caller vouches for the block.
        if let Some(moved) = unsafe { self.move_in_steps(block, bytes) } {
            return moved.as_ptr();
        }
        if placed(block) != block {
            // SAFETY: the caller vouches for the block.
            return unsafe { self.move_shifted(block, bytes) };
        }
        // SAFETY: as in `allocate`; the caller vouches for the block.
        let moved = unsafe { (*self.blocks.as_ptr()).reallocate(block, layout) };
        let Some(moved) = moved else { return ptr::null_mut() };
        // Too late to refuse: the content has moved. The next allocation up there is refused.
        self.reach(moved);
        moved.as_ptr()
    }

    /// Moves a block that begins later than it was placed, which the allocator itself cannot do.
    ///
    /// # Safety
    /// `block` came from this arena and is in use.
    unsafe fn move_shifted(&self, block: NonNull<u8>, bytes: usize) -> *mut u8 {
        // SAFETY: the caller vouches for the block.
        let old_bytes = unsafe { Self::usable_bytes(block) };
        let Some(moved) = NonNull::new(self.allocate(bytes)) else {
            return if bytes <= old_bytes { block.as_ptr() } else { ptr::null_mut() };
        };
        // SAFETY: two blocks in use, both at least that long; the old one is read no more.
        unsafe {
            moved.copy_from_nonoverlapping(block, bytes.min(old_bytes));
            self.free(block);
        }
        moved.as_ptr()
    }

    /// # Safety
    /// `block` came from this arena and is in use.
    pub(crate) unsafe fn free(&self, block: NonNull<u8>) {
        let block = placed(block);
        // SAFETY: as in `allocate`; the caller vouches for the block, whose content is of no use.
        unsafe {
            if self.high.get() > self.expected.get() {
                let bytes = Self::usable_bytes(block);
                self.give_back(block.addr().get(), block.addr().get() + bytes, LARGE_BYTES);
            }
            (*self.blocks.as_ptr()).deallocate(block, ALIGN);
        }
    }

    /// Grows a large block at another place without holding all of it twice. `None` if the block is not large, would
    /// end too high, can grow in place, or has no other place.
    ///
    /// # Safety
    /// `block` came from this arena and is in use.
    unsafe fn move_in_steps(&self, block: NonNull<u8>, bytes: usize) -> Option<NonNull<u8>> {
        // SAFETY: the caller vouches for the block.
        let old_bytes = unsafe { Self::usable_bytes(block) };
        let (start, high) = (block.addr().get(), self.high.get());
        let is_last = start + old_bytes + 2 * MARGIN_BYTES >= high;
        let spreads = high.saturating_add(bytes) > self.expected.get();
        if old_bytes < 2 * MOVED_AT_ONCE_BYTES || bytes <= old_bytes || is_last || !spreads {
            return None;
        }
        // For each part of the new block that is written, as much of the old one goes back.
        let new = self.place(bytes)?;
        let mut moved = 0;
        while moved < old_bytes {
            let step = MOVED_AT_ONCE_BYTES.min(old_bytes - moved);
            // SAFETY: two blocks in use, both at least that long; copied bytes are read no more.
            unsafe {
                new.add(moved).copy_from_nonoverlapping(block.add(moved), step);
                self.give_back(start + moved, start + moved + step, LARGE_BYTES);
            }
            moved += step;
        }
        // SAFETY: in use until now.
        unsafe { (*self.blocks.as_ptr()).deallocate(block, ALIGN) };
        Some(new)
    }

    /// # Safety
    /// `block` came from an arena and is in use.
    pub(crate) unsafe fn usable_bytes(block: NonNull<u8>) -> usize {
        let placed = placed(block);
        // SAFETY: the caller vouches for the block.
        let bytes = unsafe { Blocks::allocation_usable_size(placed) };
        bytes - (block.addr().get() - placed.addr().get())
    }

    /// Bytes that a block takes, overhead included.
    ///
    /// # Safety
    /// `block` came from an arena and is in use.
    pub(crate) unsafe fn cost_bytes(block: NonNull<u8>) -> usize {
        // SAFETY: the caller vouches for the block.
        unsafe { Self::usable_bytes(placed(block)) + BLOCK_OVERHEAD_BYTES }
    }

    /// Records that the block may be written; false if it ends above the ceiling.
    fn reach(&self, block: NonNull<u8>) -> bool {
        // SAFETY: called with blocks just handed out.
        let end = block.addr().get() + unsafe { Self::usable_bytes(block) };
        self.high.set(self.high.get().max(end + MARGIN_BYTES));
        // The header of the free block's rest stands behind.
        self.take_back(block.addr().get() - MARGIN_BYTES, end + MARGIN_BYTES);
        if self.high.get() > self.expected.get() {
            let touched = self.touched.get() + end - block.addr().get();
            self.touched.set(touched);
            if touched > self.until_sweep.get() {
                self.sweep();
            }
        }
        end <= self.ceiling.get()
    }
}

/// A layout whose block has a size that the allocator sorts by. The allocator would not find a free block of any other
/// size for the next equal request. Costs a sixteenth at most.
fn layout(bytes: usize) -> Option<Layout> {
    let whole = bytes.max(1).checked_add(BLOCK_OVERHEAD_BYTES)?;
    let step = (whole.checked_next_power_of_two()? / (2 * SIZES_PER_DOUBLING)).max(UNIT_BYTES);
    let whole = whole.checked_next_multiple_of(step)?;
    Layout::from_size_align(whole - BLOCK_OVERHEAD_BYTES, ALIGN).ok()
}

/// Whether a block of that size has the size of the engine's chunks.
fn is_chunk(bytes: usize) -> bool {
    let most_bytes = CHUNK_BYTES - BLOCK_OVERHEAD_BYTES;
    (most_bytes - CHUNK_BYTES / (2 * SIZES_PER_DOUBLING) + 1..=most_bytes).contains(&bytes)
}

/// The beginning of the chunk in a block.
///
/// # Safety
/// The block was just placed, for at least `bytes`.
unsafe fn shifted(block: NonNull<u8>, bytes: usize) -> NonNull<u8> {
    // SAFETY: the caller vouches for the block.
    let spare_bytes = unsafe { Arena::usable_bytes(block) } - bytes;
    // Fibonacci hashing: chunks of one size may stand on every second page, or on every third.
    let page = block.addr().get() as u64 / CHUNK_BYTES as u64;
    let place = page.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    let shift_bytes = place as usize % (UNIT_BYTES / ENGINE_ALIGN) * ENGINE_ALIGN;
    if shift_bytes > spare_bytes {
        return block;
    }
    // SAFETY: within the block.
    unsafe { block.add(shift_bytes) }
}

/// The place that the allocator gave a block. It is always equally far behind a multiple of the allocator's unit.
fn placed(block: NonNull<u8>) -> NonNull<u8> {
    let shift_bytes = (block.addr().get() - BLOCK_OVERHEAD_BYTES) % UNIT_BYTES;
    // SAFETY: a block begins less than a unit behind the place where it was placed.
    unsafe { block.sub(shift_bytes) }
}

const _: () = assert!(mem::align_of::<Blocks>() <= super::range::PAGE_BYTES);

#[cfg(all(test, target_os = "linux", target_pointer_width = "64", not(isolane_portable)))]
mod tests;
