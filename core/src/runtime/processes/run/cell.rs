//! The part of a run that only a cell of a session has.
//!
//! In: a run whose turn it is in its session, the session's worker, and messages of the host. Out: the frames of the
//! cell, and its effect on the session. A cell is a run like any other while it computes and while it waits; so
//! permits, statistics and the checks of frames are those of runs. To end a cell, the host sends a frame, because the
//! worker stays; if the worker does not answer in time, it is killed, and the session begins anew.

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    Phase, Run, Shared, Work,
    incoming::MOST_BYTES_TOLD,
    place::{Held, InSession, WorkerPlace},
    session_worker::SessionWorker,
};
use crate::{
    binding::inbound::Inbound,
    data::cell::{Name, SessionState},
    isolate::End,
    protocol::{
        frame::Unreadable,
        messages::{
            CellEnded, ToWorker, WorkersEnd,
            session::{Copied, held_bytes, most_state_bytes},
        },
    },
    runtime::{
        processes::{lost::Lost, worker_socket::WorkerSocket, workers::Begun},
        record::{Reason, Record},
        session::{unanswered, uncopied},
        sessions::{Effect, Kind, Question, Received, SessionRun},
    },
};

/// By how much the time that a cell computes may exceed its CPU time, which the worker itself watches.
const CAP_FACTOR: u32 = 4;
const CAP_MARGIN: Duration = Duration::from_secs(1);

impl Shared {
    /// Sends a message to the cell that runs.
    fn send_on(&mut self, link: &WorkerSocket, inbound: Inbound) {
        let number = self.dealings.lock().send(&inbound);
        if let Inbound::FunctionCall { call, .. } = &inbound {
            self.placed.push((number, *call));
        }
        link.send(ToWorker::Inbound(inbound).into_frame());
    }
}

impl SessionRun<WorkerPlace> for Run {
    fn part(&self) -> Option<&InSession> {
        self.cell.as_ref()
    }

    fn listens(&self) -> bool {
        let shared = self.shared.lock();
        self.is_cell() && shared.link.is_some() && !self.is_settled() && !shared.record.is_asked()
    }

    fn receive(self: &Arc<Self>, inbound: Inbound) -> Received<WorkerPlace> {
        let mut shared = self.shared.lock();
        let ends = !self.is_cell() || self.is_settled() || shared.record.is_asked();
        let Some(link) = shared.link.clone().filter(|_| !ends) else {
            return Received::No(inbound);
        };
        if link.waiting_bytes().saturating_add(inbound.held_bytes()) > self.memory_limit {
            return Received::TooLarge(Some(Arc::clone(self)));
        }
        shared.send_on(&link, inbound);
        // A worker that waits for an answer resumes with that, and with nothing else.
        if shared.phase == Phase::Waiting && shared.calling.is_none() {
            shared.phase = Phase::Woken;
            return Received::Woken(Arc::clone(self));
        }
        Received::Yes
    }

    fn resume_with(&self, messages: VecDeque<Inbound>) -> Result<(), VecDeque<Inbound>> {
        let mut shared = self.shared.lock();
        let waits = shared.phase == Phase::Waiting && shared.calling.is_none();
        let Some(link) = shared.link.clone().filter(|_| waits && !shared.record.is_asked()) else {
            return Err(messages);
        };
        for inbound in messages {
            shared.send_on(&link, inbound);
        }
        shared.phase = Phase::Woken;
        Ok(())
    }

    fn end(self: &Arc<Self>, reason: Reason) {
        Self::end(self, reason);
    }

    /// Ends the run at once: its worker is killed, and the session has no worker from then on.
    fn abort(self: &Arc<Self>, reason: Reason) {
        let state = match reason {
            Reason::Closed if self.has_checkpoint() => SessionState::RolledBack,
            _ => SessionState::Reset,
        };
        let effect = {
            let mut shared = self.shared.lock();
            shared.record.ask(reason);
            if shared.link.is_some() { Effect::Lost(state) } else { Effect::Untouched }
        };
        let worker = self.settle(End::Asked, None, effect);
        if let Some(worker) = worker {
            self.workers.kill_worker(worker);
        }
    }

    fn undo_with(self: &Arc<Self>, reason: Reason, state: SessionState) {
        self.shared.lock().record.ask(reason);
        self.settle(End::Asked, None, Effect::Back(state));
    }

    fn record<T>(&self, look: impl FnOnce(&Record) -> T) -> T {
        look(&self.shared.lock().record)
    }
}

impl Run {
    /// Whether the run has neither begun nor ended.
    pub(super) fn is_waiting(&self) -> bool {
        self.shared.lock().phase == Phase::Queued
    }

    /// Begins in a worker, to which `prepare` sends what goes before. The session's lock is held.
    pub(crate) fn begin_in(
        self: &Arc<Self>,
        worker: &Arc<SessionWorker>,
        is_new: bool,
        has_turn: bool,
        prepare: impl FnOnce(),
    ) -> Begun {
        let Some(part) = &self.cell else { return Begun::NotNeeded };
        let mut shared = self.shared.lock();
        if self.is_settled() || shared.phase != Phase::Queued {
            return Begun::NotNeeded;
        }
        if is_new && !worker.link.take(Arc::<SessionWorker>::clone(worker)) {
            return Begun::NoWorker;
        }
        let frame = match shared.work.take() {
            Some(Work::Cell(cell)) => {
                // A call that the worker has already was forgotten if the session was reset since.
                if let Some(call) = part.kind.call() {
                    worker.dealings.lock().ledger.call(call);
                }
                ToWorker::Cell(cell).into_frame()
            }
            Some(Work::Question) if part.kind == Kind::Fork => {
                let under_way = part.native.repeatable();
                let repeated = under_way.iter().map(|again| again.promise).collect();
                *part.own.under_way.lock() = under_way;
                ToWorker::Copy { repeated }.into_frame()
            }
            Some(Work::Question) => ToWorker::Names.into_frame(),
            Some(Work::Program(_)) | None => return Begun::NotNeeded,
        };
        shared.phase = Phase::Computing(Instant::now());
        shared.began = Some(Instant::now());
        shared.permit = true;
        shared.link = Some(Arc::clone(&worker.link));
        shared.dealings = Arc::clone(&worker.dealings);
        shared.dealings.lock().next_parked = 0;
        part.begin();
        if has_turn {
            worker.set_current(self);
        }
        worker.link.release();
        prepare();
        worker.link.send(frame);
        if part.session.request.interleave {
            let mut dealings = shared.dealings.lock();
            dealings.sent += 1;
            dealings.ledger.begin(part.number);
        }
        Begun::Yes
    }

    /// Whether the run's session takes checkpoints.
    fn has_checkpoint(&self) -> bool {
        self.cell.as_ref().is_some_and(|part| part.session.request.checkpoint_limit() > 0)
    }

    /// Ends the run if it takes longer than it may; returns when to check again.
    pub(crate) fn check(self: &Arc<Self>, now: Instant) -> Option<Instant> {
        let due = {
            let shared = self.shared.lock();
            if self.is_settled() || shared.record.is_asked() {
                return None;
            }
            self.due(shared.began?, shared.phase, now)
        };
        match due {
            Some((at, _)) if at > now => Some(at),
            Some((_, reason)) => {
                self.end(reason);
                None
            }
            None => None,
        }
    }

    /// The time at which the run will have taken longer than it may, and how it ends then.
    fn due(&self, began: Instant, phase: Phase, now: Instant) -> Option<(Instant, Reason)> {
        let cap = self.workers.safety_cap();
        // Nobody knows how long a waiting run will have computed.
        let since = if let Phase::Computing(since) = phase { since } else { now };
        let computed = cap.saturating_mul(CAP_FACTOR).saturating_add(CAP_MARGIN);
        let capped = since.checked_add(computed).map(|at| (at, Reason::cap(cap)));
        let overdue = self.timeout.and_then(|timeout| {
            let at = began.checked_add(timeout)?;
            Some((at, Reason::Timeout(timeout)))
        });
        capped.into_iter().chain(overdue).min_by_key(|(at, _)| *at)
    }

    /// Takes the end of a cell.
    pub(super) fn cell_ended(&self, ended: CellEnded) -> Result<(), Unreadable> {
        let state = ended.state;
        if ended.number != 0 || !ended.undone.is_empty() {
            return Err(Unreadable::Broken);
        }
        let (end, peak_bytes) = self.check_cell_end(ended)?;
        self.settle(end, Some(peak_bytes), Effect::Back(state));
        Ok(())
    }

    /// Checks the end of a cell, takes it into the accounts with the worker, and tells the host the outcome of a call
    /// whose effects are kept. Returns how the cell ended, and the most
    /// bytes that counted against the limit.
    pub(super) fn check_cell_end(&self, ended: CellEnded) -> Result<(End, u64), Unreadable> {
        let CellEnded { number, end, peak_bytes, state, is_untouched, handed, undone } = ended;
        let is_cell = self.is_cell();
        let came_to_its_end = matches!(&end, WorkersEnd::End(End::Cell(_) | End::Failed(..)));
        let is_other = matches!(&end, WorkersEnd::End(End::Success(_)));
        let is_undone = matches!(&end, WorkersEnd::Undone) && number == 0;
        if !is_cell || is_other || is_undone || (came_to_its_end && state != SessionState::Kept) {
            return Err(Unreadable::Broken);
        }
        if let WorkersEnd::End(End::Cell(end)) = &end
            && let Some(value) = &end.value
        {
            self.check_refusal(value)?;
        }
        {
            let mut shared = self.shared.lock();
            {
                let mut dealings = shared.dealings.lock();
                if handed > dealings.sent {
                    return Err(Unreadable::Broken);
                }
                // The worker may park with the same messages as before.
                dealings.next_parked = 0;
                match state {
                    SessionState::Kept if is_untouched => dealings.ledger.forget(number),
                    SessionState::Kept => dealings.ledger.keep(number),
                    SessionState::RolledBack => dealings.ledger.undo(number, &undone),
                    SessionState::Reset => dealings.ledger.reset(),
                }
            }
            shared.placed.retain(|(number, _)| *number > handed);
            if came_to_its_end {
                shared.record.withdraw();
            }
        }
        if let Some(part) = self.cell.as_ref().filter(|_| state == SessionState::Kept) {
            part.keep_outcome(&*self.host);
        }
        Ok((self.judge(end), peak_bytes.min(MOST_BYTES_TOLD)))
    }

    /// Takes names.
    pub(super) fn named(&self, names: Vec<Name>, are_last: bool) -> Result<(), Unreadable> {
        let part = self.cell.as_ref().filter(|part| part.kind == Kind::Question);
        let Some(part) = part else { return Err(Unreadable::Broken) };
        let held = names.iter().map(held_bytes).sum();
        self.check_room(held)?;
        let mut named = part.own.named.lock();
        named.extend(names);
        if !are_last {
            return Ok(());
        }
        let all = std::mem::take(&mut *named);
        drop(named);
        if let Some(Question::Names(done)) = part.take_question() {
            done(Ok(all));
        }
        self.settle(End::Asked, None, Effect::Back(SessionState::Kept));
        Ok(())
    }

    /// Takes the state for a copy, without a look into it.
    pub(super) fn copied(&self, copied: Copied) -> Result<(), Unreadable> {
        let part = self.cell.as_ref().filter(|part| part.asks_for_copy());
        let Some(part) = part else { return Err(Unreadable::Broken) };
        match copied {
            Copied::State(bytes) if bytes.len() > most_state_bytes(self.memory_limit) => {
                return Err(Unreadable::TooLarge);
            }
            Copied::State(bytes) => {
                let held = {
                    let shared = self.shared.lock();
                    let link = shared.link.as_ref().ok_or(Unreadable::Broken)?;
                    let ledger = shared.dealings.lock().ledger.clone();
                    Held { bytes: Arc::new(bytes), ledger, zygote: link.zygote }
                };
                let under_way = std::mem::take(&mut *part.own.under_way.lock());
                if let Some(Question::Fork(outside, done)) = part.take_question() {
                    done(part.session.fork((Some(held), Vec::new()), under_way, outside));
                }
            }
            Copied::Unanswered(count) => part.refuse(unanswered(count as usize)),
            Copied::Impossible => part.refuse(uncopied()),
        }
        self.settle(End::Asked, None, Effect::Back(SessionState::Kept));
        Ok(())
    }

    /// Has the next cell be told, if it is a question whose worker is lost: only a cell's result tells of the state.
    pub(super) fn note_lost(&self, how: &Lost) {
        if let Some(part) = self.cell.as_ref().filter(|part| !part.kind.is_cell())
            && !self.is_settled()
        {
            part.session.note_lost(how);
        }
    }
}
