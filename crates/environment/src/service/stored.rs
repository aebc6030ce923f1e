//! The service beside its database: which processes are in memory, and which are not.
//!
//! In: answers of the database. Out: processes that begin to wait for a place, that stay a while, or that leave the
//! memory. All of this is called on the thread of the database, but for the questions.

use std::sync::Arc;

use super::{
    inner::{Inner, not_idle},
    recent::Ended,
};
use crate::{
    ProcessError, ProcessState,
    database::{Saver, not_found},
    locks::lock,
    process::{Body, Process},
};

impl Inner {
    /// For processes, which say that they have changed.
    pub(crate) fn saver(&self) -> Option<Saver> {
        self.database.as_ref().map(crate::database::Database::saver)
    }

    /// A process that is in memory.
    pub(crate) fn in_memory(&self, pid: u64) -> Option<Arc<Process>> {
        let mut state = lock(&self.state);
        self.retain(&mut state);
        state.processes.get(&pid).cloned()
    }

    /// Reads a process that is in memory. `None` if it is not, or has left meanwhile; without a database that is the
    /// problem that there is none.
    pub(crate) fn read<T>(
        &self,
        pid: u64,
        read: impl FnOnce(&Process, &Body) -> T,
    ) -> Result<Option<T>, ProcessError> {
        let Some(process) = self.in_memory(pid) else {
            return if self.database.is_some() { Ok(None) } else { Err(not_found(pid)) };
        };
        let body = process.body();
        Ok((!body.is_stored).then(|| read(&process, &body)))
    }

    /// # Errors
    /// `not-idle`. One that is not in memory is idle, if it is there.
    pub(crate) fn check_idle(&self, pid: u64) -> Result<(), ProcessError> {
        match self.in_memory(pid) {
            None => Ok(()),
            Some(process) => {
                let body = process.body();
                if body.state == ProcessState::Idle { Ok(()) } else { Err(not_idle(pid, &body)) }
            }
        }
    }

    /// The row of a process is gone.
    pub(crate) fn forget(&self, pid: u64) {
        // One that is not in memory is gone already.
        drop(self.delete(pid));
    }

    /// A new process could not be saved.
    pub(crate) fn not_created(&self, was_queued: bool) {
        lock(&self.state).pending -= usize::from(was_queued);
    }

    /// The database has all of a process up to some moment. If that was its end, it may leave the memory.
    pub(crate) fn saved(self: &Arc<Self>, process: &Arc<Process>) {
        let left: Vec<Arc<Process>> = {
            let mut state = lock(&self.state);
            let state = &mut *state;
            {
                let mut body = process.body();
                let is_over = body.state == ProcessState::Idle && body.log.is_saved();
                let bytes = if is_over { body.unsaved_bytes.take() } else { None };
                let Some(bytes) = bytes else { return };
                state.unsaved_bytes -= bytes;
                state.recent.push(Ended { pid: process.pid, attempt: body.attempt, bytes });
            }
            let mut left = Vec::new();
            while let Some(Ended { pid, attempt, .. }) = state.recent.pop() {
                let Some(process) = state.processes.get(&pid) else { continue };
                let mut body = process.body();
                let is_it = body.attempt == attempt && body.state == ProcessState::Idle;
                if is_it && body.unsaved_bytes.is_none() {
                    body.store();
                    drop(body);
                    left.extend(state.processes.remove(&pid));
                }
            }
            left
        };
        for process in left {
            // Readers go on with the database.
            process.changed.send_replace(());
        }
        self.dispatch();
    }
}
