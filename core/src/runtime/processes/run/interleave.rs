//! The part of a run that only a cell among interleaved ones has, if their session is in a worker.
//!
//! In: turns, as the worker tells them. Out: the cell that counts as computing, and its permit, which goes from cell to
//! cell with the turn.

use std::time::Instant;

use super::{
    Phase, Run,
    cell::{InSession, Place},
};
use crate::{
    data::cell::SessionState,
    isolate::End,
    protocol::frame::Unreadable,
    runtime::{
        record::Reason,
        registry::{self, Runs},
    },
};

impl Run {
    /// Its number among all runs of the session, if cells interleave; otherwise zero.
    pub(crate) fn number(&self) -> u32 {
        self.cell.as_ref().map_or(0, InSession::number)
    }

    /// Another cell in flight has the turn now. Returns whether this one had a permit, which the other one gets.
    pub(crate) fn step_back(&self) -> bool {
        let mut shared = self.shared.lock();
        if !self.is_settled() {
            shared.stop_computing();
        }
        std::mem::take(&mut shared.permit)
    }

    /// Has the turn now, with the permit of the cell before, if that had one.
    pub(crate) fn take_over(&self, permit: bool) {
        let mut shared = self.shared.lock();
        let surplus = permit && (shared.permit || self.is_settled());
        if !self.is_settled() {
            shared.phase = Phase::Computing(Instant::now());
            shared.permit |= permit;
        }
        drop(shared);
        if surplus {
            self.workers.give_back_permit();
        }
    }

    /// Whether it waits for the answer to a call, and nothing else can resume the worker.
    pub(crate) fn is_calling(&self) -> bool {
        self.shared.lock().calling.is_some()
    }

    /// The worker has parked: no cell computes.
    pub(crate) fn park(&self) -> Result<(), Unreadable> {
        let mut shared = self.shared.lock();
        if shared.calling.is_some() {
            return Err(Unreadable::Broken);
        }
        self.waits(&mut shared);
        Ok(())
    }

    /// Stands for the worker, which can resume, in the queue for permits; false if it does already.
    pub(crate) fn wake_worker(&self) -> bool {
        let mut shared = self.shared.lock();
        let waits = shared.phase == Phase::Waiting && shared.calling.is_none();
        if waits {
            shared.phase = Phase::Woken;
        }
        waits
    }

    /// Why a cell ends that is undone with another one: the close of the runtime ends both.
    pub(super) fn reason_of_undone(&self) -> Reason {
        if self.workers.registry().is_closed() {
            Reason::of_caller(Some(registry::CLOSED))
        } else {
            Reason::RolledBack
        }
    }

    /// The name and the message of the error with which it has settled.
    pub(crate) fn failure(&self) -> Option<(String, String)> {
        self.shared.lock().record.failure()
    }

    /// Settles a cell that was undone with another one, or with the whole session.
    pub(crate) fn undo_with(&self, state: SessionState) {
        let is_reset = state == SessionState::Reset;
        let reason = if is_reset { Reason::Reset } else { self.reason_of_undone() };
        self.shared.lock().record.ask(reason);
        self.settle(End::Asked, None, Place::Back(state));
    }
}
