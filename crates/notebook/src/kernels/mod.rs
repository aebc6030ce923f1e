//! The kernels: what runs cells and keeps their state between them.
//!
//! In: a cell's code, its record, its clock, and a signal that ends it from outside. Out: how it ended, and what that did
//! to the state. `session` has the kernels that notebooks share, `lives` their cells; `js` runs cells in a session of the
//! core, `py` in a process; `note` has what helpers tell of themselves.

pub(crate) mod js;
pub(crate) mod lives;
mod note;
pub(crate) mod py;
pub(crate) mod session;

use std::sync::{Arc, Mutex, PoisonError};

use tokio_util::sync::CancellationToken;

use crate::{
    CellError,
    call::Announce,
    clock::{Clock, Expired},
    host::Desk,
    record::Record,
};

/// Why a cell is ended from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// Its clock ran out.
    Expired(Expired),
    /// By its caller, with a reason.
    Caller(Option<String>),
    /// By a reset of its kernel.
    Reset,
    /// By a rollback for another cell.
    RolledBack,
    /// By the end of the notebook.
    Closed,
}

/// Ends a cell, or all of a call, from outside. The first cause counts. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct End {
    token: CancellationToken,
    cause: Arc<Mutex<Option<Cause>>>,
}

impl End {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn end(&self, cause: Cause) {
        self.cause.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(cause);
        self.token.cancel();
    }

    /// Whether both are one.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.cause, &other.cause)
    }

    /// The cause, if somebody has ended it.
    pub(crate) fn cause(&self) -> Option<Cause> {
        self.cause.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits for the end.
    pub(crate) async fn ended(&self) -> Cause {
        self.token.cancelled().await;
        self.cause().unwrap_or(Cause::Caller(None))
    }
}

/// A cell that is about to run.
pub(crate) struct Cell<'c> {
    pub(crate) code: &'c str,
    pub(crate) record: &'c Record,
    pub(crate) end: &'c End,
    /// The seconds of its clock, and of wall time.
    pub(crate) seconds: u64,
    pub(crate) wall_seconds: u64,
    /// Answers its calls of host functions.
    pub(crate) desk: &'c Arc<Desk>,
    /// Tells its caller of commands for a page of a kit, if the caller has that page.
    pub(crate) announce: Option<&'c Announce>,
    /// Called with its name as its clock starts.
    pub(crate) begun: &'c (dyn Fn(String, Clock) + Sync),
}

/// How a cell ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// Why it was ended from outside, if it was.
    pub(crate) cause: Option<Cause>,
    /// The error of its own, and the text that shows it.
    pub(crate) error: Option<(CellError, String)>,
    /// `kept`, `rolledBack` or `reset`.
    pub(crate) state: &'static str,
    /// The sentence about the state, after a failure.
    pub(crate) state_text: Option<String>,
}

impl Ended {
    /// It ended well.
    pub(crate) fn well() -> Self {
        Self { cause: None, error: None, state: "kept", state_text: None }
    }

    /// It was ended from outside before it began.
    pub(crate) fn before(cause: Cause) -> Self {
        Self { cause: Some(cause), ..Self::well() }
    }

    /// It failed by an error that is not of its code.
    pub(crate) fn refused(name: &str, message: String) -> Self {
        let error =
            CellError { name: name.to_owned(), message: message.clone(), ..CellError::default() };
        Self { cause: None, error: Some((error, message)), state: "kept", state_text: None }
    }
}
