//! A session, wherever its isolate is: the order of its runs, and all that waits for them.
//!
//! In: runs, messages of the host, updates, and the ends of runs. Out: the run whose turn it is, the runs that end with
//! another one, and the host's calls that are rejected. The isolate is on a thread (`runtime/threads/local_session/`) or in a
//! worker (`runtime/processes/run/session/`): there are the locks, the threads and the processes. Nothing here waits,
//! locks or calls.

mod calls;
mod inbox;
mod machine;
mod queue;
mod settlements;
mod updates;

use crate::binding::inbound::Inbound;

pub(crate) use self::{
    machine::{Broken, Effect, Ends, Kind, Left, Machine, Message, Parts, Resting, Turn, Undone},
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
