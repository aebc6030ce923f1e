//! The events of an isolate in a worker, which tells itself which cell in flight computes.
//!
//! The worker is given a run that has not begun when it has parked, which it does as soon as no cell computes. The
//! worker is asked to park earlier while such a run waits, once for each run: it forgets that as soon as a run begins.

use std::{collections::HashSet, mem};

use super::{Kind, Left, Machine, Offer, Parts, Stage, Undone};
use crate::runtime::sessions::{calls::Placed, queue::Entry};

/// A worker said something that cannot be.
#[derive(Debug)]
pub(crate) struct Broken;

impl<P: Parts> Machine<P> {
    /// The cell in flight with that number.
    pub(crate) fn cell(&self, number: u32) -> Result<&P::Run, Broken> {
        let known = self.runs.get(&number).filter(|_| self.begun.contains(&number));
        known.map(|known| &known.run).ok_or(Broken)
    }

    /// How many cells of these numbers are in flight.
    pub(crate) fn count_begun_of(&self, numbers: &HashSet<u32>) -> usize {
        self.begun.iter().filter(|number| numbers.contains(number)).count()
    }

    /// How many cells are in flight.
    pub(crate) fn count_begun(&self) -> usize {
        self.begun.len()
    }

    /// The question that the worker answers next.
    pub(crate) fn asked(&self) -> Option<&P::Run> {
        self.run_of(*self.asked.front()?)
    }

    /// The worker has a question.
    pub(crate) fn ask(&mut self, number: u32) {
        self.asked.push_back(number);
    }

    /// Whether the run that has the turn has not begun.
    pub(crate) fn is_granted(&self) -> bool {
        self.current.and_then(|number| self.stage_of(number)) == Some(Stage::Granted)
    }

    /// The worker has a cell in flight compute. A run that has the turn, and has not begun, begins as soon as it can.
    pub(crate) fn turn(&mut self, number: u32) {
        if self.offer == Offer::Parked {
            self.offer = Offer::None;
        }
        if let Some(current) = self.current.replace(number)
            && self.stage_of(current) == Some(Stage::Granted)
        {
            self.granted.push(current);
        }
    }

    /// No cell computes in the worker any more. A run that has the turn, and has not begun, has it still.
    pub(crate) fn parked(&mut self) {
        if self.offer == Offer::Asked {
            self.offer = Offer::Parked;
        }
        if !self.is_granted() {
            self.current = None;
        }
    }

    /// Whether the worker has parked for a run that has ended meanwhile, and must be told to go on.
    pub(crate) fn parked_for_nothing(&self) -> bool {
        self.offer == Offer::Parked && !self.is_taken()
    }

    /// The worker goes on by itself, or parks again: the cell that stands for it has the turn.
    pub(crate) fn go_on(&mut self) -> Option<&P::Run> {
        if self.offer == Offer::Parked {
            self.offer = Offer::None;
        }
        self.current = Some(*self.begun.last()?);
        self.current()
    }

    /// Whether the worker is to be asked to park, because a run can begin as soon as it does. A run that has the turn,
    /// and has not begun, comes before that one.
    pub(crate) fn offers(&mut self) -> bool {
        let computes = self.current.and_then(|current| self.runs.get(&current));
        let computes =
            computes.is_some_and(|known| known.kind.is_cell() && known.stage != Stage::Granted);
        let offers = self.interleaves && self.offer == Offer::None && computes && self.has_next();
        if offers {
            self.offer = Offer::Asked;
        }
        offers
    }

    /// Whether the first one in the queue can begin as soon as the worker parks.
    fn has_next(&self) -> bool {
        let can_begin = |entry: Entry| match entry {
            Entry::Run(number) => {
                let known = self.runs.get(&number)?;
                // A copy waits for the cells in flight.
                let waits = known.stage == Stage::Queued && known.kind != Kind::Fork;
                waits.then_some(true)
            }
            Entry::Call(call) => match self.calls.place_of(call)? {
                Placed::Waiting | Placed::Left => Some(true),
                Placed::Sent => Some(false),
                Placed::In(_) | Placed::Own => None,
            },
        };
        self.queue.iter().find_map(can_begin).unwrap_or(false)
    }

    /// The worker has the message of a call, and tells later where it is.
    pub(crate) fn sent(&mut self, call: u32) {
        self.note_waiting(call);
        self.calls.place(call, Placed::Sent);
    }

    /// The worker has placed a call of the host: in a cell in flight, or in none.
    pub(crate) fn placed(&mut self, call: u32, number: u32) -> Result<(), Broken> {
        let is_new = match self.calls.place_of(call) {
            Some(Placed::Sent) => true,
            // Its cell has ended, and was not handed it.
            Some(Placed::In(_)) => false,
            _ => return Err(Broken),
        };
        if number == 0 {
            self.calls.place(call, Placed::Left);
            if !is_new {
                self.queue.push_first(Entry::Call(call));
            }
        } else {
            self.cell(number)?;
            self.calls.place(call, Placed::In(number));
            self.note_over(usize::from(is_new));
        }
        Ok(())
    }

    /// A cell in flight is over in the worker, and others that were undone with it. Nobody gets a turn until
    /// [`Machine::has_ended`]. Returns besides the one of them that had the turn.
    pub(crate) fn over(
        &mut self,
        number: u32,
        left: Left<P::Message>,
    ) -> (Undone<P>, Option<P::Run>) {
        let is_over = |current: &u32| *current == number || left.undone.contains(current);
        let current = self.current.filter(is_over);
        let current = current.and_then(|current| self.run_of(current).cloned());
        self.ending += 1;
        (self.leave(number, left), current)
    }

    /// Gives calls that came too late for their cell the first turns, in their order. The worker has them.
    pub(super) fn put_late_back(&mut self, late: &[u32]) {
        for &call in late.iter().rev() {
            // Some were refused, or rejected with all others.
            if self.calls.is_pending(call) {
                self.calls.place(call, Placed::Left);
                self.queue.push_first(Entry::Call(call));
            }
        }
    }

    /// The isolate is lost. Returns the questions that its worker had, and the calls that are rejected with it.
    pub(crate) fn lose_isolate(&mut self) -> (Vec<P::Run>, Vec<u32>) {
        self.offer = Offer::None;
        let asked = mem::take(&mut self.asked);
        let asked = asked.into_iter().filter_map(|number| self.run_of(number).cloned()).collect();
        (asked, self.calls.lose())
    }

    /// The worker is given up with all that it has: each of these runs is being ended.
    pub(crate) fn give_up(&mut self) {
        self.begun.clear();
        self.granted.clear();
        drop(self.lose_isolate());
    }
}
