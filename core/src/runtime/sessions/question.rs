//! The questions of a session's caller to its isolate.
//!
//! In: a question, with a function that takes the answer. Out: the answer of the place, or an error. A question waits its
//! turn in the queue of the session, as cells do.

use super::Kind;
use crate::{
    data::cell::Name,
    error::Error,
    runtime::session::{Done, Forked, Outside},
};

/// A question of the caller to the isolate of a session.
pub(crate) enum Question {
    /// For the names that cells have declared.
    Names(Done<Result<Vec<Name>, Error>>),
    /// For a copy of the session.
    Fork(Outside, Done<Forked>),
    /// For a reset.
    Reset(Done<Result<(), Error>>),
}

impl Question {
    pub(super) fn kind(&self) -> Kind {
        match self {
            Self::Names(_) => Kind::Question,
            Self::Fork(..) => Kind::Fork,
            Self::Reset(_) => Kind::Reset,
        }
    }

    pub(crate) fn refuse(self, error: Error) {
        match self {
            Self::Names(done) => done(Err(error)),
            Self::Fork(_, done) => done(Err(error)),
            Self::Reset(done) => done(Err(error)),
        }
    }
}
