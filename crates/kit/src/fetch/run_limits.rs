//! The limits that the requests of one run share.
//!
//! In: each request as it begins, and bytes as they go either way. Out: a turn, or the `FetchLimit`.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{failure, options::FetchLimits};
use crate::error::KitError;

/// The requests of a run so far. All clones are one.
#[derive(Clone, Debug)]
pub struct RunLimits(Arc<Counts>);

#[derive(Debug)]
struct Counts {
    limits: FetchLimits,
    calls: AtomicU64,
    bytes: AtomicU64,
    turns: Arc<Semaphore>,
}

impl RunLimits {
    /// Those of a run that has requested nothing.
    #[must_use]
    pub fn new(limits: &FetchLimits) -> Self {
        let at_a_time = usize::try_from(limits.max_in_flight).unwrap_or(usize::MAX);
        Self(Arc::new(Counts {
            limits: *limits,
            calls: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            turns: Arc::new(Semaphore::new(at_a_time.clamp(1, Semaphore::MAX_PERMITS))),
        }))
    }

    /// Counts a request.
    pub(super) fn call(&self) -> Result<(), KitError> {
        let most = self.0.limits.max_calls;
        if self.0.calls.fetch_add(1, Ordering::Relaxed) < most {
            return Ok(());
        }
        Err(failure::limit(format!("more than {most} calls in one run")))
    }

    /// Waits until the request may begin. It is over when the permit is dropped.
    pub(super) async fn turn(&self) -> Option<OwnedSemaphorePermit> {
        // The semaphore is never closed.
        Arc::clone(&self.0.turns).acquire_owned().await.ok()
    }

    /// Counts bytes of a request or of an answer.
    pub(super) fn bytes(&self, bytes: u64) -> Result<(), KitError> {
        let most = self.0.limits.max_total_bytes;
        if self.0.bytes.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes) <= most {
            return Ok(());
        }
        Err(failure::limit(format!("more than {most} bytes in one run")))
    }
}
