//! What the driver has to do at some moment.

use std::{cmp::Ordering, sync::Weak, time::Instant};

/// Something that is due then.
pub(crate) struct Timer<J> {
    pub(crate) at: Instant,
    pub(crate) what: What<J>,
}

pub(crate) enum What<J> {
    /// Settle that run if it has not ended, and kill its worker.
    End(Weak<J>),
    /// See who computes for long.
    Tick,
    /// See which workers nobody uses.
    Idle,
    /// Tell the zygote what it could not take before.
    Orders,
}

impl<J> PartialEq for Timer<J> {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}

impl<J> Eq for Timer<J> {}

impl<J> PartialOrd for Timer<J> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The next one is the greatest.
impl<J> Ord for Timer<J> {
    fn cmp(&self, other: &Self) -> Ordering {
        other.at.cmp(&self.at)
    }
}
