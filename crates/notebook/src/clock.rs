//! The clock of a cell: the time that it works, without the time in which it waits for others.
//!
//! In: the beginning of waits and their end. Out: the moment when the cell has used its time. Wall time has a bound of its
//! own.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// Why a cell has no more time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Expired {
    /// The limit, in seconds.
    pub(crate) limit: u64,
    /// The time for which the clock stood still, in whole seconds.
    pub(crate) waited: u64,
}

/// The clock of a cell that has begun.
#[derive(Clone, Debug)]
pub(crate) struct Clock {
    began: Instant,
    limit: Duration,
    wall_limit: Duration,
}

impl Clock {
    /// A clock that runs from now on.
    pub(crate) fn start(limit_seconds: u64, wall_seconds: u64) -> Self {
        Self {
            began: Instant::now(),
            limit: Duration::from_secs(limit_seconds),
            wall_limit: Duration::from_secs(wall_seconds),
        }
    }

    /// The time on the clock.
    pub(crate) fn worked(&self) -> Duration {
        self.began.elapsed()
    }

    /// Waits until the time is used.
    pub(crate) async fn expired(&self) -> Expired {
        let limit = self.limit.min(self.wall_limit);
        match self.began.checked_add(limit) {
            Some(deadline) => sleep_until(deadline).await,
            None => std::future::pending().await,
        }
        Expired { limit: limit.as_secs(), waited: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_smaller_limit_ends_a_cell() {
        let clock = Clock::start(30, 3600);
        assert_eq!(clock.expired().await, Expired { limit: 30, waited: 0 });
        assert_eq!(clock.worked().as_secs(), 30);
        let clock = Clock::start(30, 5);
        assert_eq!(clock.expired().await.limit, 5);
    }
}
