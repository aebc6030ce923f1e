//! Asking a run to end, from any thread.
//!
//! In: [`Ending::raise`], by whoever holds the handle of a run. Out: a flag that the run's heap and
//! interrupt handler look at, and, where it is known, the engine's count of polls set to one, so
//! that it asks the handler at its next call or backward jump. Keeps `terminate()`: idempotent, it
//! works before the first instruction, and a handle of a settled run ends nothing else.
#![expect(unsafe_code, reason = "writes a counter of the engine from another thread")]

use crate::sync::Mutex;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

/// The flag of one run; never lowered.
pub(crate) struct Ending {
    raised: AtomicBool,
    countdown: Mutex<Countdown>,
}

/// Where the engine counts down to its next poll; null unless the run is armed and the field known.
struct Countdown(*mut i32);

// SAFETY: followed only under the lock, and set to null before what it points at goes.
unsafe impl Send for Countdown {}

impl Default for Ending {
    fn default() -> Self {
        Self { raised: AtomicBool::new(false), countdown: Mutex::new(Countdown(ptr::null_mut())) }
    }
}

impl Ending {
    /// Asks the run to end. May be called again, should the run not react.
    pub(crate) fn raise(&self) {
        self.raised.store(true, Ordering::Relaxed);
        let countdown = self.countdown.lock();
        if !countdown.0.is_null() {
            // SAFETY: attached, so within a context that lives, and aligned. The engine counts down
            // with plain loads and stores, and may overwrite this one: in a loop of nothing but
            // counting, where the next poll is near anyway. No processor tears an aligned word.
            unsafe { AtomicI32::from_ptr(countdown.0) }.store(1, Ordering::Relaxed);
        }
    }

    /// Whether the run was asked to end.
    pub(crate) fn is_raised(&self) -> bool {
        self.raised.load(Ordering::Relaxed)
    }

    /// Connects the flag with an engine.
    ///
    /// # Safety
    /// `countdown` is null, or valid until `detach`.
    pub(super) unsafe fn attach(&self, countdown: *mut i32) {
        self.countdown.lock().0 = countdown;
    }

    pub(super) fn detach(&self) {
        self.countdown.lock().0 = ptr::null_mut();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_reaches_the_engine_while_attached_and_not_after() {
        let (mut counter, ending) = (10_000, Ending::default());
        // SAFETY: detached before the counter goes.
        unsafe { ending.attach(&raw mut counter) };
        ending.raise();
        assert_eq!((counter, ending.is_raised()), (1, true));
        ending.detach();
        counter = 7;
        ending.raise();
        assert_eq!((counter, ending.is_raised()), (7, true));
    }
}
