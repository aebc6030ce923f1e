//! The part of a run that only a cell among interleaved ones has.
//!
//! In: a cell that waits for the host while its session has the isolate. Out: its next turn, as soon as the host has sent
//! something and no other cell computes. It ends in a turn of its own, or when it is undone with another cell.

use std::sync::Arc;

use super::{
    Next, Phase, Run,
    cell::{Failure, InSession},
    isolate::RunIsolate,
};
use crate::{
    data::{cell::SessionState, outcome::ExecutionError},
    isolate::{End, Turn},
    runtime::record::Reason,
};

impl Run {
    /// Its number among all runs of the session, if cells interleave; otherwise zero.
    pub(crate) fn number(&self) -> u32 {
        self.cell.as_ref().map_or(0, |part| part.number)
    }

    /// Something can resume it by now.
    pub(crate) fn forget_stalled(&self) {
        self.shared.lock().stalled = None;
    }

    /// The next turn of a cell whose session has the isolate.
    pub(super) fn next_turn_of_cell(self: &Arc<Self>) -> Option<(RunIsolate, Turn)> {
        let part = self.cell.as_ref()?;
        let (mut isolate, mut inbox, others) = part.session.resume(self)?;
        {
            let mut shared = self.shared.lock();
            if shared.record.is_asked() {
                // It was ended while it waited: there is nothing left to interrupt.
                shared.inbox.splice(..0, others.into_iter().chain(inbox));
                drop(shared);
                let end = isolate.asked(part.number);
                return Some((RunIsolate::Session(isolate), Turn::Ended(end)));
            }
            // Those of the session came for nothing that was known yet: they may be about what the cell's own bring.
            inbox.extend(others);
        }
        let turn = isolate.turn_of(part.number, inbox);
        Some((RunIsolate::Session(isolate), turn))
    }

    /// Gives the isolate to the session until the host sends something. `stalled`: the error if nothing can resume the
    /// cell.
    pub(super) fn step_back(
        self: &Arc<Self>,
        part: &InSession,
        isolate: RunIsolate,
        stalled: Option<Box<ExecutionError>>,
    ) -> Next {
        let mut shared = self.shared.lock();
        if self.is_settled() {
            return Next::Over(isolate);
        }
        if shared.record.is_asked() {
            // It was asked to end between two turns: there is nothing left to interrupt.
            return Next::Ended(isolate);
        }
        let RunIsolate::Session(isolate) = isolate else { return Next::Over(isolate) };
        let is_stalled = stalled.is_some();
        shared.stalled = stalled;
        shared.parkings += 1;
        let parking = shared.parkings;
        shared.computed += self.end_slice();
        shared.phase = Phase::Aside;
        drop(shared);
        if is_stalled {
            self.resources.watchdog.watch_stalled(self, parking);
        }
        part.session.rest(self, isolate, is_stalled);
        Next::Parked
    }

    /// If it was asked to end and waits for a turn, sees to it that the cell which computes ends too. That one would be
    /// undone with it.
    pub(super) fn press(self: &Arc<Self>) -> bool {
        let waits = matches!(self.shared.lock().phase, Phase::Aside);
        if let Some(part) = self.cell.as_ref().filter(|_| waits) {
            part.session.press(self);
        }
        waits
    }

    /// Settles a cell that was undone with another one, or with the whole session. Returns its error.
    pub(crate) fn undo_with(
        self: &Arc<Self>,
        reason: Reason,
        state: SessionState,
    ) -> Option<Failure> {
        {
            let mut shared = self.shared.lock();
            if shared.claimed || self.is_settled() {
                return None;
            }
            shared.claimed = true;
            shared.record.ask(reason);
            shared.phase = Phase::Over;
        }
        self.settle(End::Asked, None, state)
    }
}
