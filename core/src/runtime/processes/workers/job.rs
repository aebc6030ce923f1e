//! The runs that workers are given, as `Workers` sees them.

use std::{sync::Arc, time::Instant};

use crate::{
    binding::handle::RunControl,
    runtime::processes::worker_socket::{FrameSink, WorkerSocket},
};

/// The outcome of handing a run to a worker.
pub(crate) enum Begun {
    Yes,
    /// It has settled before.
    NotNeeded,
    /// The worker is gone.
    NoWorker,
}

/// A run that is given to a worker.
pub(crate) trait Job: RunControl + FrameSink + 'static {
    /// Hands the run to a worker, with a permit.
    fn begin(self: &Arc<Self>, link: &Arc<WorkerSocket>) -> Begun;

    /// Resumes the worker, with a permit; false if the run needs none any more.
    fn resume(self: &Arc<Self>) -> bool;

    /// Whether the run has computed for so long that others need not wait for it. If so it loses its permit, and its
    /// worker is demoted.
    fn step_aside(&self, now: Instant) -> bool;

    /// Ends a run that takes longer than its caller allows.
    fn end_overdue(self: &Arc<Self>);

    /// Settles a run that its worker did not end in time; the worker is being killed.
    fn give_up(&self) -> Option<u32>;

    /// Whether it waits for other runs of its session.
    fn waits_in_session(&self) -> bool;

    /// Whether only a worker will do that has had no run.
    fn needs_new_worker(&self) -> bool;

    /// Whether the run waits for its host and for nothing else.
    fn parked(&self) -> bool;
}
