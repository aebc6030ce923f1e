//! Messages on their way between a run and its host.
//!
//! In: messages that one side has sent and the other has not taken yet. Out: how many bytes they are
//! together, which counts against the run's limit: whichever side is the slower one, no more of them
//! can be under way than the run may hold.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// The bytes under way of one run. Any thread may add and take.
#[derive(Debug, Default)]
pub(crate) struct InFlight(AtomicUsize);

impl InFlight {
    pub(crate) fn bytes(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// Counts its bytes as under way for as long as it lives.
#[derive(Debug)]
pub(super) struct Toll {
    in_flight: Arc<InFlight>,
    bytes: usize,
}

impl Toll {
    pub(super) fn new(in_flight: &Arc<InFlight>, bytes: usize) -> Self {
        in_flight.0.fetch_add(bytes, Ordering::Relaxed);
        Self { in_flight: Arc::clone(in_flight), bytes }
    }
}

impl Drop for Toll {
    fn drop(&mut self) {
        self.in_flight.0.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
