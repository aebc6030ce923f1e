//! The calls that the host has made of functions of the sandbox, until they settle.
//!
//! In: calls as they are placed, the outcomes that the isolate sends, and the ends of cells. Out: whether an outcome is
//! for the host, and the calls that never get one: those of a cell that was rolled back, and of a session that was
//! reset. So each call settles once.

use std::collections::BTreeMap;

/// The calls of one session, by their numbers.
#[derive(Clone, Debug, Default, Hash, PartialEq, Eq)]
pub(super) struct Calls(BTreeMap<u32, Placed>);

/// The cell in which a call was placed.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub(super) enum Placed {
    /// One of the caller's, beside its own code.
    In(u32),
    /// One of its own, which has got its turn.
    Own,
    /// None yet: it waits for its turn, or for a cell that takes it.
    Waiting,
    /// The same, and a worker has its message.
    Left,
    /// A worker has it, and tells whether it is in a cell in flight or waits for its turn.
    Sent,
}

impl Calls {
    pub(super) fn place(&mut self, call: u32, placed: Placed) {
        self.0.insert(call, placed);
    }

    /// Where the call is; `None` if it has its outcome.
    pub(super) fn place_of(&self, call: u32) -> Option<Placed> {
        self.0.get(&call).copied()
    }

    /// Whether the call has no outcome yet.
    pub(super) fn is_pending(&self, call: u32) -> bool {
        self.0.contains_key(&call)
    }

    /// Whether the call waits for its turn, or may have to.
    pub(super) fn waits(&self, call: u32) -> bool {
        self.place_of(call).is_some_and(Placed::waits)
    }

    /// Whether any call does.
    pub(super) fn any_waits(&self) -> bool {
        self.0.values().any(|placed| placed.waits())
    }

    /// Takes note of an outcome; false if the call has settled before.
    pub(super) fn settle(&mut self, call: u32) -> bool {
        self.0.remove(&call).is_some()
    }

    /// The call whose own cell is over, if it has no outcome: it never will.
    pub(super) fn end_of(&mut self, call: Option<u32>) -> Vec<u32> {
        call.filter(|call| self.settle(*call)).into_iter().collect()
    }

    /// The calls that were placed in a cell which was rolled back.
    pub(super) fn undo(&mut self, run: u32) -> Vec<u32> {
        self.take(|placed| placed == Placed::In(run))
    }

    /// The calls that were placed in any cell, but not those that wait, nor those that have a cell of their own.
    pub(super) fn forget(&mut self) -> Vec<u32> {
        self.take(|placed| matches!(placed, Placed::In(_)))
    }

    /// The calls that waited in a worker which is lost.
    pub(super) fn lose(&mut self) -> Vec<u32> {
        self.take(|placed| matches!(placed, Placed::Left | Placed::Sent))
    }

    pub(super) fn take_all(&mut self) -> Vec<u32> {
        self.take(|_| true)
    }

    fn take(&mut self, is_taken: impl Fn(Placed) -> bool) -> Vec<u32> {
        self.0.extract_if(.., |_, placed| is_taken(*placed)).map(|(call, _)| call).collect()
    }
}

impl Placed {
    fn waits(self) -> bool {
        matches!(self, Self::Waiting | Self::Left | Self::Sent)
    }
}
