//! A session, wherever its isolate is: the order of its runs, and all that waits for them.
//!
//! In: cells, calls, questions, updates, messages of the host, and the ends of runs. Out: the run whose turn it is, the
//! runs that end with another one, and the host's calls that are rejected.
//!
//! `machine` tells which run goes next: a pure state machine over `queue`, `inbox` and `calls`, which waits, locks and
//! calls nowhere. `session` has the machine behind a lock, and carries out what it says: **read that file first**.
//! `control` takes the caller's requests, `delivery` the host's messages, and `settlements` and `updates` are what a new
//! isolate is told again. `run` has the parts of a run that its session needs, and `question` the questions to the
//! isolate. The isolate is at a `place`: on a thread (`runtime/threads/run/place.rs`) or in a worker
//! (`runtime/processes/run/place.rs`).

mod calls;
mod control;
mod delivery;
mod inbox;
mod machine;
mod place;
mod question;
mod queue;
mod run;
mod session;
mod settlements;
mod updates;

use crate::binding::inbound::Inbound;

pub(crate) use self::{
    machine::{Broken, Effect, Ends, Kind, Left, Machine, Message, Resting, Turn, Undone},
    place::{Place, Received},
    question::Question,
    run::{InSession, NewRun, Over, SessionRun},
    session::{Session, Shared},
    settlements::Settlements,
    updates::Updates,
};

impl Message for Inbound {
    fn call(&self) -> Option<u32> {
        match self {
            Self::FunctionCall { call, .. } => Some(*call),
            _ => None,
        }
    }
}
