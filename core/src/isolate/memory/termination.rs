//! A request to a run to end, from any thread; and the figures of its memory that other threads need.
//!
//! In: [`Termination::raise`], by the holder of a run's handle. Out: a flag that the run's heap and interrupt handler
//! read. Where the engine's count of polls is known, it is set to one, so that the engine calls the handler at its next
//! call or backward jump. Keeps `terminate()`: it is idempotent, it works before the first instruction, and a handle of
//! a settled run ends nothing else.
#![expect(unsafe_code, reason = "writes a counter of the engine from another thread")]

use super::countdown::Countdown;
use crate::{os::sync::Mutex, value::InFlight};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The flags of one run; never lowered.
pub(crate) struct Termination {
    raised: AtomicBool,
    /// The limit was hit: the run has to end, and its watchdog may have to help.
    exhausted: AtomicBool,
    /// Messages between the run and its host, which count as the run's.
    pub(crate) in_flight: Arc<InFlight>,
    countdown: Mutex<Attached>,
}

/// The engine's counts of steps to its next poll; none unless the run is armed.
struct Attached(Countdown);

// SAFETY: followed only under the lock, and taken away before its targets go.
unsafe impl Send for Attached {}

impl Default for Termination {
    fn default() -> Self {
        Self {
            raised: AtomicBool::new(false),
            exhausted: AtomicBool::new(false),
            in_flight: Arc::default(),
            countdown: Mutex::new(Attached(Countdown::NONE)),
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
        // Under the lock, so that it stays attached.
        self.countdown.lock().0.set(1);
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
    /// `countdown` is valid until `detach`.
    pub(in crate::isolate) unsafe fn attach(&self, countdown: Countdown) {
        self.countdown.lock().0 = countdown;
    }

    pub(in crate::isolate) fn detach(&self) {
        self.countdown.lock().0 = Countdown::NONE;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_reaches_the_engine_while_attached_and_not_after() {
        let (mut counter, termination) = (10_000, Termination::default());
        // SAFETY: detached before the counter goes.
        unsafe { termination.attach(Countdown::new([&raw mut counter, std::ptr::null_mut()])) };
        termination.raise();
        assert_eq!((counter, termination.is_raised()), (1, true));
        termination.detach();
        counter = 7;
        termination.raise();
        assert_eq!((counter, termination.is_raised()), (7, true));
    }
}
