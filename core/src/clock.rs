//! CPU time of the calling thread, where the system tells it; wall time elsewhere.

#![cfg_attr(unix, expect(unsafe_code, reason = "asks the system's clock"))]

use std::time::Duration;

/// A moment in the CPU time of one thread. Costs a system call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThreadTime(Duration);

impl ThreadTime {
    #[cfg(unix)]
    pub(crate) fn now() -> Self {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: a place for the time; a clock that is not there leaves it at zero.
        unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        Self(Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0)))
    }

    #[cfg(not(unix))]
    pub(crate) fn now() -> Self {
        use std::{sync::OnceLock, time::Instant};
        static START: OnceLock<Instant> = OnceLock::new();
        Self(START.get_or_init(Instant::now).elapsed())
    }

    /// CPU time since that moment, on the same thread.
    pub(crate) fn elapsed(self) -> Duration {
        Self::now().0.saturating_sub(self.0)
    }
}
