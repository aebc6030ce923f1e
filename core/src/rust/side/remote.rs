//! The run or the session that a side of the host answers.

use crate::{Completion, RunHandle, Value, WeakSessionHandle};

/// A run, or a session. The session holds the side, so the side does not hold the session.
#[derive(Clone)]
pub(in crate::rust) enum Remote {
    Run(RunHandle),
    Session(WeakSessionHandle),
}

impl Remote {
    pub(in crate::rust) fn settle_promise(&self, promise: u32, completion: Completion) {
        match self {
            Self::Run(run) => run.settle_promise(promise, completion),
            Self::Session(session) => session.settle_promise(promise, completion),
        }
    }

    pub(in crate::rust) fn call_function(&self, function: u32, args: Value, call: u32) {
        match self {
            Self::Run(run) => run.call_function(function, args, call),
            Self::Session(session) => session.call_function(function, args, call),
        }
    }

    pub(in crate::rust) fn release_function(&self, function: u32, times: u32) {
        match self {
            Self::Run(run) => run.release_function(function, times),
            Self::Session(session) => session.release_function(function, times),
        }
    }
}

impl From<&RunHandle> for Remote {
    fn from(run: &RunHandle) -> Self {
        Self::Run(run.clone())
    }
}

impl From<WeakSessionHandle> for Remote {
    fn from(session: WeakSessionHandle) -> Self {
        Self::Session(session)
    }
}
