//! A job and the owner of a scheduler, as the scheduler sees them.

use std::{
    cell::Cell,
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
};

use super::Scheduler;

/// A job, which threads compute in parts: one that has stopped may be enqueued again.
pub(crate) trait Job: Send + Sync + 'static {
    /// Computes it as far as it can, on this thread. `finishing` becomes true when the thread has told the scheduler
    /// that it [is](Scheduler::finishing).
    fn compute(self: &Arc<Self>, finishing: &Cell<bool>);

    /// Called after a panic in [`Job::compute`], which is a bug of ours.
    fn break_down(self: &Arc<Self>);

    /// Whether it is over.
    fn has_ended(&self) -> bool;

    /// Whether it was ended before it began, so that there is nothing for a thread to do.
    fn left_the_queue(&self) -> bool;

    /// Whether its code is to end, so that its thread waits for no permit.
    fn is_ending(&self) -> bool;

    /// How far its thread has come with it.
    fn stage(&self) -> &Stage;
}

/// The owner of a scheduler. The threads keep it alive while they work, and end once it is gone.
pub(crate) trait Owner<J>: Send + Sync {
    fn scheduler(&self) -> &Scheduler<J>;

    /// Prepares what jobs will need, on a thread that has nothing to compute, until others wait.
    fn prepare(&self, others_wait: &dyn Fn() -> bool);

    /// A thread is done with a job.
    fn computed(&self);
}

/// How far the thread of a job has come with it. The job keeps it.
#[derive(Debug, Default)]
pub(crate) struct Stage(AtomicU8);

impl Stage {
    /// The thread may be in code of the sandbox.
    pub(super) const WITH_CODE: u8 = 0;
    /// The thread is one of those that are [`finishing`](super::Scheduler::finishing).
    pub(super) const FINISHING: u8 = 1;
    /// The thread was given up on.
    pub(super) const GIVEN_UP: u8 = 2;

    pub(super) fn is(&self, stage: u8) -> bool {
        self.0.load(Ordering::Relaxed) == stage
    }

    /// Returns the stage before.
    pub(super) fn set(&self, stage: u8) -> u8 {
        self.0.swap(stage, Ordering::Relaxed)
    }

    pub(super) fn advance(&self, from: u8, to: u8) -> bool {
        self.0.compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}
