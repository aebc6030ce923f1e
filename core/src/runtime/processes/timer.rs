//! What the driver has to do at some moment.

use std::{cmp::Ordering, sync::Weak, time::Instant};

use super::run::Run;

/// Something that is due then.
pub(crate) struct Timer {
    pub(crate) at: Instant,
    pub(crate) what: What,
}

pub(crate) enum What {
    /// Settle that run if it has not ended, and kill its worker.
    End(Weak<Run>),
    /// See who computes for long.
    Tick,
    /// See which workers nobody uses.
    Idle,
    /// Tell the zygote what it could not take before.
    Orders,
}

impl PartialEq for Timer {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}

impl Eq for Timer {}

impl PartialOrd for Timer {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The next one is the greatest.
impl Ord for Timer {
    fn cmp(&self, other: &Self) -> Ordering {
        other.at.cmp(&self.at)
    }
}
