//! The turns of cells that interleave.
//!
//! In: cells in flight, the isolate when none of them computes, and the host's messages. Out: the next run that gets the
//! isolate. A message goes to the cell that it is for, as the isolate tells. A cell resumes when it has one, when a job of
//! its own waits in the engine, or when it is asked to end. New cells and those that resume take turns in one queue.

use std::sync::{Arc, atomic::Ordering};

use super::{Session, Shared};
use crate::{
    binding::inbound::Inbound,
    data::cell::SessionState,
    isolate::session::{Addressee, SessionIsolate},
    runtime::{
        calls::Placed,
        threads::{
            run::{Run, cell::Kind},
            scheduler::Job,
        },
        turns::Entry,
    },
};

impl Shared {
    /// Takes out the next one in the queue. While cells are in flight, a copy of the session is set aside: those before it
    /// may wait for those behind it. A reset waits for them, and so do those behind it which have not begun.
    pub(super) fn next_entry(&mut self) -> Option<Entry<Run>> {
        if self.flights.is_empty() {
            let aside = self.queue.take_aside();
            return aside.map(Entry::Run).or_else(|| self.queue.pop());
        }
        let is_of = |entry: &Entry<Run>, kind| match entry {
            Entry::Run(run) => run.kind() == Some(kind) && run.is_waiting(),
            Entry::Call(_) => false,
        };
        while self.queue.iter().next().is_some_and(|first| is_of(first, Kind::Fork)) {
            if let Some(Entry::Run(run)) = self.queue.pop() {
                self.queue.set_aside(run);
            }
        }
        if !self.queue.iter().next().is_some_and(|first| is_of(first, Kind::Reset)) {
            return self.queue.pop();
        }
        let is_called = |entry: &Entry<Run>| matches!(entry, Entry::Run(run) if run.is_called());
        let place = self.queue.iter().position(is_called)?;
        self.queue.remove(place)
    }

    /// Removes a cell that is over, and those that were undone with it; returns the latter.
    pub(super) fn end_flights(
        &mut self,
        run: &Arc<Run>,
        state: SessionState,
        undone: &[u32],
    ) -> Vec<Arc<Run>> {
        self.flights.retain(|other| !Arc::ptr_eq(other, run));
        let is_undone =
            |other: &mut Arc<Run>| state == SessionState::Reset || undone.contains(&other.number());
        let gone: Vec<_> = self.flights.extract_if(.., is_undone).collect();
        if !gone.is_empty() {
            let is_gone = |waiting: &Arc<Run>| gone.iter().any(|run| Arc::ptr_eq(run, waiting));
            self.queue.retain(|entry| !matches!(entry, Entry::Run(run) if is_gone(run)));
        }
        gone
    }

    /// Calls a cell that waits. `first`: before all others.
    fn call(&mut self, run: &Arc<Run>, first: bool) {
        let is_new = run.call();
        if !first {
            if is_new {
                self.queue.push(Arc::clone(run));
            }
            return;
        }
        let is_it = |entry: &Entry<Run>| matches!(entry, Entry::Run(it) if Arc::ptr_eq(it, run));
        let queued = if is_new { None } else { self.queue.iter().position(is_it) };
        let entry = queued.and_then(|place| self.queue.remove(place));
        if is_new || entry.is_some() {
            self.queue.push_first(Entry::Run(Arc::clone(run)));
        }
    }
}

impl Session {
    /// The number of a new run, if cells interleave; otherwise zero.
    pub(super) fn next_number(&self, kind: Kind) -> u32 {
        if self.request.interleave && !kind.is_task() {
            self.runs.fetch_add(1, Ordering::Relaxed) + 1
        } else {
            0
        }
    }

    /// Queues a cell in flight that was called for its next turn.
    pub(super) fn queue_called(&self, run: &Arc<Run>) {
        let mut shared = self.shared.lock();
        if !shared.flights.iter().any(|flight| Arc::ptr_eq(flight, run)) {
            // It was undone with another one meanwhile, and would never give its turn back.
            return;
        }
        if run.is_ending() {
            // Its end takes no time that matters.
            shared.queue.push_first(Entry::Run(Arc::clone(run)));
        } else {
            shared.queue.push(Arc::clone(run));
        }
        let next = self.advance(&mut shared);
        drop(shared);
        self.start(next);
    }

    /// Takes the isolate of a cell that waits for the host.
    pub(super) fn take_back(&self, run: &Arc<Run>, isolate: Box<SessionIsolate>) {
        let mut shared = self.shared.lock();
        if !shared.current.as_ref().is_some_and(|current| Arc::ptr_eq(current, run)) {
            // The session began anew without it.
            drop(shared);
            return drop(isolate);
        }
        shared.current = None;
        shared.isolate = Some(isolate);
        let next = self.schedule(&mut shared);
        drop(shared);
        self.start(next);
    }

    /// Ends the cell that computes, because another one in flight is to end first and takes its turn back.
    pub(super) fn end_current(&self, run: &Arc<Run>) {
        let current = self.shared.lock().current.clone();
        let is_other = |current: &Arc<Run>| {
            // One that has not begun has done nothing that would be undone.
            current.number() != 0 && !Arc::ptr_eq(current, run) && !current.is_waiting()
        };
        let other = current.filter(is_other);
        if let Some(current) = other {
            current.end(self.reason_of_undone());
        }
    }

    /// The run whose turn it is now, if nobody has it, once all that can resume have been called.
    pub(super) fn schedule(&self, shared: &mut Shared) -> Option<Arc<Run>> {
        if !self.request.interleave || shared.current.is_some() {
            return self.advance(shared);
        }
        self.dispatch(shared);
        let isolate = shared.isolate.as_ref();
        let wanted = isolate.and_then(|isolate| isolate.wanted());
        let can_resume = isolate.is_none_or(|isolate| isolate.can_resume());
        if let Some(number) = wanted {
            let owner = shared.flights.iter().find(|run| run.number() == number);
            if let Some(run) = owner.or(shared.flights.last()).cloned() {
                shared.call(&run, true);
            }
        }
        let next = self.advance(shared);
        let waiting = shared.flights.clone();
        if can_resume {
            for run in &waiting {
                run.forget_stalled();
            }
        } else if next.is_none() {
            // Each finds out that it is stalled, and where.
            for run in waiting.iter().filter(|run| !run.is_stalled()) {
                shared.call(run, false);
            }
            return self.advance(shared);
        }
        next
    }

    /// Gives the host's messages to the cells in flight that they are for. Calls of functions of other cells wait for
    /// their turns; those that were rejected meanwhile are dropped. Further messages stay for whichever cell
    /// computes next.
    pub(super) fn dispatch(&self, shared: &mut Shared) {
        if !self.request.interleave || shared.inbox.len() <= shared.looked_at {
            return;
        }
        let isolate = shared.isolate.take();
        let new = shared.inbox.split_off(shared.looked_at);
        for inbound in new {
            if !shared.calls.is_due(&inbound) {
                continue;
            }
            let addressee = isolate.as_ref().map_or(Addressee::Nobody, |it| it.addressee(&inbound));
            let call = match &inbound {
                Inbound::FunctionCall { call, .. } => Some(*call),
                _ => None,
            };
            let cell = match addressee {
                Addressee::Cell(number) => shared.flights.iter().find(|it| it.number() == number),
                Addressee::Any if call.is_none() => shared.flights.last(),
                Addressee::Any | Addressee::Nobody => None,
            };
            let given = match cell.cloned() {
                Some(run) => run.take_counted(inbound).map(|called| (run, called)),
                None => Err(inbound),
            };
            match (given, call) {
                (Ok((run, called)), call) => {
                    if let Some(call) = call {
                        shared.calls.place(call, Placed::In(Arc::downgrade(&run)));
                        shared.note_over(1);
                    }
                    if called {
                        shared.queue.push(run);
                    }
                }
                (Err(inbound), None) => shared.inbox.push(inbound),
                (Err(inbound), Some(_)) => shared.queue.keep(inbound),
            }
        }
        shared.looked_at = shared.inbox.len();
        shared.isolate = isolate;
    }
}
