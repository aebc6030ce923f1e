//! The part of a run that only a cell of a session has.
//!
//! In: a run that has its turn, with the isolate of its session. Out: the same isolate, kept, rolled back or reset,
//! and the run's result. A cell is a run like any other while it computes and while it is parked; so caps, stalls and
//! statistics are those of runs. One that interleaves with others gives the isolate to its session while it waits for the
//! host, and ends in a turn of its own, or when it is undone with another cell. [Questions](Question) to a session that
//! need its isolate wait their turn in the same queue, and have no result.

use std::{collections::VecDeque, sync::Arc};

use super::{
    Next, Phase, Run,
    embedder::RunEmbedder,
    isolate::RunIsolate,
    place::{InSession, ThreadPlace},
};
use crate::{
    binding::inbound::Inbound,
    data::{cell::SessionState, outcome::ExecutionError},
    error::{Error, ErrorKind},
    isolate::{
        Embedder, End, Turn,
        session::{CellSeat, Concluded, SessionIsolate, Work},
    },
    runtime::{
        record::{Failure, Reason, Record},
        sessions::{Effect, Over, Question, Received, SessionRun},
        threads::seams::Seam,
    },
};

impl SessionRun<ThreadPlace> for Run {
    fn part(&self) -> Option<&InSession> {
        self.cell.as_ref()
    }

    fn listens(&self) -> bool {
        let shared = self.shared.lock();
        let begun = !matches!(shared.phase, Phase::Queued(_) | Phase::Over);
        begun && self.is_cell() && !shared.claimed && !self.is_settled()
    }

    fn receive(self: &Arc<Self>, inbound: Inbound) -> Received<ThreadPlace> {
        let shared = self.shared.lock();
        if matches!(shared.phase, Phase::Over) || shared.claimed || self.is_settled() {
            return Received::No(inbound);
        }
        self.take_in(shared, inbound);
        Received::Yes
    }

    fn resume_with(&self, messages: VecDeque<Inbound>) -> Result<(), VecDeque<Inbound>> {
        let mut shared = self.shared.lock();
        if shared.claimed || !matches!(shared.phase, Phase::Parked(_)) {
            return Err(messages);
        }
        shared.inbox.extend(messages);
        shared.resume();
        Ok(())
    }

    fn end(self: &Arc<Self>, reason: Reason) {
        Self::end(self, reason);
    }

    fn undo_with(self: &Arc<Self>, reason: Reason, state: SessionState) {
        {
            let mut shared = self.shared.lock();
            if shared.claimed || self.is_settled() {
                return;
            }
            shared.claimed = true;
            shared.record.ask(reason);
            shared.phase = Phase::Over;
        }
        self.settle(End::Asked, None, state);
    }

    fn record<T>(&self, look: impl FnOnce(&Record) -> T) -> T {
        look(&self.shared.lock().record)
    }
}

impl Run {
    /// More was to be held for it than its session may hold.
    pub(crate) fn overdraw(self: &Arc<Self>) {
        let mut shared = self.shared.lock();
        if shared.claimed || self.is_settled() {
            return;
        }
        self.termination.exhaust();
        shared.record.overdraw();
        self.wake(shared);
    }

    /// The isolate of the session, and the first turn of a cell in it.
    pub(super) fn first_turn_of_cell(
        self: &Arc<Self>,
        part: &InSession,
        work: Work,
    ) -> Option<(RunIsolate, Turn)> {
        let Some((mut isolate, inbox)) = part.session.enter(self) else {
            self.slice.lock().take();
            let error = self.settle(End::Memory, None, SessionState::Reset);
            self.shared.lock().phase = Phase::Over;
            self.leave(part, Over::of(Effect::Lost(SessionState::Reset), error));
            return None;
        };
        self.watch_timeout();
        part.begin();
        let embedder: Arc<dyn Embedder> = Arc::new(RunEmbedder(Arc::clone(self)));
        let termination = Arc::clone(&self.termination);
        let (number, report) = (part.number, self.report);
        let seat = CellSeat { number, embedder, termination, report };
        let turn = isolate.start(work, &seat, inbox);
        Some((RunIsolate::Session(isolate), turn))
    }

    /// Ends a cell that came to `end`: its session keeps its effects or not, and then it settles.
    pub(super) fn conclude(
        self: &Arc<Self>,
        part: &InSession,
        mut isolate: Box<SessionIsolate>,
        end: End,
    ) {
        self.slice.lock().take();
        let Some((keep, reset)) = self.claim(&end) else {
            if self.shared.lock().is_early {
                return self.come_late(part, isolate);
            }
            // The watchdog has settled it, and its session has begun anew.
            drop(isolate);
            self.shared.lock().phase = Phase::Over;
            return self.leave_home();
        };
        let peak_bytes = isolate.peak_bytes(part.number);
        let Concluded { state, again, undone, is_untouched } = if reset {
            isolate.reset();
            Concluded::of(SessionState::Reset, Vec::new())
        } else {
            isolate.conclude(part.number, keep)
        };
        if state == SessionState::Kept {
            part.keep_outcome(&*self.host);
        } else {
            part.undo_native();
        }
        {
            let inbox = &mut self.shared.lock().inbox;
            inbox.splice(..0, again);
        }
        self.seams.pass(Seam::Ended);
        let error = self.settle(end, Some(peak_bytes), state);
        self.seams.pass(Seam::Settled);
        isolate.take_checkpoint();
        let has_completed = state == SessionState::Kept && !is_untouched;
        let over = Over::of(Effect::Back(state), error);
        self.leave(part, Over { isolate: Some(isolate), undone, has_completed, ..over });
    }

    /// Settles a cell that does not come to its first instruction in time. Its session is told when its thread does.
    /// Returns whether it was one.
    pub(super) fn settle_early(self: &Arc<Self>) -> bool {
        {
            let mut shared = self.shared.lock();
            let computes = matches!(shared.phase, Phase::Computing) && !shared.has_begun;
            let is_over = shared.claimed || self.is_settled();
            if !self.is_cell() || !computes || is_over || shared.record.is_reset() {
                return false;
            }
            shared.claimed = true;
            shared.is_early = true;
        }
        self.settle(End::Asked, None, SessionState::Kept);
        true
    }

    /// Gives the isolate back after the cell has settled, of which no code ran.
    fn come_late(self: &Arc<Self>, part: &InSession, mut isolate: Box<SessionIsolate>) {
        let error = self.settle(End::Asked, None, SessionState::Kept);
        let error = error.or_else(|| self.shared.lock().record.failure());
        let Concluded { state, again, undone, .. } = isolate.conclude(part.number, false);
        self.shared.lock().inbox.splice(..0, again);
        let over = Over::of(Effect::Back(state), error);
        self.leave(part, Over { isolate: Some(isolate), undone, ..over });
    }

    /// Answers the question with the isolate of the session, which is `None` if there is none yet.
    pub(super) fn perform(self: &Arc<Self>, part: &InSession) {
        let mut isolate = part.session.isolate();
        match part.take_question() {
            Some(Question::Names(done)) => {
                let names = |isolate: &mut SessionIsolate| {
                    let unread = "the names of the session cannot be read; reset it";
                    isolate.names().ok_or_else(|| Error::new(ErrorKind::Internal, unread))
                };
                done(isolate.as_deref_mut().map_or(Ok(Vec::new()), names));
            }
            Some(Question::Fork(outside, done)) => {
                done(part.session.fork(isolate.as_deref_mut(), outside));
            }
            Some(Question::Reset(done)) => {
                if let Some(isolate) = &mut isolate {
                    isolate.reset();
                }
                done(Ok(()));
            }
            None => {}
        }
        self.slice.lock().take();
        self.settle(End::Asked, None, SessionState::Kept);
        self.leave(part, Over { isolate, ..Over::of(Effect::Back(SessionState::Kept), None) });
    }

    /// The run's isolate is lost, and it has settled with that error: its thread does not come back from a builtin, or
    /// panicked. The session begins anew.
    pub(super) fn lose(self: &Arc<Self>, part: &InSession, error: Option<Failure>) {
        part.undo_native();
        self.leave(part, Over::of(Effect::Lost(SessionState::Reset), error));
    }

    pub(super) fn leave(self: &Arc<Self>, part: &InSession, mut over: Over<ThreadPlace>) {
        let is_stuck = matches!(over.effect, Effect::Lost(_));
        {
            let mut shared = self.shared.lock();
            if !is_stuck {
                shared.phase = Phase::Over;
            }
            over.inbox = std::mem::take(&mut shared.inbox);
        }
        part.session.leave(self, over);
        if !is_stuck {
            self.leave_home();
        }
    }

    /// Gives the home to others.
    pub(super) fn leave_home(&self) {
        if let Some(part) = &self.cell {
            part.own.leave();
        }
    }
}

impl Run {
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
        if let Some(part) = self.cell.as_ref().filter(|_| waits)
            && let Some(other) = part.session.computes_beside(self)
        {
            other.end(part.session.reason_of_undone(SessionState::RolledBack));
        }
        waits
    }
}
