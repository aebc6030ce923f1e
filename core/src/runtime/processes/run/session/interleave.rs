//! The turns of cells that interleave, as the host of their worker sees them.
//!
//! In: frames of the worker, and the host's messages. Out: the cell to which the frames belong, and the next run that
//! begins in the worker. The worker itself decides which cell in flight resumes. It is given new work when it has parked,
//! which it does as soon as no cell computes; the session asks it to do so earlier while a new run waits. While the
//! worker is parked, its frames are held back until one of the cells in flight has a permit, in the name of all.

use std::{
    collections::HashSet,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use super::{
    super::{GRACE_OF_CELL, GRACE_OF_FLIGHT, session_worker::SessionWorker},
    Place, Session, Shared,
};
use crate::{
    binding::inbound::Inbound,
    data::cell::SessionState,
    protocol::{
        frame::{Frame, Unreadable},
        messages::{CellEnded, ToHost, ToWorker},
    },
    runtime::{
        processes::{run::Run, worker_socket::FrameSink},
        sessions::{Broken, Effect, Left, Message, Undone},
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
    /// Has the parked worker go on. Returns the cell that is to be woken for it.
    pub(super) fn wake_worker(&mut self, worker: &SessionWorker) -> Option<Arc<Run>> {
        let carrier = self.machine.go_on()?;
        worker.set_current(carrier);
        carrier.wake_worker().then(|| Arc::clone(carrier))
    }
}

impl Session {
    /// Whether cells interleave.
    pub(in crate::runtime::processes::run) fn interleaves(&self) -> bool {
        self.request.interleave
    }

    /// How long the worker has for ending a cell.
    pub(in crate::runtime::processes::run) fn grace(&self) -> Duration {
        let flights = u32::try_from(self.shared.lock().machine.count_begun()).unwrap_or(u32::MAX);
        GRACE_OF_CELL + GRACE_OF_FLIGHT * flights
    }

    /// The runs that the worker has.
    pub(in crate::runtime::processes::run) fn runs_in_worker(&self) -> Vec<Arc<Run>> {
        self.shared.lock().machine.begun().cloned().collect()
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
                let asked =
                    self.shared.lock().machine.asked().cloned().ok_or(Unreadable::Broken)?;
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
        let machine = &mut self.shared.lock().machine;
        let run = machine.cell(number)?.clone();
        if machine.is_current(number) {
            return Ok(());
        }
        let permit = match machine.current() {
            Some(current) if current.is_calling() => return Err(Unreadable::Broken),
            // It begins as soon as it has a permit, though the worker computes by then.
            Some(_) if machine.is_granted() => false,
            Some(current) => current.step_back(),
            None => false,
        };
        worker.set_current(&run);
        run.take_over(permit);
        machine.turn(number);
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
        match shared.machine.current() {
            // It has its turn as soon as it has a permit.
            Some(_) if shared.machine.is_granted() => {
                shared.machine.parked();
                return Ok(());
            }
            Some(run) if run.number() == 0 => return Err(Unreadable::Broken),
            Some(run) => run.park()?,
            None => worker.link.hold(),
        }
        shared.machine.parked();
        worker.end_current();
        let next = self.next(&mut shared);
        drop(shared);
        self.start(next);
        self.workers.dispatch();
        Ok(())
    }

    /// The worker has placed a call of the host: in a cell in flight, or in none.
    fn placed(&self, call: u32, number: u32) -> Result<(), Unreadable> {
        let mut shared = self.shared.lock();
        shared.machine.placed(call, number)?;
        self.go_on(shared);
        Ok(())
    }

    /// A cell is over in the worker, and others were undone with it.
    fn cell_over(&self, worker: &SessionWorker, ended: CellEnded) -> Result<(), Unreadable> {
        let over: HashSet<u32> = ended.undone.iter().copied().chain([ended.number]).collect();
        let (run, in_flight, known) = {
            let machine = &self.shared.lock().machine;
            let run = machine.cell(ended.number)?.clone();
            (run, machine.count_begun(), machine.count_begun_of(&over))
        };
        let (state, is_kept) = (ended.state, ended.state == SessionState::Kept);
        // All of them are in flight, and each is named once.
        let is_known = known == ended.undone.len() + 1;
        let is_whole = state != SessionState::Reset || known == in_flight;
        if !is_known || !is_whole || (is_kept && !ended.undone.is_empty()) {
            return Err(Unreadable::Broken);
        }
        let has_completed = is_kept && !ended.is_untouched;
        let numbers = ended.undone.clone();
        let (end, peak_bytes) = run.check_cell_end(ended)?;
        if has_completed {
            self.kept_at.store(self.host.now(), Ordering::Relaxed);
        }
        let Undone { calls, runs, .. } = {
            let mut shared = self.shared.lock();
            let again = if is_kept { Vec::new() } else { shared.settlements.again().collect() };
            let left = Left { again, undone: numbers, ..Left::of(Effect::Back(state)) };
            let (undone, former) = shared.machine.over(run.in_session(), left);
            if let Some(former) = former {
                worker.end_current();
                // The worker goes on by itself, or parks.
                if let Some(carrier) = shared.machine.go_on() {
                    carrier.take_over(former.step_back());
                    worker.set_current(carrier);
                }
            }
            undone
        };
        run.settle(end, Some(peak_bytes), Place::Back(state));
        self.reject_of(&run, calls);
        for (other, calls) in runs {
            other.undo_with(state);
            self.reject_of(&other, calls);
        }
        let mut shared = self.shared.lock();
        shared.machine.has_ended();
        self.go_on(shared);
        self.free_when_idle();
        Ok(())
    }

    /// Sends a message to the worker, if cells are in flight.
    pub(super) fn pass_on(&self, shared: &mut Shared, inbound: Inbound) -> Passed {
        let last = shared.machine.begun().next_back().cloned();
        let Some(worker) = shared.worker.clone().filter(|_| last.is_some()) else {
            return Passed::No(inbound);
        };
        if worker.link.waiting_bytes().saturating_add(inbound.held_bytes()) > self.limit_bytes {
            return Passed::TooLarge(last);
        }
        if let Some(call) = inbound.call() {
            shared.machine.sent(call);
        }
        worker.dealings.lock().send(&inbound);
        worker.link.send(ToWorker::Inbound(inbound).into_frame());
        let is_parked = shared.machine.current().is_none();
        Passed::On(if is_parked { shared.wake_worker(&worker) } else { None })
    }
}

impl From<Broken> for Unreadable {
    fn from(_: Broken) -> Self {
        Self::Broken
    }
}
