//! Blocks from the process's own allocator.
//!
//! In: sizes. Out: blocks, each on a list, so that all of them can be freed at once. So the engine never tears a plain
//! runtime down: that would take long after a large run, run finalizers, and trip the engine's assertions after a
//! failed allocation that it did not clean up after.
#![expect(unsafe_code, reason = "hands out raw memory")]

use std::{alloc, alloc::Layout, cell::Cell, ptr, ptr::NonNull};

/// Stands before each block.
#[repr(C, align(16))]
struct Header {
    before: *mut Header,
    after: *mut Header,
    /// Bytes of the block, without this header.
    bytes: usize,
}

const HEADER_BYTES: usize = size_of::<Header>();

/// Every block that was handed out and not freed; frees them when dropped.
pub(crate) struct System {
    newest: Cell<*mut Header>,
}

impl System {
    pub(crate) fn new() -> Self {
        Self { newest: Cell::new(ptr::null_mut()) }
    }

    pub(crate) fn allocate(&self, bytes: usize) -> *mut u8 {
        let Some(layout) = layout(bytes) else { return ptr::null_mut() };
        // SAFETY: the layout is never empty.
        unsafe { self.enlist(alloc::alloc(layout).cast(), bytes) }
    }

    /// As `allocate`, cleared; the process's allocator knows which memory is zero already.
    pub(crate) fn allocate_zeroed(&self, bytes: usize) -> *mut u8 {
        let Some(layout) = layout(bytes) else { return ptr::null_mut() };
        // SAFETY: the layout is never empty.
        unsafe { self.enlist(alloc::alloc_zeroed(layout).cast(), bytes) }
    }

    /// Moves or grows a block. Returns null if that fails; the old block then stays.
    ///
    /// # Safety
    /// `block` came from here and is in use.
    pub(crate) unsafe fn resize(&self, block: NonNull<u8>, bytes: usize) -> *mut u8 {
        let Some(new_layout) = layout(bytes) else { return ptr::null_mut() };
        // SAFETY: the caller vouches for the block, so a header stands before it, and its layout is
        // the one it was allocated with.
        unsafe {
            let header = header(block);
            let old_bytes = (*header).bytes;
            let Some(old_layout) = layout(old_bytes) else { return ptr::null_mut() };
            self.delist(header);
            let moved: *mut Header =
                alloc::realloc(header.cast(), old_layout, new_layout.size()).cast();
            if moved.is_null() {
                self.enlist(header, old_bytes);
                return ptr::null_mut();
            }
            self.enlist(moved, bytes)
        }
    }

    /// # Safety
    /// `block` came from here and is in use.
    pub(crate) unsafe fn free(&self, block: NonNull<u8>) {
        // SAFETY: as in `resize`.
        unsafe {
            let header = header(block);
            self.delist(header);
            release(header);
        }
    }

    /// # Safety
    /// `block` came from here and is in use.
    pub(crate) unsafe fn usable_bytes(block: NonNull<u8>) -> usize {
        // SAFETY: the caller vouches for the block, so a header stands before it.
        unsafe { (*header(block)).bytes }
    }

    /// Bytes that a block takes, overhead included.
    ///
    /// # Safety
    /// `block` came from here and is in use.
    pub(crate) unsafe fn cost_bytes(block: NonNull<u8>) -> usize {
        // SAFETY: the caller vouches for the block.
        unsafe { Self::usable_bytes(block) + HEADER_BYTES }
    }

    /// Bytes that a block of that many bytes takes, overhead included.
    pub(crate) fn next_cost_bytes(bytes: usize) -> usize {
        bytes.saturating_add(HEADER_BYTES)
    }

    /// Bytes that all blocks take, overhead included.
    #[cfg(test)]
    pub(crate) fn held_bytes(&self) -> usize {
        let (mut header, mut bytes) = (self.newest.get(), 0);
        // SAFETY: every listed block is in use.
        while let Some(Header { after, bytes: block, .. }) = unsafe { header.as_ref() } {
            (header, bytes) = (*after, bytes + block + HEADER_BYTES);
        }
        bytes
    }

    /// Puts a new block, if there is one, at the head of the list; returns its content.
    unsafe fn enlist(&self, header: *mut Header, bytes: usize) -> *mut u8 {
        if header.is_null() {
            return ptr::null_mut();
        }
        let after = self.newest.replace(header);
        // SAFETY: allocated with room for the header, and `after` is a listed block or null.
        unsafe {
            header.write(Header { before: ptr::null_mut(), after, bytes });
            if let Some(after) = after.as_mut() {
                after.before = header;
            }
            header.cast::<u8>().add(HEADER_BYTES)
        }
    }

    unsafe fn delist(&self, header: *mut Header) {
        // SAFETY: the block is listed, and so are its neighbours.
        unsafe {
            let Header { before, after, .. } = *header;
            match before.as_mut() {
                Some(before) => before.after = after,
                None => self.newest.set(after),
            }
            if let Some(after) = after.as_mut() {
                after.before = before;
            }
        }
    }
}

impl Drop for System {
    fn drop(&mut self) {
        let mut header = self.newest.get();
        while !header.is_null() {
            // SAFETY: every listed block is in use, and its users are gone.
            unsafe {
                let after = (*header).after;
                release(header);
                header = after;
            }
        }
    }
}

fn layout(bytes: usize) -> Option<Layout> {
    Layout::from_size_align(bytes.checked_add(HEADER_BYTES)?, align_of::<Header>()).ok()
}

unsafe fn header(block: NonNull<u8>) -> *mut Header {
    // SAFETY: the caller vouches that the block came from here.
    unsafe { block.as_ptr().sub(HEADER_BYTES).cast() }
}

unsafe fn release(header: *mut Header) {
    // SAFETY: the caller vouches that the block is in use; its layout was valid when it was made.
    unsafe {
        if let Some(layout) = layout((*header).bytes) {
            alloc::dealloc(header.cast(), layout);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_keep_their_content_and_all_are_freed() {
        let system = System::new();
        let mut kept: Vec<(NonNull<u8>, u8)> = Vec::new();
        for round in 0..500_usize {
            let mark = u8::try_from(round % 251).expect("below 251");
            let block = NonNull::new(system.allocate_zeroed(8 + round % 300)).expect("memory");
            // SAFETY: every block is in use and longer than the bytes touched here.
            unsafe {
                assert_eq!(*block.as_ptr(), 0);
                *block.as_ptr() = mark;
                kept.push((block, mark));
                let (old, mark) = kept.swap_remove(round * 31 % kept.len());
                assert_eq!(*old.as_ptr(), mark);
                if round % 2 == 0 {
                    let moved = NonNull::new(system.resize(old, 4000)).expect("memory");
                    assert_eq!((*moved.as_ptr(), System::usable_bytes(moved)), (mark, 4000));
                    kept.push((moved, mark));
                } else {
                    system.free(old);
                }
            }
        }
        assert!(!kept.is_empty());
    }

    #[test]
    fn more_than_there_is_fails() {
        assert!(System::new().allocate(usize::MAX).is_null());
        assert!(System::new().allocate(isize::MAX as usize - 4096).is_null());
    }
}
