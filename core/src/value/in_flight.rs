//! Messages in flight between a run and its host.
//!
//! In: messages that one side has sent and the other has not taken yet. Out: their bytes together, which count against
//! the run's limit. So whichever side is slower, no more of them can be in flight than the run may hold.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// The bytes in flight of one run. Any thread may add and take.
#[derive(Debug, Default)]
pub(crate) struct InFlight {
    bytes: AtomicUsize,
    /// The most at once when something was charged.
    most_bytes: AtomicUsize,
}

impl InFlight {
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// The most bytes at once of which a part was charged.
    pub(crate) fn most_bytes(&self) -> usize {
        self.most_bytes.load(Ordering::Relaxed)
    }
}

impl InFlight {
    /// Counts so many bytes, if all together are no more than that then.
    pub(crate) fn charge(self: &Arc<Self>, bytes: usize, most_bytes: usize) -> Option<Charge> {
        let grown = |held: usize| held.checked_add(bytes).filter(|held| *held <= most_bytes);
        let held = self.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, grown).ok()?;
        self.most_bytes.fetch_max(held + bytes, Ordering::Relaxed);
        Some(Charge { _toll: Toll { in_flight: Arc::clone(self), bytes } })
    }
}

/// Bytes that are held for a run and count against its memory limit, until this is dropped.
#[derive(Debug)]
pub struct Charge {
    _toll: Toll,
}

/// Counts its bytes as in flight for as long as it lives.
#[derive(Debug)]
pub(super) struct Toll {
    in_flight: Arc<InFlight>,
    bytes: usize,
}

impl Toll {
    pub(super) fn new(in_flight: &Arc<InFlight>, bytes: usize) -> Self {
        in_flight.bytes.fetch_add(bytes, Ordering::Relaxed);
        Self { in_flight: Arc::clone(in_flight), bytes }
    }
}

impl Drop for Toll {
    fn drop(&mut self) {
        self.in_flight.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
