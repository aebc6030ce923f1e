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
    },
};

impl Shared {
    /// The place of the next run in the queue. A copy of the session waits until no cell is in flight, and so do those
    /// behind it which have not begun.
    pub(super) fn first(&self) -> Option<usize> {
        let is_alone = |run: &Arc<Run>| run.kind().is_some_and(Kind::is_alone);
        let bar = self.queue.iter().position(|run| is_alone(run) && !self.flights.is_empty());
        let mut places = self.queue.iter().enumerate();
        places
            .find(|(place, run)| bar.is_none_or(|bar| *place < bar) || run.is_called())
            .map(|(place, _)| place)
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
        self.queue.retain(|waiting| !gone.iter().any(|run| Arc::ptr_eq(run, waiting)));
        gone
    }

    /// Calls a cell that waits. `first`: before all others.
    fn call(&mut self, run: &Arc<Run>, first: bool) {
        if run.call() {
            self.queue.push_back(Arc::clone(run));
        }
        let place = self.queue.iter().position(|other| Arc::ptr_eq(other, run));
        if let Some(run) = place.filter(|_| first).and_then(|place| self.queue.remove(place)) {
            self.queue.push_front(run);
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
            shared.queue.push_front(Arc::clone(run));
        } else {
            shared.queue.push_back(Arc::clone(run));
        }
        let next = shared.advance();
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
        let other = current.filter(|current| current.number() != 0 && !Arc::ptr_eq(current, run));
        if let Some(current) = other {
            current.end(self.reason_of_undone());
        }
    }

    /// The run whose turn it is now, if nobody has it, once all that can resume have been called.
    pub(super) fn schedule(&self, shared: &mut Shared) -> Option<Arc<Run>> {
        if !self.request.interleave || shared.current.is_some() {
            return shared.advance();
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
        let next = shared.advance();
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
            return shared.advance();
        }
        next
    }

    /// Gives the host's messages to the cells in flight that they are for. Calls of functions of other cells become
    /// cells of their own; those that were rejected meanwhile are dropped. Further messages stay for whichever cell
    /// computes next.
    pub(super) fn dispatch(&self, shared: &mut Shared) {
        if !self.request.interleave || shared.inbox.is_empty() {
            return;
        }
        let isolate = shared.isolate.take();
        let mut left = Vec::new();
        for inbound in std::mem::take(&mut shared.inbox) {
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
                    }
                    if called {
                        shared.queue.push_back(run);
                    }
                }
                (Err(inbound), None) => left.push(inbound),
                (Err(inbound), Some(_)) => {
                    let run = self.held(shared, inbound);
                    shared.queue.extend(run);
                }
            }
        }
        shared.inbox = left;
        shared.isolate = isolate;
    }
}
