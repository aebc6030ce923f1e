//! The errors that the host threw in the sandbox last, until the result may name one.
//!
//! In: errors with what identifies their throws, and the sizes of messages of the sandbox. Out: the result, with the
//! error that ended the run.

use std::sync::atomic::Ordering;

use super::HostSide;
use crate::{
    Cause, ExecutionResult, KEPT_THROWS, LARGE_THROW_BYTES, RunHandle, Value, error::Source,
};

impl HostSide {
    /// The result of the run, once, with the host's own error if one of those ended it.
    pub(in crate::rust) fn take_result(&self, remote: &RunHandle) -> Option<ExecutionResult> {
        let mut result = self.feed.take_result(remote)?;
        let root = self.session.as_deref().unwrap_or(self);
        let thrown = std::mem::take(&mut *root.thrown.lock());
        if let Some(error) = &mut result.error {
            error.cause = error.cause.take().and_then(|cause| match cause {
                Cause::Error(_) => Some(cause),
                // Errors that the library itself threw were not kept.
                Cause::Call(_) | Cause::Promise(_) => {
                    let found = thrown.into_iter().rfind(|(known, _)| *known == cause);
                    found.map(|(_, error)| Cause::Error(error))
                }
            });
        }
        Some(result)
    }

    /// Keeps an error that is about to be thrown in the sandbox.
    pub(super) fn keep_thrown(&self, cause: Cause, error: Option<Source>) {
        let Some(error) = error.filter(|_| !self.is_over()) else { return };
        let most = if self.has_large.load(Ordering::Relaxed) { 1 } else { KEPT_THROWS };
        self.thrown.lock().push_back((cause, error));
        self.forget_thrown_but(most);
    }

    /// Forgets the errors that may hold values of the sandbox, which count against no limit any more.
    pub(super) fn forget_thrown(&self) {
        if self.has_large.load(Ordering::Relaxed) {
            self.forget_thrown_but(0);
        }
    }

    /// Forgets all errors but so many of the latest.
    fn forget_thrown_but(&self, most: usize) {
        let mut thrown = self.thrown.lock();
        let surplus = thrown.len().saturating_sub(most);
        let oldest: Vec<_> = thrown.drain(..surplus).collect();
        drop(thrown);
        // Dropped without the lock: the error's type may do anything when it is dropped.
        drop(oldest);
    }

    /// Notes the size of a message of the sandbox. After a large one, of the errors that were kept before only the
    /// latest is.
    pub(super) fn note_size(&self, message: &Value) {
        if message.held_bytes() <= LARGE_THROW_BYTES {
            return;
        }
        self.has_large.store(true, Ordering::Relaxed);
        self.forget_thrown_but(1);
    }
}
