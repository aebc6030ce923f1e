//! What workers are for, as far as those who have them need to know.

use std::{sync::Arc, time::Instant};

use crate::{
    binding::handle::RunControl,
    runtime::processes::worker_socket::{FrameSink, WorkerSocket},
};

/// What handing a run to a worker came to.
pub(crate) enum Begun {
    Yes,
    /// It has settled before.
    NotNeeded,
    /// The worker is no more.
    NoWorker,
}

/// What a worker is given: a run.
pub(crate) trait Job: RunControl + FrameSink + 'static {
    /// Hands the run to a worker, with a permit.
    fn begin(self: &Arc<Self>, link: &Arc<WorkerSocket>) -> Begun;

    /// Lets the worker go on, with a permit; false if it needs none any more.
    fn go_on(&self) -> bool;

    /// Whether the run has computed for so long that others need not wait for it. If so it has no permit
    /// any more, and its worker comes after others.
    fn step_aside(&self, now: Instant) -> bool;

    /// Settles a run whose worker did not end in time after it was asked to; it is being killed.
    fn give_up(&self) -> Option<u32>;

    /// Whether the run waits for its host and for nothing else.
    fn parked(&self) -> bool;
}
