//! The actions of other threads on a run: end it, answer it, deliver to it, and enforce its cap.

use std::{
    sync::{Arc, MutexGuard, atomic::Ordering},
    time::{Duration, Instant},
};

use super::{Phase, Run, Shared, place::InSession};
use crate::{
    binding::{
        handle::{Recipient, RunControl},
        host::Completion,
        inbound::Inbound,
    },
    data::{cell::SessionState, outcome::ExecutionResult},
    isolate::End,
    runtime::{
        record::Reason,
        registry::CLOSED,
        sessions::{Effect, Over},
        threads::watchdog::{CELL_GRACE, GRACE, Watched},
    },
    value::{Charge, Value},
};

/// By how much a run may pass its cap until another thread than its own enforces it.
const CAP_GRACE: Duration = Duration::from_millis(100);

impl Run {
    fn limit_bytes(&self) -> usize {
        usize::try_from(self.memory_limit).unwrap_or(usize::MAX)
    }

    /// Resumes it if it is parked.
    pub(super) fn wake(self: &Arc<Self>, mut shared: MutexGuard<'_, Shared>) {
        if shared.resume() {
            drop(shared);
            self.enqueue();
        }
    }

    /// Asks the run to end; the first reason stays.
    pub(crate) fn end(self: &Arc<Self>, reason: Reason) {
        let mut shared = self.shared.lock();
        if self.is_settled() || shared.claimed {
            return;
        }
        if shared.record.is_asked() {
            return shared.record.ask(reason);
        }
        // A runtime that closes may end thousands at once, on a thread of the host.
        let needs_no_place = matches!(&reason, Reason::Stalled(_))
            || matches!(&reason, Reason::Terminated(text) if text == CLOSED);
        shared.record.ask(reason);
        let mut end = End::Asked;
        if self.cell.is_none()
            && !needs_no_place
            && matches!(shared.phase, Phase::Parked(_))
            && let Phase::Parked(mut isolate) =
                std::mem::replace(&mut shared.phase, Phase::Computing)
        {
            // Nobody else takes a run further that was asked to end.
            drop(shared);
            end = isolate.asked(0);
            shared = self.shared.lock();
            shared.phase = Phase::Parked(isolate);
        }
        self.termination.raise();
        let computing = matches!(shared.phase, Phase::Computing);
        let interleaves = matches!(shared.phase, Phase::Aside);
        let (mut parked, mut unused, mut peak_bytes) = (false, None, None);
        match std::mem::replace(&mut shared.phase, Phase::Over) {
            Phase::Parked(isolate) => {
                peak_bytes = Some(isolate.peak_bytes());
                shared.phase = Phase::Woken(isolate);
                parked = true;
            }
            Phase::Woken(isolate) => {
                peak_bytes = Some(isolate.peak_bytes());
                shared.phase = Phase::Woken(isolate);
            }
            Phase::Aside => {
                shared.phase = Phase::Aside;
                parked = true;
            }
            // The run stays in the queue, and holds nothing any more.
            Phase::Queued(work) => unused = Some(work),
            other => shared.phase = other,
        }
        drop(shared);
        self.answered.notify_all();
        if computing {
            self.resources.scheduler.wake_ended(self);
            self.resources.watchdog.watch_ending(self);
            return;
        }
        // A cell that has begun settles when its session has been rolled back, on a thread of the runtime.
        if self.cell.is_none() || unused.is_some() {
            let has_turn = self.cell.as_ref().is_some_and(InSession::has_turn);
            let state = self.shared.lock().record.state_of_unbegun(has_turn);
            let error = self.settle(end, peak_bytes, state);
            if let Some(part) = &self.cell {
                self.leave(part, Over::of(Effect::Untouched, error));
            }
        }
        if parked {
            // A thread of the runtime gives its isolate back; that is no work for the caller's thread.
            self.enqueue();
        }
        if interleaves {
            // Another cell may compute for long, and its thread may not come back.
            self.press();
            self.resources.watchdog.watch_ending(self);
        }
    }

    /// Puts a message into the inbox, and resumes the run if it is parked.
    pub(super) fn take_in(
        self: &Arc<Self>,
        mut shared: MutexGuard<'_, Shared>,
        mut inbound: Inbound,
    ) {
        if inbound.count(&self.termination.in_flight, self.limit_bytes()) {
            shared.inbox.push(inbound);
        } else {
            // The run finds that out as soon as it resumes.
            self.termination.exhaust();
            shared.record.overdraw();
            if self.cell.is_some() && inbound.settles().is_some() {
                // It may be for a later cell, which would wait for ever.
                inbound.refuse();
                shared.inbox.push(inbound);
            }
        }
        self.wake(shared);
    }
}

impl Recipient for Run {
    fn deliver(self: Arc<Self>, inbound: Inbound) {
        if let Some(part) = &self.cell {
            return Arc::clone(&part.session).deliver(inbound);
        }
        let shared = self.shared.lock();
        if !self.is_settled() {
            self.take_in(shared, inbound);
        }
    }

    fn charge(self: Arc<Self>, bytes: usize) -> Option<Charge> {
        let charge = self.termination.in_flight.charge(bytes, self.limit_bytes());
        if charge.is_none() {
            self.termination.exhaust();
            let mut shared = self.shared.lock();
            shared.record.overdraw();
            if !self.is_settled() {
                self.wake(shared);
            }
        }
        charge
    }

    fn ended_by_itself(&self) -> bool {
        self.shared.lock().record.ended_by_itself()
    }
}

impl RunControl for Run {
    fn computed(&self) -> Duration {
        // Locked one after the other, as everywhere: a slice that ends in between counts once too little for a moment.
        let current = self.slice.lock().map(|slice| slice.wall(Instant::now()));
        self.shared.lock().computed + current.unwrap_or_default()
    }

    fn is_here(&self) -> bool {
        self.resources.is_here()
    }

    fn running(&self) -> bool {
        !self.is_settled()
    }

    fn was_ended(&self) -> bool {
        self.shared.lock().record.was_ended()
    }

    fn terminate(self: Arc<Self>, reason: Option<&str>) {
        self.end(Reason::of_caller(reason));
    }

    fn reply(self: Arc<Self>, call: u64, completion: Completion) {
        let mut shared = self.shared.lock();
        if shared.calls == call && shared.answer.is_none() {
            shared.answer = Some(completion);
            self.resources.spin.sent();
            self.answer_of.store(call, Ordering::Release);
            drop(shared);
            self.answered.notify_all();
        }
    }

    fn reports_since(&self, index: usize) -> Vec<Arc<Value>> {
        self.shared.lock().record.reports_since(index)
    }

    fn take_report(&self) -> Option<Value> {
        self.shared.lock().record.take_report()
    }

    fn result_bytes(&self) -> usize {
        self.shared.lock().record.result_bytes()
    }

    fn lend_result(&self) -> Option<ExecutionResult> {
        self.shared.lock().record.lend_result()
    }

    fn return_result(&self, result: ExecutionResult) {
        self.shared.lock().record.return_result(result);
    }

    fn take_result(&self) -> Option<ExecutionResult> {
        self.shared.lock().record.take_result()
    }
}

impl Watched for Run {
    fn force(self: &Arc<Self>) {
        if self.cell.as_ref().is_some_and(|part| part.own.waits()) {
            // It ends as soon as it is back in the home of its session.
            return self.resources.watchdog.watch_ending(self);
        }
        if self.press() {
            // The one that has the turn may not have begun.
            return self.resources.watchdog.watch_ending(self);
        }
        if !self.termination.is_exhausted() && self.settle_early() {
            return;
        }
        // The end of a cell that is decided takes no time that matters.
        let end = if self.termination.is_exhausted() { End::Memory } else { End::Asked };
        if self.claim(&end).is_some() {
            self.resources.scheduler.abandon(self);
            let error = self.settle(end, None, SessionState::Reset);
            if let Some(part) = &self.cell {
                self.lose(part, error);
            }
            // It may have been the last run that a closed runtime waited for.
            self.resources.close_when_idle();
        }
    }

    fn grace(&self) -> Duration {
        if self.cell.is_some() { CELL_GRACE } else { GRACE }
    }

    fn end_overdue(self: &Arc<Self>) {
        if let Some(timeout) = self.timeout {
            self.end(Reason::Timeout(timeout));
        }
    }

    fn end_stalled(self: &Arc<Self>, parking: u64) {
        let is_resting = self.cell.as_ref().is_some_and(|part| part.session.is_resting(self));
        let stalled = {
            let mut shared = self.shared.lock();
            let waits = match shared.phase {
                Phase::Parked(_) => true,
                Phase::Aside => is_resting,
                _ => false,
            };
            let parked = waits && shared.parkings == parking;
            // It has been resumed since, and may be stalled anew.
            shared.stalled.take_if(|_| parked)
        };
        if let Some(error) = stalled {
            self.end(Reason::Stalled(error));
        }
    }

    fn check_cap(self: &Arc<Self>, now: Instant) {
        if self.termination.is_exhausted() {
            self.resources.watchdog.watch_ending(self);
        }
        let slice = *self.slice.lock();
        let Some(slice) = slice else { return };
        let cap = self.resources.safety_cap;
        let computed = self.shared.lock().computed;
        if slice.wall(now) + computed > cap + CAP_GRACE {
            self.end(Reason::cap(cap));
        }
    }
}
