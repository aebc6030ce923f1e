//! The isolate of a run: one of its own, or the one of its session.

use crate::{
    binding::inbound::Inbound,
    data::outcome::ExecutionError,
    isolate::{End, Isolate, Turn, session::SessionIsolate},
};

pub(super) enum RunIsolate {
    Own(Box<Isolate>),
    Session(Box<SessionIsolate>),
}

impl RunIsolate {
    /// Takes the host's messages and runs everything that can run.
    pub(super) fn turn(&mut self, inbox: Vec<Inbound>) -> Turn {
        match self {
            Self::Own(isolate) => isolate.turn(inbox),
            Self::Session(isolate) => isolate.turn(inbox),
        }
    }

    /// The error of a run that nothing can resume, with the place at which it waits.
    pub(super) fn stalled(&mut self) -> Box<ExecutionError> {
        match self {
            Self::Own(isolate) => isolate.stalled(),
            Self::Session(isolate) => isolate.stalled(),
        }
    }

    /// The end of a run that is asked to end while it waits for its host. `number`: that of the cell.
    pub(super) fn asked(&mut self, number: u32) -> End {
        match self {
            Self::Own(isolate) => isolate.asked(),
            Self::Session(isolate) => isolate.asked(number),
        }
    }

    /// The most bytes that counted against the limit. Only for cells that do not interleave.
    pub(super) fn peak_bytes(&self) -> usize {
        match self {
            Self::Own(isolate) => isolate.peak_bytes(),
            Self::Session(isolate) => isolate.peak_bytes(0),
        }
    }
}
