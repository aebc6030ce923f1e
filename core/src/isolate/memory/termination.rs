//! A request to a run to end, from any thread; and the figures of its memory that other threads need.
//!
//! In: [`Termination::raise`], by the holder of a run's handle. Out: a flag that the run's heap and interrupt handler
//! read. Where the engine's count of polls is known, it is set to one, so that the engine calls the handler at its next
//! call or backward jump. Keeps `terminate()`: it is idempotent, it works before the first instruction, and a handle of
//! a settled run ends nothing else.
#![expect(unsafe_code, reason = "writes a counter of the engine from another thread")]

use crate::{os::sync::Mutex, value::InFlight};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

/// The flags of one run; never lowered.
pub(crate) struct Termination {
    raised: AtomicBool,
    /// The limit was hit: the run has to end, and its watchdog may have to help.
    exhausted: AtomicBool,
    /// Messages between the run and its host, which count as the run's.
    pub(crate) in_flight: Arc<InFlight>,
    countdown: Mutex<Countdown>,
}

/// The engine's count of steps to its next poll; null unless the run is armed and the field known.
struct Countdown(*mut i32);

// SAFETY: followed only under the lock, and set to null before its target goes.
unsafe impl Send for Countdown {}

impl Default for Termination {
    fn default() -> Self {
        Self {
            raised: AtomicBool::new(false),
            exhausted: AtomicBool::new(false),
            in_flight: Arc::default(),
            countdown: Mutex::new(Countdown(ptr::null_mut())),
        }
    }
}

impl Termination {
    /// The flags of one cell of a session. All cells of the session count the same messages.
    pub(crate) fn of_cell(in_flight: Arc<InFlight>) -> Self {
        Self { in_flight, ..Self::default() }
    }

    /// Asks the run to end. May be called again if the run does not react.
    pub(crate) fn raise(&self) {
        self.raised.store(true, Ordering::Relaxed);
        self.hurry();
    }

    fn hurry(&self) {
        let countdown = self.countdown.lock();
        if !countdown.0.is_null() {
            // SAFETY: attached, so within a context that lives, and aligned. The engine counts down with plain loads
            // and stores. It may overwrite this store in a loop of nothing but counting, where the next poll is near
            // anyway. No processor tears an aligned word.
            unsafe { AtomicI32::from_ptr(countdown.0) }.store(1, Ordering::Relaxed);
        }
    }

    /// Whether the run was asked to end.
    pub(crate) fn is_raised(&self) -> bool {
        self.raised.load(Ordering::Relaxed)
    }

    /// Makes the run end because its limit was hit, unless it was asked to end before.
    pub(crate) fn exhaust(&self) {
        if !self.is_raised() {
            self.exhausted.store(true, Ordering::Relaxed);
            self.hurry();
        }
    }

    /// Whether the run has to end because it hit its limit.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.exhausted.load(Ordering::Relaxed)
    }

    /// Connects the flag with an engine.
    ///
    /// # Safety
    /// `countdown` is null, or valid until `detach`.
    pub(in crate::isolate) unsafe fn attach(&self, countdown: *mut i32) {
        self.countdown.lock().0 = countdown;
    }

    pub(in crate::isolate) fn detach(&self) {
        self.countdown.lock().0 = ptr::null_mut();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_reaches_the_engine_while_attached_and_not_after() {
        let (mut counter, termination) = (10_000, Termination::default());
        // SAFETY: detached before the counter goes.
        unsafe { termination.attach(&raw mut counter) };
        termination.raise();
        assert_eq!((counter, termination.is_raised()), (1, true));
        termination.detach();
        counter = 7;
        termination.raise();
        assert_eq!((counter, termination.is_raised()), (7, true));
    }
}
