//! The calls that the host has made of functions of the sandbox, until they settle.
//!
//! In: calls as they are placed, the outcomes that the isolate sends, and the ends of cells. Out: whether an outcome is
//! for the host, and the calls that never get one: those of a cell that was rolled back, and of a session that was
//! reset. So each call settles once.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
};

use super::Run;
use crate::binding::inbound::Inbound;

/// The calls of one session, by their numbers.
#[derive(Default)]
pub(super) struct Calls(HashMap<u32, Placed>);

/// The cell in which a call was placed.
pub(super) enum Placed {
    /// None yet: it waits until a cell in flight, or one of its own, takes it.
    Waiting,
    /// One of the caller's, beside its own code.
    In(Weak<Run>),
    /// One of its own.
    Own(Weak<Run>),
}

impl Placed {
    fn is_in(&self, run: &Arc<Run>) -> bool {
        match self {
            Self::Waiting => false,
            Self::In(cell) | Self::Own(cell) => std::ptr::eq(cell.as_ptr(), Arc::as_ptr(run)),
        }
    }
}

impl Calls {
    pub(super) fn place(&mut self, call: u32, placed: Placed) {
        self.0.insert(call, placed);
    }

    /// Whether a message is still of use: a call is, until the host has its outcome.
    pub(super) fn is_due(&self, inbound: &Inbound) -> bool {
        match inbound {
            Inbound::FunctionCall { call, .. } => self.0.contains_key(call),
            _ => true,
        }
    }

    /// Takes note of an outcome; false if the call has settled before.
    pub(super) fn settle(&mut self, call: u32) -> bool {
        self.0.remove(&call).is_some()
    }

    /// The calls whose own cell this was: it has settled them, or never will.
    pub(super) fn end_of(&mut self, run: &Arc<Run>) -> Vec<u32> {
        self.take(|placed| matches!(placed, Placed::Own(_)) && placed.is_in(run))
    }

    /// The calls that were placed in a cell which was rolled back.
    pub(super) fn undo(&mut self, run: &Arc<Run>) -> Vec<u32> {
        self.take(|placed| placed.is_in(run))
    }

    /// The calls that were placed in any cell, but not those that wait, nor those that have a cell of their own.
    pub(super) fn forget(&mut self) -> Vec<u32> {
        self.take(|placed| matches!(placed, Placed::In(_)))
    }

    pub(super) fn take_all(&mut self) -> Vec<u32> {
        self.take(|_| true)
    }

    fn take(&mut self, is_taken: impl Fn(&Placed) -> bool) -> Vec<u32> {
        let mut calls: Vec<u32> =
            self.0.extract_if(|_, placed| is_taken(placed)).map(|(call, _)| call).collect();
        calls.sort_unstable();
        calls
    }
}
