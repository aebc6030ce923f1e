//! Differences in builds with a sanitizer (`tests/sanitizers` and `tests/fuzz`).
//!
//! Stack frames are larger there, on our side of the engine's C and in the compiler. A sanitizer sees the blocks of the
//! process's allocator, but not those of an arena: a slot is one block to it. So such a build can be set to use plain
//! instances only. ThreadSanitizer does not see the library code that takes a contended lock, so we report locks to it.
#![cfg_attr(
    isolane_sanitized = "thread",
    expect(unsafe_code, reason = "speaks to the sanitizer's runtime")
)]

use std::sync::MutexGuard;

/// The factor of stack sizes.
pub(crate) const FRAMES: usize = if cfg!(isolane_sanitized) { 8 } else { 1 };

/// The factor of time limits in tests.
#[cfg(test)]
pub(crate) const PATIENCE: u32 = if cfg!(isolane_sanitized) { 20 } else { 1 };

/// Whether every instance is a plain one. Unit tests of this crate choose for themselves.
pub(crate) fn plain_instances() -> bool {
    let chosen = || std::env::var_os("ISOLANE_INSTANCES").is_some_and(|kind| kind == "plain");
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

    /// Reports that the lock was taken.
    pub(crate) fn acquired<T>(guard: &MutexGuard<'_, T>) {
        // SAFETY: an address is a name to the sanitizer; it reads nothing there.
        unsafe { __tsan_acquire(word(guard)) }
    }

    /// Reports that the lock is about to be released in code that the sanitizer does not see.
    pub(crate) fn releasing<T>(guard: &MutexGuard<'_, T>) {
        // SAFETY: as above.
        unsafe { __tsan_release(word(guard)) }
    }

    /// The address of the lock itself, which instrumented code releases. A word and a flag are before the data.
    fn word<T>(guard: &MutexGuard<'_, T>) -> *mut c_void {
        (&raw const **guard)
            .wrapping_byte_sub(5_usize.next_multiple_of(align_of::<T>()))
            .cast::<c_void>()
            .cast_mut()
    }
}

pub(crate) use self::lock::{acquired, releasing};
