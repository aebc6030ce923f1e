//! The number of the calling process, without a system call.
//!
//! The number is asked for several times in each run and once in each call of the host, and a system call costs some
//! hundred nanoseconds. So it is kept in a page that the system empties in a forked child. In: nothing. Out: the number.
#![expect(unsafe_code, reason = "maps a page and shares it for the life of the process")]

use std::{
    ptr,
    sync::atomic::{AtomicPtr, AtomicU32, Ordering},
};

/// The cell in the page; null until the first call, and [`NO_PAGE`] if the system has no such page.
static CELL: AtomicPtr<AtomicU32> = AtomicPtr::new(ptr::null_mut());

/// Stands for the cell where there is no page. It stays zero.
static NO_PAGE: AtomicU32 = AtomicU32::new(0);

const PAGE_BYTES: usize = 4096;

/// The number of the calling process.
pub(super) fn process_number() -> u32 {
    let cell = cell();
    let known = cell.load(Ordering::Relaxed);
    if known != 0 {
        return known;
    }
    let number = std::process::id();
    if !ptr::eq(cell, &raw const NO_PAGE) {
        cell.store(number, Ordering::Relaxed);
    }
    number
}

/// A fork may happen in the middle of this, so it takes no lock: the first thread to come publishes a complete cell.
fn cell() -> &'static AtomicU32 {
    let published = CELL.load(Ordering::Acquire);
    // SAFETY: null, or published below for the life of the process.
    if let Some(cell) = unsafe { published.as_ref() } {
        return cell;
    }
    let page = emptied_page();
    let cell = if page.is_null() { (&raw const NO_PAGE).cast_mut() } else { page };
    match CELL.compare_exchange(ptr::null_mut(), cell, Ordering::AcqRel, Ordering::Acquire) {
        // SAFETY: a static, or the start of a page that is never unmapped.
        Ok(_) => unsafe { &*cell },
        Err(other) => {
            if !page.is_null() {
                // SAFETY: mapped above, and no other thread has seen it.
                unsafe { libc::munmap(page.cast(), PAGE_BYTES) };
            }
            // SAFETY: not null, so published for the life of the process.
            unsafe { &*other }
        }
    }
}

/// A page that a forked child finds empty; null if the system cannot do that.
fn emptied_page() -> *mut AtomicU32 {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping, where the system chooses.
    let page = unsafe { libc::mmap(ptr::null_mut(), PAGE_BYTES, access, kind, -1, 0) };
    if page == libc::MAP_FAILED {
        return ptr::null_mut();
    }
    // SAFETY: the page above. The rounding up to the system's pages does no harm.
    if unsafe { libc::madvise(page, PAGE_BYTES, libc::MADV_WIPEONFORK) } != 0 {
        // SAFETY: mapped above, and nothing uses it.
        unsafe { libc::munmap(page, PAGE_BYTES) };
        return ptr::null_mut();
    }
    page.cast()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_systems_number() {
        assert_eq!(process_number(), std::process::id());
        assert_eq!(process_number(), std::process::id());
    }

    #[test]
    fn a_forked_child_has_its_own() {
        let parents = process_number();
        // SAFETY: the child calls only functions that take no lock, and ends.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let own = process_number();
            let right = own != parents && own == std::process::id() && process_number() == own;
            // SAFETY: ends the child at once.
            unsafe { libc::_exit(i32::from(!right)) };
        }
        let mut status = 0;
        // SAFETY: waits for the child above.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(status, 0, "the child sees its own number");
        assert_eq!(process_number(), parents);
    }
}
