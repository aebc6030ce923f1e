//! Locks and condition variables without poisoning: a panic under a lock ends one run.
//!
//! They wrap the standard library's, whose whole state is in the lock itself. A lock that keeps its sleepers in a table
//! of the process would keep its parent's sleepers in a forked child, whose threads would then wait behind threads that
//! do not exist.

use std::{
    sync::{
        self, MutexGuard, PoisonError, TryLockError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use super::sanitized;

/// As [`sync::Mutex`].
#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(sync::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(sync::Mutex::new(value))
    }

    #[cfg(test)]
    pub(crate) fn into_inner(self) -> T {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        let guard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sanitized::acquired(&guard);
        guard
    }

    /// `None` if the lock is held.
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        let guard = match self.0.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        sanitized::acquired(&guard);
        Some(guard)
    }
}

/// As [`sync::Condvar`], for conditions that only become true under the waiter's lock. There a read of the count of
/// sleepers saves the system call if nobody waits.
#[derive(Debug, Default)]
pub(crate) struct Condvar {
    condvar: sync::Condvar,
    /// Raised under the lock, so a thread that changes the condition under it later sees the count.
    sleepers: AtomicUsize,
}

impl Condvar {
    pub(crate) const fn new() -> Self {
        Self { condvar: sync::Condvar::new(), sleepers: AtomicUsize::new(0) }
    }

    pub(crate) fn notify_one(&self) {
        if self.sleepers.load(Ordering::Relaxed) > 0 {
            self.condvar.notify_one();
        }
    }

    pub(crate) fn notify_all(&self) {
        if self.sleepers.load(Ordering::Relaxed) > 0 {
            self.condvar.notify_all();
        }
    }

    pub(crate) fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        self.sleepers.fetch_add(1, Ordering::Relaxed);
        sanitized::releasing(&guard);
        let guard = self.condvar.wait(guard).unwrap_or_else(PoisonError::into_inner);
        sanitized::acquired(&guard);
        self.sleepers.fetch_sub(1, Ordering::Relaxed);
        guard
    }

    /// Also returns whether the whole time passed.
    pub(crate) fn wait_for<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        most: Duration,
    ) -> (MutexGuard<'a, T>, bool) {
        self.sleepers.fetch_add(1, Ordering::Relaxed);
        sanitized::releasing(&guard);
        let (guard, timeout) =
            self.condvar.wait_timeout(guard, most).unwrap_or_else(PoisonError::into_inner);
        sanitized::acquired(&guard);
        self.sleepers.fetch_sub(1, Ordering::Relaxed);
        (guard, timeout.timed_out())
    }

    pub(crate) fn wait_until<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        moment: Instant,
    ) -> MutexGuard<'a, T> {
        self.wait_for(guard, moment.saturating_duration_since(Instant::now())).0
    }
}
