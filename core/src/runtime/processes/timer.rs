//! The timers of the driver.

use std::{
    cmp::Ordering,
    sync::{Arc, Weak},
    time::Instant,
};

/// Something to check at a certain time.
pub(crate) trait Check: Send + Sync {
    fn check(self: Arc<Self>, now: Instant);
}

/// Something that is due at that time.
pub(crate) struct Timer<J> {
    pub(crate) at: Instant,
    pub(crate) what: What<J>,
}

pub(crate) enum What<J> {
    /// Settle that run if it has not ended, and kill its worker.
    End(Weak<J>),
    /// End that run: it takes longer than its caller allows.
    Overdue(Weak<J>),
    Check(Weak<dyn Check>),
    /// Find the runs that compute for long.
    Tick,
    /// Find the workers that are idle.
    Idle,
    /// Send the zygote the commands that it did not accept before.
    Orders,
}

impl<J> Timer<J> {
    /// Whether the thing that it is about is gone.
    pub(crate) fn is_moot(&self) -> bool {
        match &self.what {
            What::End(run) | What::Overdue(run) => run.strong_count() == 0,
            What::Check(checked) => checked.strong_count() == 0,
            What::Tick | What::Idle | What::Orders => false,
        }
    }
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

/// The timer that is due next is the greatest.
impl<J> Ord for Timer<J> {
    fn cmp(&self, other: &Self) -> Ordering {
        other.at.cmp(&self.at)
    }
}
