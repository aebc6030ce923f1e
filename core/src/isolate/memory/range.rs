//! Address space from the operating system.
//!
//! In: a number of bytes. Out: a [`Range`] of that many, readable, writable and zero. It costs memory only where it has
//! been written, and can be given back in parts. Where the system cannot promise that returned pages read as zero there
//! is no range, and every instance is a plain one.
#![expect(unsafe_code, reason = "speaks to the operating system about raw memory")]

use std::{cell::Cell, ptr::NonNull};

/// The unit in which memory is given back. Larger pages exist; there the call fails, and the memory is cleared by hand.
pub(crate) const PAGE_BYTES: usize = 4096;

/// Bytes that one fault maps where pages are large.
pub(crate) const LARGE_PAGE_BYTES: usize = 2 << 20;
/// Under smaller limits all pages stay small: the last large one might reach far beyond the limit.
pub(crate) const LARGE_PAGES_FROM_BYTES: usize = 40 << 20;

/// A reserved range of addresses; unmapped when dropped.
pub(crate) struct Range {
    start: NonNull<u8>,
    bytes: usize,
    /// The offsets between which it has no addresses any more.
    hole: Cell<(usize, usize)>,
}

// SAFETY: the mapping belongs to the process, not to a thread, and this value alone ends it.
unsafe impl Send for Range {}

impl Range {
    /// Reserves `bytes` (a multiple of the page size); `None` if the system does not have them.
    pub(crate) fn reserve(bytes: usize) -> Option<Self> {
        #[cfg(test)]
        if crate::isolate::faults::refuses() {
            return None;
        }
        Some(Self { start: system::reserve(bytes)?, bytes, hole: Cell::new((bytes, bytes)) })
    }

    pub(crate) fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Clears `bytes` from `offset` and gives their memory back; both are multiples of the page size.
    ///
    /// # Safety
    /// Nothing may refer to anything in there.
    pub(crate) unsafe fn give_back(&self, offset: usize, bytes: usize) {
        debug_assert!(offset.is_multiple_of(PAGE_BYTES) && offset + bytes <= self.bytes);
        // SAFETY: within the mapping, which is ours; the caller vouches that nobody reads it.
        unsafe {
            let start = self.start.as_ptr().add(offset);
            if !system::give_back(start, bytes) {
                start.write_bytes(0, bytes);
            }
        }
    }

    /// Gives the addresses between two offsets back, once and for good; both are multiples of the page size. Others may
    /// be mapped there later. Returns the number of bytes.
    ///
    /// # Safety
    /// Nothing refers to anything in there, or ever will.
    pub(crate) unsafe fn cut(&self, from: usize, to: usize) -> usize {
        debug_assert!(from.is_multiple_of(PAGE_BYTES) && to.is_multiple_of(PAGE_BYTES));
        if from >= to || to > self.bytes || self.hole.get() != (self.bytes, self.bytes) {
            return 0;
        }
        self.hole.set((from, to));
        // SAFETY: within the mapping, which is ours; the caller vouches that nobody reads it.
        unsafe { system::release(self.start.as_ptr().add(from), to - from) };
        to - from
    }

    /// Asks for small pages everywhere: a small heap then stays small.
    pub(crate) fn prefer_small_pages(&self) {
        // SAFETY: the mapping is ours; advice changes no content.
        unsafe { system::prefer_large_pages(self.start.as_ptr(), self.bytes, false) }
    }

    /// Requests large pages or small ones, except for `margin` bytes at either end. With large ones a heap of many
    /// megabytes is mapped and given back in hundreds of steps less.
    pub(crate) fn set_large_pages(&self, margin: usize, large: bool) {
        let Some(bytes) = self.bytes.checked_sub(2 * margin) else { return };
        // SAFETY: within the mapping; advice changes no content.
        unsafe { system::prefer_large_pages(self.start.as_ptr().add(margin), bytes, large) }
    }

    /// Makes the whole range read-only. Best effort: it guards against our own mistakes.
    pub(crate) fn seal(&self) {
        // SAFETY: the mapping is ours, and `&mut` access to it is handed out nowhere.
        unsafe { system::seal(self.start.as_ptr(), self.bytes) }
    }
}

/// Gives the memory of whole pages back, so that they read as zero. If the system declines, returns false and they keep
/// their content.
///
/// # Safety
/// The pages are within a range, and nothing refers to anything in there.
pub(crate) unsafe fn give_back_pages(address: usize, bytes: usize) -> bool {
    // SAFETY: as the caller promises.
    unsafe { system::give_back(std::ptr::with_exposed_provenance_mut(address), bytes) }
}

impl Drop for Range {
    fn drop(&mut self) {
        let (from, to) = self.hole.get();
        // SAFETY: mapped by `reserve`, and not unmapped before but for the hole.
        unsafe {
            system::release(self.start.as_ptr(), from);
            if to < self.bytes {
                system::release(self.start.as_ptr().add(to), self.bytes - to);
            }
        }
    }
}

#[cfg(all(target_os = "linux", target_pointer_width = "64", not(isolane_portable)))]
mod system {
    use super::NonNull;
    use std::ptr;

    pub(super) fn reserve(bytes: usize) -> Option<NonNull<u8>> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new anonymous mapping at an address of the system's choice touches nothing.
        let start = unsafe { libc::mmap(ptr::null_mut(), bytes, access, kind, -1, 0) };
        if start == libc::MAP_FAILED { None } else { NonNull::new(start.cast()) }
    }

    /// False if the system declines, as it does for locked memory.
    pub(super) unsafe fn give_back(start: *mut u8, bytes: usize) -> bool {
        // SAFETY: the caller owns the range.
        unsafe { libc::madvise(start.cast(), bytes, libc::MADV_DONTNEED) == 0 }
    }

    pub(super) unsafe fn prefer_large_pages(start: *mut u8, bytes: usize, prefer: bool) {
        let advice = if prefer { libc::MADV_HUGEPAGE } else { libc::MADV_NOHUGEPAGE };
        // SAFETY: the caller owns the range. Advice that is not taken changes nothing.
        unsafe { libc::madvise(start.cast(), bytes, advice) };
    }

    pub(super) unsafe fn seal(start: *mut u8, bytes: usize) {
        // SAFETY: the caller owns the range.
        unsafe { libc::mprotect(start.cast(), bytes, libc::PROT_READ) };
    }

    pub(super) unsafe fn release(start: *mut u8, bytes: usize) {
        // SAFETY: the caller owns the range and gives it up.
        unsafe { libc::munmap(start.cast(), bytes) };
    }
}

/// No ranges on other systems, until someone writes and measures them: macOS keeps the content of returned memory,
/// Windows wants memory committed first, and 32 bits have no addresses to spare. Tests of the portable code have none
/// on Linux either.
#[cfg(not(all(target_os = "linux", target_pointer_width = "64", not(isolane_portable))))]
mod system {
    use super::NonNull;

    pub(super) fn reserve(_bytes: usize) -> Option<NonNull<u8>> {
        None
    }
    pub(super) unsafe fn give_back(_start: *mut u8, _bytes: usize) -> bool {
        false
    }
    pub(super) unsafe fn prefer_large_pages(_start: *mut u8, _bytes: usize, _prefer: bool) {}
    pub(super) unsafe fn seal(_start: *mut u8, _bytes: usize) {}
    pub(super) unsafe fn release(_start: *mut u8, _bytes: usize) {}
}

#[cfg(all(test, target_os = "linux", target_pointer_width = "64", not(isolane_portable)))]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_back_is_zero() {
        let range = Range::reserve(1 << 20).expect("a MiB of addresses");
        // SAFETY: all offsets are within the range, and nothing else refers to it.
        unsafe {
            range.start().write_bytes(0xa5, 8 * PAGE_BYTES);
            range.give_back(PAGE_BYTES, 2 * PAGE_BYTES);
            assert_eq!(*range.start(), 0xa5);
            assert_eq!(*range.start().add(PAGE_BYTES), 0);
            assert_eq!(*range.start().add(3 * PAGE_BYTES), 0xa5);
        }
    }

    #[test]
    fn what_is_cut_out_belongs_to_others() {
        let range = Range::reserve(64 * PAGE_BYTES).expect("addresses");
        // SAFETY: nothing refers to the range.
        let bytes = unsafe { range.cut(16 * PAGE_BYTES, 63 * PAGE_BYTES) };
        assert_eq!(bytes, 47 * PAGE_BYTES);
        // Another thread may have taken some of the place by now.
        let (access, kind) = (libc::PROT_READ, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        let mut places = (16..63).map(|page| range.start().wrapping_add(page * PAGE_BYTES));
        let mut taken = [0];
        let other = places.find(|place| {
            let fixed = kind | libc::MAP_FIXED_NOREPLACE;
            // SAFETY: it only succeeds where nothing is mapped.
            let start = unsafe { libc::mmap(place.cast(), PAGE_BYTES, access, fixed, -1, 0) };
            start == place.cast()
        });
        let other = other.expect("the place is free");
        // SAFETY: within the range, outside of its hole.
        unsafe { range.start().add(63 * PAGE_BYTES).write(1) };
        drop(range);
        // SAFETY: writes one byte for one page.
        let mapped = unsafe { libc::mincore(other.cast(), PAGE_BYTES, taken.as_mut_ptr()) };
        assert_eq!(mapped, 0, "it is still there");
        // SAFETY: mapped above.
        unsafe { system::release(other, PAGE_BYTES) };
    }

    #[test]
    fn too_much_is_no_range() {
        assert!(Range::reserve(1 << 62).is_none());
    }
}
