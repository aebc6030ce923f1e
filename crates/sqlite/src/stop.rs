//! The stop of one call.
//!
//! In: a time limit, and the end of a run. Out: a flag that everything reads which SQLite calls while it works: the
//! allocator, the progress handler, the busy handler and our SQL functions. A call that has begun to commit is not
//! stopped any more, so a call that was stopped has written nothing.

use std::{
    sync::{
        OnceLock,
        atomic::{AtomicU8, Ordering},
    },
    time::{Duration, Instant},
};

/// The most time of a call on its caller's thread, where the run, and in the host of workers every run, waits for it.
pub const SHORT: Duration = Duration::from_micros(100);

const RUNNING: u8 = 0;
const COMMITTING: u8 = 1;
const OUT_OF_TIME: u8 = 2;
const ABANDONED: u8 = 3;

/// Why a call was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Its time limit has passed.
    Time,
    /// Its run has ended.
    End,
}

/// Whether one call has to stop. All its threads share it.
#[derive(Debug)]
pub struct Stop {
    state: AtomicU8,
    limit: Duration,
    /// Whether its thread has other work, so that it must not wait for anything.
    is_short: bool,
    /// Set when the earlier calls of its run are done.
    deadline: OnceLock<Instant>,
}

impl Stop {
    /// The stop of a call that may take so long once its time has begun.
    #[must_use]
    pub fn new(limit: Duration) -> Self {
        Self { state: AtomicU8::new(RUNNING), limit, is_short: false, deadline: OnceLock::new() }
    }

    /// The stop of a call that is tried on its caller's thread. Its time begins now.
    #[must_use]
    pub fn short() -> Self {
        let stop = Self { is_short: true, ..Self::new(SHORT) };
        stop.start();
        stop
    }

    /// Whether the call must not wait for other connections.
    #[must_use]
    pub fn is_short(&self) -> bool {
        self.is_short
    }

    /// The time that the call may take.
    #[must_use]
    pub fn limit(&self) -> Duration {
        self.limit
    }

    /// Begins to count the time, unless it has begun.
    pub fn start(&self) {
        self.deadline.get_or_init(|| Instant::now() + self.limit);
    }

    /// The end of its time; `None` while it waits for earlier calls of its run.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline.get().copied()
    }

    /// Stops the call, unless it was stopped before or has begun to commit. Returns whether it is stopped now.
    pub fn stop(&self, reason: Reason) -> bool {
        let state = match reason {
            Reason::Time => OUT_OF_TIME,
            Reason::End => ABANDONED,
        };
        let changed =
            self.state.compare_exchange(RUNNING, state, Ordering::AcqRel, Ordering::Acquire);
        changed.map_or_else(|now| now != COMMITTING, |_| true)
    }

    /// Whether it must stop. Does not look at the clock.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.state.load(Ordering::Acquire) >= OUT_OF_TIME
    }

    /// Stops the call if its time is over; returns whether it must stop.
    pub fn check(&self) -> bool {
        if self.deadline().is_some_and(|deadline| Instant::now() >= deadline) {
            self.stop(Reason::Time);
        }
        self.is_stopped()
    }

    /// Why it was stopped, if it was.
    #[must_use]
    pub fn reason(&self) -> Option<Reason> {
        match self.state.load(Ordering::Acquire) {
            OUT_OF_TIME => Some(Reason::Time),
            ABANDONED => Some(Reason::End),
            _ => None,
        }
    }

    /// Begins to commit; `false` if the call was stopped, and must roll back.
    pub fn commit(&self) -> bool {
        let changed =
            self.state.compare_exchange(RUNNING, COMMITTING, Ordering::AcqRel, Ordering::Acquire);
        changed.is_ok() || changed == Err(COMMITTING)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_commits_is_not_stopped() {
        let stop = Stop::new(Duration::ZERO);
        stop.start();
        assert!(stop.commit());
        assert!(!stop.check());
        assert!(!stop.stop(Reason::End));
        assert_eq!(stop.reason(), None);
    }

    #[test]
    fn a_stopped_call_does_not_commit() {
        let stop = Stop::new(Duration::ZERO);
        assert!(!stop.check(), "its time has not begun");
        stop.start();
        assert!(stop.check());
        assert!(stop.stop(Reason::End), "it is stopped already");
        assert!(!stop.commit());
        assert_eq!(stop.reason(), Some(Reason::Time));
    }
}
