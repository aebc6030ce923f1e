//! The part of a process that a database has not.
//!
//! In: a process. Out: plain data for its rows. Taking it marks it as saved; a database that fails gives the mark back.

use super::{
    Body, Process,
    log::{Saved, UnsavedEvents},
};
use crate::{ErrorDetails, ExecutionExitState, ProcessState, StreamInfo};

/// Data for the rows of one process.
#[derive(Debug)]
pub(crate) struct Unsaved {
    pub(crate) pid: u64,
    pub(crate) state: ProcessState,
    /// Whether the environment has the process, or will.
    pub(crate) is_live: bool,
    pub(crate) exit_state: Option<ExecutionExitState>,
    pub(crate) error: Option<String>,
    pub(crate) error_details: Option<ErrorDetails>,
    pub(crate) started_at: Option<f64>,
    pub(crate) finished_at: Option<f64>,
    pub(crate) stdout: StreamInfo,
    pub(crate) stderr: StreamInfo,
    pub(crate) events: UnsavedEvents,
}

/// The mark from before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    attempt: u64,
    saved: Saved,
}

impl Process {
    /// Takes what is not saved. `None` if nothing is, or if the process is gone.
    pub(crate) fn take_unsaved(&self) -> Option<(Unsaved, Mark)> {
        let mut body = self.body();
        if body.is_deleted || body.is_stored || body.log.is_saved() {
            return None;
        }
        let Body { log, stdout, stderr, .. } = &mut *body;
        let (events, saved) = log.save(stdout, stderr);
        let unsaved = Unsaved {
            pid: self.pid,
            state: body.state,
            is_live: body.live.is_some(),
            exit_state: body.exit_state,
            error: body.error.clone(),
            error_details: body.error_details.clone(),
            started_at: body.started_at,
            finished_at: body.finished_at,
            stdout: body.stdout.info(),
            stderr: body.stderr.info(),
            events,
        };
        Some((unsaved, Mark { attempt: body.attempt, saved }))
    }

    /// Gives back what was taken, because the database failed.
    pub(crate) fn give_back(&self, mark: Mark) {
        let mut body = self.body();
        if body.attempt == mark.attempt {
            body.log.unsave(mark.saved);
        }
    }
}
