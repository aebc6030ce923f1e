//! Whether a thread that calls its host and then a builtin has got into the builtin. No event tells, but the time that the
//! thread has computed since the call does, however busy the machine is.

use std::{path::PathBuf, thread, time::Duration};

/// Far more than the way from a host function into a builtin takes.
const WAY: Duration = Duration::from_millis(20);

/// A thread, and the time that it had computed when it was looked at.
pub(crate) struct Computing {
    clock: Option<PathBuf>,
    before: Duration,
}

impl Computing {
    /// The calling thread: a host function's is that of the run.
    pub(crate) fn here() -> Self {
        let thread = std::fs::read_link("/proc/thread-self").ok();
        let clock = thread.map(|thread| PathBuf::from("/proc").join(thread).join("schedstat"));
        let mut here = Self { clock, before: Duration::ZERO };
        here.before = here.computed().unwrap_or_default();
        here
    }

    /// Waits until the thread has computed for as long as the way into a builtin takes.
    pub(crate) fn wait_until_inside(&self) {
        while self.computed().is_some_and(|computed| computed < self.before + WAY) {
            thread::sleep(Duration::from_millis(2));
        }
        if self.computed().is_none() {
            // The system does not tell.
            thread::sleep(10 * WAY);
        }
    }

    fn computed(&self) -> Option<Duration> {
        let told = std::fs::read_to_string(self.clock.as_ref()?).ok()?;
        let nanoseconds = told.split_whitespace().next()?.parse().ok()?;
        Some(Duration::from_nanos(nanoseconds))
    }
}
