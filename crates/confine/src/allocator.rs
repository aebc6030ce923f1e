//! The allocator of the workers' program.
//!
//! In: requests for memory outside of the engine's heap. Out: memory of the system's allocator, or the end of the
//! process with an exit code that tells the cause. Without this a program aborts for lack of memory, as it does for
//! many reasons.
//!
//! The system takes longer to hand out a page anew than a program takes to fill it, and most programs that receive a
//! large message send one back. So there is a place for one large block, in large pages where the system has them,
//! which stays when the block is freed.
#![expect(unsafe_code, reason = "an allocator")]

use super::{ended::OUT_OF_MEMORY, exit};
use std::{
    alloc::{GlobalAlloc, Layout, System},
    ptr,
    sync::atomic::{AtomicBool, AtomicPtr, Ordering},
};

/// The smallest block that is worth a large page.
const LARGE_BYTES: usize = 256 << 10;

/// The size of the place.
const PLACE_BYTES: usize = 8 << 20;

/// The address of the place, which never changes once it is set.
static PLACE: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());

/// Whether a block is in it.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);

/// The allocator of a program whose sandbox may use up all its memory.
pub struct Allocator;

/// Makes the place for one large block, for the processes that this one forks. Without it they are slower.
#[cfg(unix)]
pub fn keep_large_block() {
    #[cfg(target_os = "linux")]
    PLACE.store(large_pages().unwrap_or(ptr::null_mut()), Ordering::Release);
}

/// Addresses without memory.
#[cfg(target_os = "linux")]
fn large_pages() -> Option<*mut u8> {
    const PAGE_BYTES: usize = 2 << 20;
    let (access, kind) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping at an address of the system's choice touches nothing.
    let start =
        unsafe { libc::mmap(ptr::null_mut(), PLACE_BYTES + PAGE_BYTES, access, kind, -1, 0) };
    if start == libc::MAP_FAILED {
        return None;
    }
    let start = start.cast::<u8>();
    let place = start.wrapping_add(start.align_offset(PAGE_BYTES));
    // SAFETY: within the mapping. Advice that is not taken changes nothing.
    unsafe { libc::madvise(place.cast(), PLACE_BYTES, libc::MADV_HUGEPAGE) };
    Some(place)
}

/// The place, if it suits the block and is free.
fn take_place(layout: Layout) -> Option<*mut u8> {
    let fits =
        (LARGE_BYTES..=PLACE_BYTES).contains(&layout.size()) && layout.align() <= LARGE_BYTES;
    let place = PLACE.load(Ordering::Acquire);
    let taken = fits && !place.is_null() && !IS_TAKEN.swap(true, Ordering::Acquire);
    taken.then_some(place)
}

fn is_in_place(block: *mut u8) -> bool {
    block == PLACE.load(Ordering::Relaxed)
}

fn leave_place() {
    IS_TAKEN.store(false, Ordering::Release);
}

/// Ends the process at once if there is no memory.
fn or_leave(block: *mut u8) -> *mut u8 {
    if block.is_null() {
        leave();
    }
    block
}

#[cold]
fn leave() -> ! {
    // Exit handlers might request memory.
    exit(OUT_OF_MEMORY)
}

// SAFETY: each call is the system allocator's own, or does not return, or concerns the one block in a place that is
// long enough for it, to which nobody else writes.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller vouches.
        take_place(layout).unwrap_or_else(|| or_leave(unsafe { System.alloc(layout) }))
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller vouches.
        or_leave(unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        if !is_in_place(block) {
            // SAFETY: as the caller vouches.
            return or_leave(unsafe { System.realloc(block, layout, bytes) });
        }
        if bytes <= PLACE_BYTES {
            return block;
        }
        // SAFETY: as the caller vouches, who requests more than the block has.
        unsafe {
            let moved =
                or_leave(System.alloc(Layout::from_size_align_unchecked(bytes, layout.align())));
            moved.copy_from_nonoverlapping(block, layout.size());
            leave_place();
            moved
        }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if is_in_place(block) {
            return leave_place();
        }
        // SAFETY: as the caller vouches.
        unsafe { System.dealloc(block, layout) }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn one_large_block_at_a_time_has_the_place() {
        let layout = |bytes| Layout::from_size_align(bytes, 1).expect("a layout");
        let (small, large) = (layout(LARGE_BYTES - 1), layout(LARGE_BYTES));
        keep_large_block();
        let place = PLACE.load(Ordering::Relaxed);
        assert!(!place.is_null());
        // SAFETY: each block is freed once, with the layout that it has by then.
        unsafe {
            let first = Allocator.alloc(large);
            let (second, third) = (Allocator.alloc(large), Allocator.alloc(small));
            assert!(first == place && second != place && third != place);
            Allocator.dealloc(second, large);
            Allocator.dealloc(third, small);
            first.write_bytes(7, LARGE_BYTES);
            assert_eq!(Allocator.realloc(first, large, PLACE_BYTES), place);
            let moved = Allocator.realloc(place, layout(PLACE_BYTES), PLACE_BYTES + 1);
            assert!(moved != place && (0..LARGE_BYTES).all(|at| *moved.add(at) == 7));
            let again = Allocator.alloc(large);
            assert_eq!(again, place);
            Allocator.dealloc(again, large);
            Allocator.dealloc(moved, layout(PLACE_BYTES + 1));
        }
    }
}
