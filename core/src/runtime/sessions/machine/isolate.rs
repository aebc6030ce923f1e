//! The events of an isolate on a thread, whose session tells which cell in flight resumes.
//!
//! A message goes to the cell that it is for, as the isolate tells. A cell resumes when it has one, when a job of its own
//! waits in the engine, or when it is asked to end. Cells that begin and those that resume take turns in one queue. One with
//! a job comes first, so that cells end before more begin. After as many such turns as there are cells in flight, the
//! first in the queue has a turn: cells that always have jobs keep nobody waiting.

use super::{Machine, Message, Parts, Stage, Turn};
use crate::{
    isolate::session::Addressee,
    runtime::sessions::{calls::Placed, queue::Entry},
};

/// The isolate of cells that interleave, while none of them computes.
pub(crate) trait Resting<M> {
    /// The one whom a message is for.
    fn addressee(&self, message: &M) -> Addressee;

    /// The cell whose job waits in the engine.
    fn wanted(&self) -> Option<u32>;

    /// Whether anything can resume a cell in flight.
    fn can_resume(&self) -> bool;
}

impl<P: Parts> Machine<P> {
    /// Keeps a message until the isolate tells whom it is for.
    pub(crate) fn keep_new(&mut self, message: P::Message) {
        if let Some(call) = message.call() {
            self.note_waiting(call);
        }
        self.inbox.push(message);
    }

    /// A cell has another turn from now on: takes its messages, and those for whichever cell computes.
    pub(crate) fn resume(&mut self, number: u32) -> (Vec<P::Message>, Vec<P::Message>) {
        let own = self.runs.get_mut(&number).map(|known| {
            known.is_stalled = false;
            std::mem::take(&mut known.inbox)
        });
        (own.unwrap_or_default(), self.inbox.take())
    }

    /// The cell that has the turn waits for the host, and others may have it. `is_stalled`: nothing can resume it. False
    /// if the session began anew without it.
    pub(crate) fn rest(&mut self, number: u32, is_stalled: bool) -> bool {
        if self.current != Some(number) {
            return false;
        }
        self.current = None;
        if let Some(known) = self.runs.get_mut(&number) {
            known.is_stalled = is_stalled;
            let is_called = known.stage == Stage::Again;
            known.stage = Stage::Resting;
            if is_called {
                self.call_first(number);
            }
        }
        true
    }

    /// Calls a cell in flight for its next turn. `is_first`: before all others, because it is to end, which takes no time
    /// that matters.
    pub(crate) fn call(&mut self, number: u32, is_first: bool) {
        match self.stage_of(number) {
            Some(Stage::Resting | Stage::Called) if is_first => self.call_first(number),
            Some(Stage::Resting) => self.call_last(number),
            // Its thread has not told yet that it waits.
            Some(Stage::Begun) => self.set_stage(number, Stage::Again),
            _ => {}
        }
    }

    /// Whether a cell in flight waits for the host, and nobody has called it for its next turn.
    pub(crate) fn is_resting(&self, number: u32) -> bool {
        self.stage_of(number) == Some(Stage::Resting)
    }

    fn call_last(&mut self, number: u32) {
        self.set_stage(number, Stage::Called);
        self.queue.push(Entry::Run(number));
    }

    fn call_first(&mut self, number: u32) {
        if self.stage_of(number) == Some(Stage::Called) {
            self.queue.take_first(|entry| entry == Entry::Run(number));
        }
        self.set_stage(number, Stage::Called);
        self.queue.push_first(Entry::Run(number));
    }

    /// The cell that computes, if it is another one: it would be undone with a cell in flight that is to end. One that has
    /// not begun has done nothing that would be undone.
    pub(crate) fn computes_beside(&self, number: u32) -> Option<&P::Run> {
        let current = self.current.filter(|current| *current != number)?;
        if self.begun.contains(&current) { self.run_of(current) } else { None }
    }

    /// The same as [`Machine::next`], once all that can resume have been called. Returns besides the cells that something
    /// can resume by now.
    pub(crate) fn next_of(
        &mut self,
        isolate: Option<&impl Resting<P::Message>>,
    ) -> (Option<Turn<P>>, Vec<P::Run>) {
        if !self.interleaves || self.is_taken() {
            return (self.next(), Vec::new());
        }
        self.dispatch(isolate);
        let wanted = isolate.and_then(Resting::wanted).and_then(|number| {
            let owner = self.begun.iter().find(|begun| **begun == number);
            owner.or(self.begun.last()).copied()
        });
        let is_ahead = wanted.is_some() && self.jobs_ahead < self.begun.len();
        self.jobs_ahead = if is_ahead { self.jobs_ahead + 1 } else { 0 };
        if let Some(number) = wanted.filter(|_| is_ahead) {
            self.call_first(number);
        }
        let mut next = self.next();
        if let Some(number) = wanted.filter(|_| next.is_none()) {
            self.call_first(number);
            next = self.next();
        }
        if isolate.is_none_or(Resting::can_resume) {
            return (next, self.forget_stalled());
        }
        if next.is_some() {
            return (next, Vec::new());
        }
        // Each finds out that it is stalled, and where.
        for number in self.begun.clone() {
            let known = self.runs.get(&number);
            if known.is_some_and(|known| known.stage == Stage::Resting && !known.is_stalled) {
                self.call_last(number);
            }
        }
        (self.next(), Vec::new())
    }

    fn forget_stalled(&mut self) -> Vec<P::Run> {
        let Self { begun, runs, .. } = self;
        let mut resumable = Vec::new();
        for number in begun {
            if let Some(known) = runs.get_mut(number).filter(|known| known.is_stalled) {
                known.is_stalled = false;
                resumable.push(known.run.clone());
            }
        }
        resumable
    }

    /// Gives the host's messages to the cells in flight that they are for. Calls of functions of other cells wait for
    /// their turns; those that were rejected meanwhile are dropped. Further messages stay for whichever cell computes next.
    pub(crate) fn dispatch(&mut self, isolate: Option<&impl Resting<P::Message>>) {
        if !self.interleaves {
            return;
        }
        for message in self.inbox.take_new() {
            let call = message.call();
            if call.is_some_and(|call| !self.calls.is_pending(call)) {
                continue;
            }
            let addressee = isolate.map_or(Addressee::Nobody, |it| it.addressee(&message));
            let number = match addressee {
                Addressee::Cell(number) => Some(number),
                Addressee::Any if call.is_none() => self.begun.last().copied(),
                Addressee::Any | Addressee::Nobody => None,
            };
            let waits = |stage| matches!(stage, Stage::Resting | Stage::Called);
            let cell = number.filter(|number| self.stage_of(*number).is_some_and(waits));
            match (cell, call) {
                (Some(number), _) => {
                    if let Some(known) = self.runs.get_mut(&number) {
                        known.inbox.push(message);
                    }
                    self.call(number, false);
                    if let Some(call) = call {
                        self.calls.place(call, Placed::In(number));
                        self.note_over(1);
                    }
                }
                (None, None) => self.inbox.push(message),
                (None, Some(_)) => self.queue.keep(message),
            }
        }
        self.inbox.note_looked_at();
    }
}
