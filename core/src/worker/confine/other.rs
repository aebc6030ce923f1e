//! The phases on systems where nothing can be had. All of it is reported as not applied.

use super::Confinement;
use std::time::Duration;

/// A launcher after its phase.
pub(crate) struct Launched(());

/// A nursery after its phase.
pub(crate) struct Nursery(());

/// A worker after its phase.
pub(crate) struct Worker(());

/// Leaves the process as it is.
pub(crate) fn launcher(_wanted: Confinement) -> Launched {
    Launched(())
}

impl Launched {
    /// Leaves the process as it is.
    pub(crate) fn nursery(self) -> Nursery {
        Nursery(())
    }
}

impl Nursery {
    /// Nothing.
    pub(crate) fn confinement(&self) -> Confinement {
        Confinement::default()
    }

    /// Leaves the process as it is.
    pub(crate) fn worker<S>(&self, socket: S) -> Option<(Worker, S)> {
        Some((Worker(()), socket))
    }
}

impl Worker {
    /// Limits nothing, which was not promised either.
    pub(crate) fn limit(&self, _given_back_bytes: u64, _room_bytes: u64, _cpu: Duration) -> bool {
        true
    }
}
