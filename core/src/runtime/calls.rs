//! The calls that the host has made of functions of the sandbox, until they settle.
//!
//! In: calls as they are placed, the outcomes that the isolate sends, and the ends of cells. Out: whether an outcome is
//! for the host, and the calls that never get one: those of a cell that was rolled back, and of a session that was
//! reset. So each call settles once.

use std::{collections::HashMap, sync::Weak};

use crate::binding::inbound::Inbound;

/// The calls of one session, by their numbers.
pub(crate) struct Calls<R>(HashMap<u32, Placed<R>>);

impl<R> Default for Calls<R> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

/// The cell in which a call was placed.
pub(crate) enum Placed<R> {
    /// One of the caller's, beside its own code.
    In(Weak<R>),
    /// One of its own, which has got its turn.
    Own,
    /// None yet: it waits for its turn, or for a cell that takes it.
    Waiting,
    /// The same, and a worker has its message.
    Left,
    /// A worker has it, and tells whether it is in a cell in flight or waits for its turn.
    Sent,
}

impl<R> Calls<R> {
    pub(crate) fn place(&mut self, call: u32, placed: Placed<R>) {
        self.0.insert(call, placed);
    }

    /// Whether a message is still of use: a call is, until the host has its outcome.
    pub(crate) fn is_due(&self, inbound: &Inbound) -> bool {
        match inbound {
            Inbound::FunctionCall { call, .. } => self.is_pending(*call),
            _ => true,
        }
    }

    /// Whether the call has no outcome yet.
    pub(crate) fn is_pending(&self, call: u32) -> bool {
        self.0.contains_key(&call)
    }

    /// Where the call is; `None` if it has its outcome.
    pub(crate) fn place_of(&self, call: u32) -> Option<&Placed<R>> {
        self.0.get(&call)
    }

    /// Whether the call waits for its turn, or may have to.
    pub(crate) fn waits(&self, call: u32) -> bool {
        matches!(self.0.get(&call), Some(Placed::Waiting | Placed::Left | Placed::Sent))
    }

    /// Takes note of an outcome; false if the call has settled before.
    pub(crate) fn settle(&mut self, call: u32) -> bool {
        self.0.remove(&call).is_some()
    }

    /// The call whose own cell is over, if it has no outcome: it never will.
    pub(crate) fn end_of(&mut self, call: Option<u32>) -> Vec<u32> {
        call.filter(|call| self.settle(*call)).into_iter().collect()
    }

    /// The calls that were placed in a cell which was rolled back.
    pub(crate) fn undo(&mut self, run: &R) -> Vec<u32> {
        self.take(|placed| match placed {
            Placed::In(cell) => std::ptr::eq(cell.as_ptr(), run),
            _ => false,
        })
    }

    /// The calls that were placed in any cell, but not those that wait, nor those that have a cell of their own.
    pub(crate) fn forget(&mut self) -> Vec<u32> {
        self.take(|placed| matches!(placed, Placed::In(_)))
    }

    /// The calls that waited in a worker which is lost.
    pub(crate) fn lose(&mut self) -> Vec<u32> {
        self.take(|placed| matches!(placed, Placed::Left | Placed::Sent))
    }

    pub(crate) fn take_all(&mut self) -> Vec<u32> {
        self.take(|_| true)
    }

    fn take(&mut self, is_taken: impl Fn(&Placed<R>) -> bool) -> Vec<u32> {
        let mut calls: Vec<u32> =
            self.0.extract_if(|_, placed| is_taken(placed)).map(|(call, _)| call).collect();
        calls.sort_unstable();
        calls
    }
}
