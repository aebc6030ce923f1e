//! CPU time of the calling thread, where the system has it; wall time elsewhere.

#![cfg_attr(any(unix, windows), expect(unsafe_code, reason = "asks the system's clock"))]

use std::time::Duration;

/// A moment in the CPU time of one thread. Costs a system call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThreadTime(Duration);

impl ThreadTime {
    #[cfg(unix)]
    pub(crate) fn now() -> Self {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: a place for the time; a missing clock leaves it at zero.
        unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        Self(Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0)))
    }

    #[cfg(windows)]
    pub(crate) fn now() -> Self {
        use windows_sys::Win32::{
            Foundation::FILETIME,
            System::Threading::{GetCurrentThread, GetThreadTimes},
        };
        let none = FILETIME { dwLowDateTime: 0, dwHighDateTime: 0 };
        let (mut created, mut ended, mut system, mut own) = (none, none, none, none);
        // SAFETY: the handle of this thread, and four places.
        unsafe {
            let thread = GetCurrentThread();
            let (created, ended) = (&raw mut created, &raw mut ended);
            GetThreadTimes(thread, created, ended, &raw mut system, &raw mut own);
        }
        // Units of 100 nanoseconds, updated every few milliseconds.
        let ticks =
            |time: FILETIME| u64::from(time.dwHighDateTime) << 32 | u64::from(time.dwLowDateTime);
        Self(Duration::from_nanos(ticks(system).saturating_add(ticks(own)).saturating_mul(100)))
    }

    #[cfg(not(any(unix, windows)))]
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
