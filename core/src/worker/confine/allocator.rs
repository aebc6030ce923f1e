//! Memory for the program of the workers.
//!
//! In: requests for memory outside of the engine's heap. Out: memory of the system's allocator, or the
//! end of the process with a code that tells why: without memory a program aborts, and so it does for
//! many reasons.
#![expect(unsafe_code, reason = "an allocator")]

use super::ended::OUT_OF_MEMORY;
use std::alloc::{GlobalAlloc, Layout, System};

/// The allocator of a program all of whose memory may be used up by what it runs.
pub struct Allocator;

/// Leaves at once where there is no memory.
fn or_leave(block: *mut u8) -> *mut u8 {
    if block.is_null() {
        leave();
    }
    block
}

#[cold]
fn leave() -> ! {
    // SAFETY: nothing of this process is used again; what runs at exits might want memory.
    unsafe { libc::_exit(OUT_OF_MEMORY) }
}

// SAFETY: each call is the system allocator's own, or does not return.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller vouches.
        or_leave(unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller vouches.
        or_leave(unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: as the caller vouches.
        or_leave(unsafe { System.realloc(block, layout, bytes) })
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as the caller vouches.
        unsafe { System.dealloc(block, layout) }
    }
}
