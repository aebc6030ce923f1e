//! The turns of cells that interleave, as the host of their worker sees them.
//!
//! In: frames of the worker, and the host's messages. Out: the cell to which the frames belong, and the next run that
//! begins in the worker. The worker itself decides which cell in flight resumes. The worker is given new work when it
//! has parked, which it does as soon as no cell computes; the session asks the worker to park earlier while a new run
//! waits. While the worker is parked, its frames are held back until one of the cells in flight has a permit, in the
//! name of all.

use std::{
    collections::HashSet,
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    GRACE_OF_CELL, GRACE_OF_FLIGHT, Phase, Run, place::Session, session_worker::SessionWorker,
};
use crate::{
    data::cell::SessionState,
    protocol::{
        frame::{Frame, Unreadable},
        messages::{CellEnded, ToHost},
    },
    runtime::{
        processes::worker_socket::FrameSink,
        sessions::{Broken, Effect, Left, SessionRun, Undone},
    },
};

impl Session {
    /// How long the worker has for ending a cell.
    pub(super) fn grace(&self) -> Duration {
        let flights = u32::try_from(self.shared.lock().machine.count_begun()).unwrap_or(u32::MAX);
        GRACE_OF_CELL + GRACE_OF_FLIGHT * flights
    }

    /// The runs that the worker has.
    pub(super) fn runs_in_worker(&self) -> Vec<Arc<Run>> {
        self.shared.lock().machine.begun().cloned().collect()
    }

    /// Takes a frame of the worker.
    pub(super) fn take(&self, worker: &Arc<SessionWorker>, frame: Frame) -> Result<(), Unreadable> {
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
        let mut shared = self.shared.lock();
        let machine = &mut shared.machine;
        let run = machine.cell(number)?.clone();
        if machine.is_current(number) {
            return Ok(());
        }
        let permit = match machine.current() {
            Some(current) if current.is_calling() => return Err(Unreadable::Broken),
            // The granted run begins as soon as it has a permit, though the worker computes by then.
            Some(_) if machine.is_granted() => false,
            Some(current) => current.step_back(),
            None => false,
        };
        worker.set_current(&run);
        run.take_over(permit);
        machine.turn(number);
        // Others came while a question had the turn, or a run that has not begun.
        shared.offer(worker);
        Ok(())
    }

    /// No cell computes in the worker any more, after so many frames to it.
    fn parked(&self, worker: &SessionWorker, taken: u64) -> Result<(), Unreadable> {
        let mut shared = self.shared.lock();
        if !shared.at.has_worker(worker) {
            // Another thread has dismissed the worker meanwhile.
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
            // The granted run has its turn as soon as it has a permit.
            Some(_) if shared.machine.is_granted() => {
                shared.machine.parked();
                return Ok(());
            }
            Some(run) if run.number() == 0 => return Err(Unreadable::Broken),
            Some(run) => run.park()?,
            None => worker.link.hold(),
        }
        shared.machine.parked();
        drop(worker.take_current());
        self.go_on(shared);
        self.place.workers.dispatch();
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
        // All cells that are over were in flight, and each is named once.
        let is_known = known == ended.undone.len() + 1;
        let is_whole = state != SessionState::Reset || known == in_flight;
        if !is_known || !is_whole || (is_kept && !ended.undone.is_empty()) {
            return Err(Unreadable::Broken);
        }
        let has_completed = is_kept && !ended.is_untouched;
        let numbers = ended.undone.clone();
        let (end, peak_bytes) = run.check_cell_end(ended)?;
        if has_completed {
            self.note_completed(&run);
        }
        // Taken before the machine ends cells, which would seem to be a reset.
        let reason = self.reason_of_undone(state);
        let Undone { calls, runs, .. } = {
            let mut shared = self.shared.lock();
            let again = if is_kept { Vec::new() } else { shared.settlements.again().collect() };
            let left = Left { again, undone: numbers, ..Left::of(Effect::Back(state)) };
            let (undone, former) = shared.machine.over(run.in_session(), left);
            if let Some(former) = former {
                drop(worker.take_current());
                // The worker goes on by itself, or parks.
                if let Some(carrier) = shared.machine.go_on() {
                    carrier.take_over(former.step_back());
                    worker.set_current(carrier);
                }
            }
            undone
        };
        run.settle(end, Some(peak_bytes), Effect::Back(state));
        let error = run.failure();
        self.reject_with(calls, error.as_ref());
        self.undo(runs, &reason, state, error.as_ref());
        let mut shared = self.shared.lock();
        shared.machine.has_ended();
        self.go_on(shared);
        self.free_when_idle();
        Ok(())
    }
}

impl Run {
    /// Another cell in flight has the turn now. Returns whether this one had a permit, which the other one gets.
    pub(crate) fn step_back(&self) -> bool {
        let mut shared = self.shared.lock();
        if !self.is_settled() {
            shared.stop_computing();
        }
        std::mem::take(&mut shared.permit)
    }

    /// The cell has the turn now, with the permit of the cell before, if that had one.
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

    /// Whether the cell waits for the answer to a call, and nothing else can resume the worker.
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

    /// The cell stands for the worker, which can resume, in the queue for permits; false if the cell does already.
    pub(crate) fn wake_worker(&self) -> bool {
        let mut shared = self.shared.lock();
        let waits = shared.phase == Phase::Waiting && shared.calling.is_none();
        if waits {
            shared.phase = Phase::Woken;
        }
        waits
    }
}

impl From<Broken> for Unreadable {
    fn from(_: Broken) -> Self {
        Self::Broken
    }
}
