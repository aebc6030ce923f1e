//! What is different where a sanitizer watches: in builds of `tests/sanitizers` and `tests/fuzz`.
//!
//! Frames are larger there, on our side of the engine's C and in the compiler. A sanitizer sees the
//! blocks of the process's allocator, not those of an arena: a slot is one block to it; so such a
//! build can be told to have plain homes alone. And ThreadSanitizer does not see what the standard
//! library does out of line, which is how a contended lock is taken: it is told.
#![cfg_attr(
    isolane_sanitized = "thread",
    expect(unsafe_code, reason = "speaks to the sanitizer's runtime")
)]

use std::sync::MutexGuard;

/// How much larger a stack has to be.
pub(crate) const FRAMES: usize = if cfg!(isolane_sanitized) { 8 } else { 1 };

/// How much longer a test waits before it fails.
#[cfg(test)]
pub(crate) const PATIENCE: u32 = if cfg!(isolane_sanitized) { 20 } else { 1 };

/// Whether every home is to be a plain one. The tests of this crate's rooms choose for themselves.
pub(crate) fn plain_homes() -> bool {
    let chosen = || std::env::var_os("ISOLANE_HOMES").is_some_and(|kind| kind == "plain");
    cfg!(all(isolane_sanitized, not(test))) && chosen()
}

#[cfg(not(isolane_sanitized = "thread"))]
mod lock {
    use super::MutexGuard;

    #[inline]
    pub(crate) fn acquired<T>(_guard: &MutexGuard<'_, T>) {}

    #[inline]
    pub(crate) fn releasing<T>(_guard: &MutexGuard<'_, T>) {}
}

#[cfg(isolane_sanitized = "thread")]
mod lock {
    use super::MutexGuard;
    use std::ffi::c_void;

    unsafe extern "C" {
        fn __tsan_acquire(address: *mut c_void);
        fn __tsan_release(address: *mut c_void);
    }

    /// The lock was taken, however that came about.
    pub(crate) fn acquired<T>(guard: &MutexGuard<'_, T>) {
        // SAFETY: an address is a name to the sanitizer; it reads nothing there.
        unsafe { __tsan_acquire(word(guard)) }
    }

    /// The lock is about to be let go where the sanitizer does not see it.
    pub(crate) fn releasing<T>(guard: &MutexGuard<'_, T>) {
        // SAFETY: as above.
        unsafe { __tsan_release(word(guard)) }
    }

    /// Where the lock itself is, which is what code that is seen releases: a word and a flag stand
    /// before the data.
    fn word<T>(guard: &MutexGuard<'_, T>) -> *mut c_void {
        (&raw const **guard)
            .wrapping_byte_sub(5_usize.next_multiple_of(align_of::<T>()))
            .cast::<c_void>()
            .cast_mut()
    }
}

pub(crate) use self::lock::{acquired, releasing};
