//! Locks that outlive a panic: what they guard is whole between statements.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks, whatever has happened to the lock's former holders.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
