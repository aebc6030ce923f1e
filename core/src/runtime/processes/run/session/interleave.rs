//! The turns of cells that interleave, as the host of their worker sees them.
//!
//! In: frames of the worker, and the host's messages. Out: the cell to which the frames belong, and the next run that
//! begins in the worker. The worker itself decides which cell in flight resumes. It is given new work when it has parked,
//! which it does as soon as no cell computes; the session asks it to do so earlier while a new run waits. While the
//! worker is parked, its frames are held back until one of the cells in flight has a permit, in the name of all.

use std::{
    collections::{HashSet, VecDeque},
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use super::{
    super::{GRACE_OF_CELL, GRACE_OF_FLIGHT, interleave::is_same, session_worker::SessionWorker},
    Kind, Place, Session, Shared, end_asked,
};
use crate::{
    binding::inbound::Inbound,
    data::cell::SessionState,
    protocol::{
        frame::{Frame, Unreadable},
        messages::{CellEnded, ToHost, ToWorker},
    },
    runtime::{
        calls::Placed,
        processes::{run::Run, worker_socket::FrameSink},
        record::RESET,
        turns::Entry,
    },
};

/// The outcome of passing a message on.
pub(super) enum Passed {
    /// The worker has it; this cell in flight is to be woken.
    On(Option<Arc<Run>>),
    /// It is more than the session may hold.
    TooLarge(Option<Arc<Run>>),
    /// No cell is in flight.
    No(Inbound),
}

impl Shared {
    /// The cell in flight with that number.
    fn flight(&self, number: u32) -> Result<Arc<Run>, Unreadable> {
        let found = self.flights.iter().find(|run| run.number() == number);
        found.cloned().ok_or(Unreadable::Broken)
    }

    /// Whether the first one in the queue can begin as soon as the worker parks.
    fn has_next(&self) -> bool {
        let can_begin = |entry: &Entry<Run>| match entry {
            // A copy waits for the cells in flight.
            Entry::Run(run) => (run.is_waiting() && !run.asks_for_copy()).then_some(true),
            Entry::Call(call) => match self.calls.place_of(*call) {
                Some(Placed::Waiting | Placed::Left) => Some(true),
                Some(Placed::Sent) => Some(false),
                Some(Placed::In(_) | Placed::Own) | None => None,
            },
        };
        self.queue.iter().find_map(can_begin).unwrap_or(false)
    }

    /// Sends the parked worker a frame with which it goes on. Returns the cell that is to be woken for it.
    fn wake_worker(&mut self, worker: &SessionWorker) -> Option<Arc<Run>> {
        let carrier = self.flights.last()?;
        worker.set_current(carrier);
        self.current = Some(Arc::clone(carrier));
        carrier.wake_worker().then(|| Arc::clone(carrier))
    }
}

impl Session {
    /// Whether cells interleave.
    pub(in crate::runtime::processes::run) fn interleaves(&self) -> bool {
        self.request.interleave
    }

    /// The number of a new run, if cells interleave; otherwise zero.
    pub(super) fn next_number(&self, kind: Kind) -> u32 {
        if self.request.interleave && kind != Kind::Question {
            self.runs.fetch_add(1, Ordering::Relaxed) + 1
        } else {
            0
        }
    }

    /// The run whose turn it is now, if nobody has it. Otherwise has the worker park soon if it can begin one.
    pub(super) fn schedule(&self, shared: &mut Shared) -> Option<Arc<Run>> {
        let next = self.advance(shared);
        if !self.request.interleave || next.is_some() || shared.offered || !shared.has_next() {
            return next;
        }
        let is_computing = shared.current.as_ref().is_some_and(|run| run.number() != 0);
        if let (Some(worker), true) = (&shared.worker, is_computing) {
            worker.link.send(ToWorker::Yield.into_frame());
            shared.offered = true;
        }
        None
    }

    /// How long the worker has for ending a cell.
    pub(in crate::runtime::processes::run) fn grace(&self) -> Duration {
        let flights = u32::try_from(self.shared.lock().flights.len()).unwrap_or(u32::MAX);
        GRACE_OF_CELL + GRACE_OF_FLIGHT * flights
    }

    /// The runs that the worker has.
    pub(in crate::runtime::processes::run) fn runs_in_worker(&self) -> Vec<Arc<Run>> {
        self.shared.lock().flights.clone()
    }

    /// Takes a frame of the worker.
    pub(in crate::runtime::processes::run) fn take(
        &self,
        worker: &Arc<SessionWorker>,
        frame: Frame,
    ) -> Result<(), Unreadable> {
        match ToHost::from_frame(frame, worker.most_bytes())? {
            ToHost::Turn { number } => self.turn(worker, number),
            ToHost::Parked { taken } => self.parked(worker, taken),
            ToHost::Placed { call, number } => self.placed(call, number),
            ToHost::CellEnded(ended) => self.cell_over(worker, *ended),
            message @ (ToHost::Names { .. } | ToHost::Copied(_)) => {
                // The names of a session are several messages.
                let asked = self.shared.lock().asked.front().cloned().ok_or(Unreadable::Broken)?;
                asked.take_message(message).map(drop)
            }
            message => {
                let run = worker.current().ok_or(Unreadable::Broken)?;
                run.take_message(message).map(drop)
            }
        }
    }

    /// The worker has a cell compute.
    fn turn(&self, worker: &SessionWorker, number: u32) -> Result<(), Unreadable> {
        let mut shared = self.shared.lock();
        let run = shared.flight(number)?;
        if is_same(shared.current.as_ref(), &run) {
            return Ok(());
        }
        let permit = match &shared.current {
            Some(current) if current.is_calling() => return Err(Unreadable::Broken),
            // It begins as soon as it has a permit, though the worker computes by then.
            Some(current) if current.is_waiting() => {
                let granted = Arc::clone(current);
                shared.granted.push(granted);
                false
            }
            Some(current) => current.step_back(),
            None => false,
        };
        worker.set_current(&run);
        run.take_over(permit);
        shared.current = Some(run);
        Ok(())
    }

    /// No cell computes in the worker any more, after so many frames to it.
    fn parked(&self, worker: &SessionWorker, taken: u64) -> Result<(), Unreadable> {
        let mut shared = self.shared.lock();
        if !shared.worker.as_ref().is_some_and(|own| std::ptr::eq(Arc::as_ptr(own), worker)) {
            // Another thread has dismissed it meanwhile.
            return Ok(());
        }
        {
            let mut dealings = worker.dealings.lock();
            if taken < dealings.next_parked || taken > dealings.sent {
                return Err(Unreadable::Broken);
            }
            dealings.next_parked = taken + 1;
            if taken != dealings.sent {
                // A frame is under way that resumes the worker.
                return Ok(());
            }
        }
        match &shared.current {
            // It has its turn as soon as it has a permit.
            Some(run) if run.is_waiting() => return Ok(()),
            Some(run) if run.number() == 0 => return Err(Unreadable::Broken),
            Some(run) => run.park()?,
            None => worker.link.hold(),
        }
        shared.current = None;
        worker.end_current();
        let was_offered = std::mem::take(&mut shared.offered);
        let next = self.schedule(&mut shared);
        let mut woken = None;
        if next.is_none() && was_offered {
            // The worker may have parked for a run that has ended meanwhile.
            worker.dealings.lock().sent += 1;
            worker.link.send(ToWorker::GoOn.into_frame());
            woken = shared.wake_worker(worker);
        }
        drop(shared);
        self.start(next);
        match woken {
            Some(run) => self.workers.wake(run),
            None => self.workers.dispatch(),
        }
        Ok(())
    }

    /// The worker has placed a call of the host: in a cell in flight, or in none.
    fn placed(&self, call: u32, number: u32) -> Result<(), Unreadable> {
        let mut shared = self.shared.lock();
        let is_new = match shared.calls.place_of(call) {
            Some(Placed::Sent) => true,
            // Its cell has ended, and was not handed it.
            Some(Placed::In(_)) => false,
            _ => return Err(Unreadable::Broken),
        };
        if number != 0 {
            let run = shared.flight(number)?;
            shared.calls.place(call, Placed::In(Arc::downgrade(&run)));
            shared.note_over(usize::from(is_new));
        } else {
            shared.calls.place(call, Placed::Left);
            if !is_new {
                shared.queue.push_first(Entry::Call(call));
            }
        }
        let next = self.schedule(&mut shared);
        drop(shared);
        self.start(next);
        Ok(())
    }

    /// A cell is over in the worker, and others were undone with it.
    fn cell_over(&self, worker: &SessionWorker, ended: CellEnded) -> Result<(), Unreadable> {
        let over: HashSet<u32> = ended.undone.iter().copied().chain([ended.number]).collect();
        let is_over = |run: &Arc<Run>| over.contains(&run.number());
        let (run, undone) = {
            let shared = self.shared.lock();
            let run = shared.flight(ended.number)?;
            let others = shared.flights.iter().filter(|it| is_over(it) && !Arc::ptr_eq(it, &run));
            let undone: Vec<_> = others.cloned().collect();
            (run, undone)
        };
        let (state, is_kept) = (ended.state, ended.state == SessionState::Kept);
        // All of them are in flight, and each is named once.
        let is_known = undone.len() == ended.undone.len();
        if !is_known || (is_kept && !undone.is_empty()) {
            return Err(Unreadable::Broken);
        }
        let has_completed = is_kept && !ended.is_untouched;
        let (end, peak_bytes) = run.check_cell_end(ended)?;
        if has_completed {
            self.kept_at.store(self.host.now(), Ordering::Relaxed);
        }
        {
            let mut shared = self.shared.lock();
            shared.flights.retain(|flight| !is_over(flight));
            if state == SessionState::Reset && !shared.flights.is_empty() {
                return Err(Unreadable::Broken);
            }
            let current = shared.current.take_if(|current| is_over(current));
            if let Some(current) = current {
                worker.end_current();
                // The worker goes on by itself, or parks.
                if let Some(carrier) = shared.flights.last().cloned() {
                    carrier.take_over(current.step_back());
                    worker.set_current(&carrier);
                    shared.current = Some(carrier);
                }
            }
        }
        run.settle(end, Some(peak_bytes), Place::Back(state));
        for other in undone {
            other.undo_with(state);
        }
        Ok(())
    }

    /// Sends a message to the worker, if cells are in flight.
    pub(super) fn pass_on(&self, shared: &mut Shared, inbound: Inbound) -> Passed {
        let Some(worker) = shared.worker.clone().filter(|_| !shared.flights.is_empty()) else {
            return Passed::No(inbound);
        };
        let call = match &inbound {
            Inbound::FunctionCall { call, .. } => Some(*call),
            _ => None,
        };
        if worker.link.waiting_bytes().saturating_add(inbound.held_bytes()) > self.limit_bytes {
            return Passed::TooLarge(shared.flights.last().cloned());
        }
        if let Some(call) = call {
            shared.calls.place(call, Placed::Sent);
            shared.queue.push_call(call);
        }
        worker.dealings.lock().send(&inbound);
        worker.link.send(ToWorker::Inbound(inbound).into_frame());
        let is_parked = shared.current.is_none();
        Passed::On(if is_parked { shared.wake_worker(&worker) } else { None })
    }

    /// A cell in flight is over.
    pub(super) fn leave_flight(&self, run: &Run, place: Place, (name, message): (&str, &str)) {
        let (next, lost, gone, asked, others) = {
            let mut shared = self.shared.lock();
            shared.flights.retain(|flight| !is_same(Some(flight), run));
            let mut lost = shared.calls.end_of(run.call_of_host());
            let (mut gone, mut asked, mut others) = (Vec::new(), VecDeque::new(), Vec::new());
            match place {
                Place::Lost(_) => {
                    asked = shared.lose_worker();
                    gone = shared.calls.lose();
                    lost.append(&mut shared.calls.forget());
                    others = std::mem::take(&mut shared.flights);
                }
                Place::Back(SessionState::Reset) => lost.append(&mut shared.calls.forget()),
                Place::Back(SessionState::RolledBack) => lost.append(&mut shared.calls.undo(run)),
                Place::Back(SessionState::Kept) | Place::Untouched => {}
            }
            let is_gone = |current: &mut Arc<Run>| {
                is_same(Some(current), run)
                    || others.iter().any(|other| is_same(Some(other), current))
            };
            if shared.current.take_if(is_gone).is_some()
                && let Some(worker) = &shared.worker
            {
                worker.end_current();
            }
            if place.state() != SessionState::Kept {
                shared.settle_again();
            }
            (self.schedule(&mut shared), lost, gone, asked, others)
        };
        end_asked(asked);
        for other in others {
            other.undo_with(SessionState::Reset);
        }
        self.start(next);
        self.reject(lost, (name, message));
        self.reject(gone, RESET);
        self.free_when_idle();
    }
}
