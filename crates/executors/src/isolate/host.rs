//! The opener of an executor's sessions.
//!
//! In: the executor's part of a request. Out: sessions. The Rust face has its own opener; a binding brings one, whose
//! requests have the functions of its caller.

use std::{fmt, future::Future, pin::Pin, sync::Arc};

use isolane::{
    CellOptions, Error, ErrorKind, ExecutionResult, Isolation, Language, Runtime, RuntimeOptions,
    Session, SessionOptions, SessionRequest,
};

use super::own_runtime::{HostRuntime, OwnRuntime};

/// The executor's part of a request, to be made of the caller's.
pub type Amend<'a> = &'a dyn Fn(SessionRequest) -> Result<SessionRequest, Error>;

/// The result of a cell. Dropping it ends the cell.
pub type CellFuture = Pin<Box<dyn Future<Output = Result<ExecutionResult, Error>> + Send>>;

/// The end of a session.
pub type CloseFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Opens sessions for an [`IsolateCodeExecutor`](crate::IsolateCodeExecutor).
pub trait IsolateHost: Send + Sync + fmt::Debug + 'static {
    /// Opens a session with a request that `amend` has changed.
    ///
    /// # Errors
    /// Misuse of an option; a runtime that is closed.
    fn open(&self, amend: Amend<'_>) -> Result<Arc<dyn IsolateSession>, Error>;

    /// Closes what the host has beside its sessions, which are closed: a [`HostRuntime`](crate::HostRuntime). It can open
    /// sessions afterwards.
    fn close(&self) -> CloseFuture {
        Box::pin(async {})
    }
}

/// A session of an [`IsolateHost`].
pub trait IsolateSession: Send + Sync + 'static {
    /// Queues a cell, by [`SessionHandle::run`](isolane::SessionHandle::run) or the like, before it returns.
    fn run(&self, code: String, options: IsolateCell) -> CellFuture;

    /// Closes the session.
    fn close(&self) -> CloseFuture;
}

/// The options of a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IsolateCell {
    /// Its language, in place of the session's.
    pub language: Option<Language>,
    /// The milliseconds after which it is terminated, with the name `Timeout`.
    pub timeout_ms: Option<u64>,
}

/// The message of options that exclude each other.
pub(super) const BOTH: &str = "runtime and isolation exclude each other";

/// The opener of the Rust face.
#[derive(Clone, Debug, Default)]
pub(super) struct RustHost {
    pub(super) options: SessionOptions,
    pub(super) runtime: Option<Runtime>,
    /// The runtime of the isolation that was asked for.
    own: Option<Arc<OwnRuntime>>,
}

impl RustHost {
    fn runtime(&self) -> Result<Runtime, Error> {
        match (&self.runtime, &self.own) {
            (Some(_), Some(_)) => Err(Error::new(ErrorKind::Type, BOTH)),
            (Some(runtime), None) => Ok(runtime.clone()),
            (None, None) => Ok(Runtime::shared()),
            (None, Some(own)) => own.runtime(),
        }
    }

    pub(super) fn set_isolation(&mut self, isolation: Isolation) {
        let options = RuntimeOptions { isolation, ..RuntimeOptions::default() };
        self.own = Some(Arc::new(OwnRuntime::new(options)));
    }
}

impl IsolateHost for RustHost {
    fn open(&self, amend: Amend<'_>) -> Result<Arc<dyn IsolateSession>, Error> {
        let session = self.runtime()?.session_with(self.options.clone(), amend)?;
        Ok(Arc::new(session))
    }

    fn close(&self) -> CloseFuture {
        self.own.clone().map_or_else(HostRuntime::default, HostRuntime::Own).close()
    }
}

impl IsolateSession for Session {
    fn run(&self, code: String, options: IsolateCell) -> CellFuture {
        let IsolateCell { language, timeout_ms } = options;
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
