//! The outcomes that the cells of a session have sent to their host.
//!
//! In: an outcome that is to be sent, and the end of each cell. Out: whether to send it. The host takes each outcome
//! once. After a cell was rolled back, the sandbox may come to outcomes again that the cell has sent.

use std::collections::HashSet;

use crate::data::{
    journal::Journal,
    portable::{Input, Output, Portable, portable},
};

/// The outcomes of cells that may be undone, and those of cells that were rolled back.
#[derive(Debug, Default)]
pub(crate) struct Outcomes {
    sent: Journal<Outcome>,
    undone: HashSet<Outcome>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Outcome {
    Call(u32),
    Promise(u32),
}

portable!(enum Outcome { 0: Call(call), 1: Promise(promise) });

impl Outcomes {
    /// Whether to send the outcome of that call of the host.
    pub(crate) fn function(&mut self, call: u32) -> bool {
        self.is_new(Outcome::Call(call))
    }

    /// Whether to send the outcome of that promise of the sandbox.
    pub(crate) fn promise(&mut self, promise: u32) -> bool {
        self.is_new(Outcome::Promise(promise))
    }

    fn is_new(&mut self, outcome: Outcome) -> bool {
        self.sent.note(outcome);
        // No number has two outcomes in one state.
        !self.undone.remove(&outcome)
    }

    /// A cell begins which has that number.
    pub(crate) fn begin(&mut self, number: u32) {
        self.sent.begin(number);
    }

    /// The cell with that number is over, and its effects stay.
    pub(crate) fn keep(&mut self, number: u32) {
        self.sent.keep(number);
    }

    /// The cell with that number is over, and has changed nothing.
    pub(crate) fn leave(&mut self, number: u32) {
        self.sent.forget(number);
    }

    /// The cell with that number is over, and its effects are undone, with those of these cells.
    pub(crate) fn undo(&mut self, number: u32, undone: &[u32]) {
        self.undone.extend(self.sent.undo(number, undone));
    }

    /// The session has begun anew, with other numbers.
    pub(crate) fn forget(&mut self) {
        *self = Self::default();
    }
}

/// Between cells: no cell that may be undone has sent any.
impl Portable for Outcomes {
    fn write(&self, out: &mut Output) {
        self.undone.write(out);
    }

    fn read(input: &mut Input<'_>) -> Option<Self> {
        Some(Self { sent: Journal::default(), undone: HashSet::read(input)? })
    }
}

#[cfg(test)]
mod tests {
    use super::Outcomes;

    #[test]
    fn an_outcome_is_sent_once_whatever_is_undone() {
        let mut outcomes = Outcomes::default();
        assert!(outcomes.function(1) && outcomes.promise(1));
        outcomes.keep(0);
        assert!(outcomes.function(2) && outcomes.promise(3));
        outcomes.undo(0, &[]);
        // The sandbox comes to these once more, twice, and to another one for the first time.
        assert!(!outcomes.function(2) && !outcomes.promise(3) && outcomes.promise(2));
        outcomes.undo(0, &[]);
        assert!(!outcomes.function(2) && !outcomes.promise(3) && !outcomes.promise(2));
        outcomes.keep(0);
        assert!(outcomes.function(9));
        outcomes.undo(0, &[]);
        outcomes.forget();
        assert!(outcomes.function(9));
    }
}
