//! The time for which a run computes.

use std::time::{Duration, Instant};

use crate::os::clock::ThreadTime;

/// How often the time of a long slice is checked.
const CHECK_INTERVAL: Duration = Duration::from_millis(2);

/// How long a run computes before it steps aside for others.
const SLICE: Duration = Duration::from_millis(10);

/// A stretch of computing. Its CPU time is only read once the slice is long: that is a system call, and most runs take
/// less time than a few of those.
#[derive(Clone, Copy)]
pub(super) struct Slice {
    wall: Instant,
    /// When the time was last checked.
    checked: Instant,
    thread: Option<(Duration, ThreadTime)>,
}

impl Slice {
    pub(super) fn new() -> Self {
        let now = Instant::now();
        Self { wall: now, checked: now, thread: None }
    }

    /// The CPU time so far, if the slice is long and was not checked for a moment.
    pub(super) fn check(&mut self, now: Instant) -> Option<Duration> {
        let wall = self.wall(now);
        if wall < SLICE || now.saturating_duration_since(self.checked) < CHECK_INTERVAL {
            return None;
        }
        self.checked = now;
        self.thread.get_or_insert_with(|| (wall, ThreadTime::now()));
        Some(self.computed())
    }

    /// Wall time so far.
    pub(super) fn wall(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.wall)
    }

    /// CPU time so far; wall time until the thread's clock was read.
    pub(super) fn computed(&self) -> Duration {
        self.thread.map_or_else(|| self.wall.elapsed(), |(before, since)| before + since.elapsed())
    }
}
