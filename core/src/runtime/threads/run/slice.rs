//! How long a run computes.

use std::time::{Duration, Instant};

use crate::os::clock::ThreadTime;

/// How often a run that computes for long is looked at.
const LOOK: Duration = Duration::from_millis(2);

/// How long a run computes before it lets others go first.
const SLICE: Duration = Duration::from_millis(10);

/// A stretch of computing. Its CPU time is only asked for once it is long: that is a system call,
/// and most runs are over in less time than a few of those take.
#[derive(Clone, Copy)]
pub(super) struct Slice {
    wall: Instant,
    /// When the run was last looked at.
    looked: Instant,
    thread: Option<(Duration, ThreadTime)>,
}

impl Slice {
    pub(super) fn new() -> Self {
        let now = Instant::now();
        Self { wall: now, looked: now, thread: None }
    }

    /// Whether it is long, and was not looked at for a moment: its CPU time so far.
    pub(super) fn look(&mut self, now: Instant) -> Option<Duration> {
        let wall = self.wall(now);
        if wall < SLICE || now.saturating_duration_since(self.looked) < LOOK {
            return None;
        }
        self.looked = now;
        self.thread.get_or_insert_with(|| (wall, ThreadTime::now()));
        Some(self.computed())
    }

    /// Wall time so far.
    pub(super) fn wall(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.wall)
    }

    /// CPU time so far; wall time for as long as the thread's clock was not looked at.
    pub(super) fn computed(&self) -> Duration {
        self.thread.map_or_else(|| self.wall.elapsed(), |(before, since)| before + since.elapsed())
    }
}
