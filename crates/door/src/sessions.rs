//! Sessions whose code sees the values and functions of a face's caller.
//!
//! In: a part of a request that a system adds, and cells. Out: sessions, and the results of cells. A binding opens them:
//! it has the values, the functions and the receiver of events. The Rust face opens its own.

use std::{fmt, future::Future, pin::Pin, sync::Arc};

use isolane::{CellOptions, Error, ExecutionResult, Language, Runtime, Session, SessionRequest};

/// The system's part of a request, to be made of the caller's.
pub type Amend<'a> = &'a dyn Fn(SessionRequest) -> Result<SessionRequest, Error>;

/// The result of a cell. Dropping it ends the cell.
pub type CellFuture = Pin<Box<dyn Future<Output = Result<ExecutionResult, Error>> + Send>>;

/// The end of a session.
pub type CloseFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Opens sessions for a system. A binding opens them and queues cells on the caller's thread alone: in the first step of
/// a call, see [`Called::begun`](crate::Called::begun).
pub trait SessionHost: Send + Sync + fmt::Debug + 'static {
    /// Opens a session with a request that `amend` has changed.
    ///
    /// # Errors
    /// Misuse of an option; a runtime that is closed.
    fn open(&self, runtime: &Runtime, amend: Amend<'_>) -> Result<Arc<dyn HostSession>, Error>;
}

/// A session of a [`SessionHost`].
pub trait HostSession: Send + Sync + 'static {
    /// Queues a cell, by [`SessionHandle::run`](isolane::SessionHandle::run) or the like, before it returns.
    fn run(&self, code: String, options: HostCell) -> CellFuture;

    /// Closes the session.
    fn close(&self) -> CloseFuture;
}

/// The options of a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostCell {
    /// Its language, in place of the session's.
    pub language: Option<Language>,
    /// The milliseconds after which it is terminated, with the name `Timeout`.
    pub timeout_ms: Option<u64>,
}

impl HostSession for Session {
    fn run(&self, code: String, options: HostCell) -> CellFuture {
        let HostCell { language, timeout_ms } = options;
        let options = CellOptions { language, timeout_ms, ..CellOptions::default() };
        Box::pin(Session::run(self, code, options))
    }

    fn close(&self) -> CloseFuture {
        let closed = Session::close(self);
        Box::pin(async move {
            // An error would mean that it was closed already.
            let _ = closed.await;
        })
    }
}
