//! The interceptor of a session: code of the host between the session and its caller.
//!
//! In: the requests for cells, calls and updates. Out: an interceptor for each cell, or the reason why it is refused.

use std::{any::Any, fmt, sync::Arc};

use super::session_request::{CallRequest, CellRequest, UpdateRequest};
use crate::{binding::interception::RunInterceptor, data::cell::Name, error::Error};

/// Stands between a session and its caller. Its methods are called on the caller's thread, but for
/// [`SessionInterceptor::opened`] of a copy.
pub trait SessionInterceptor: Any + fmt::Debug + Send + Sync {
    /// The session was opened, or is a copy that was made of one. `close` closes it, if it is open still; it may be
    /// called on any thread.
    fn opened(&self, close: Box<dyn Fn() + Send + Sync>) {
        drop(close);
    }

    /// A cell is about to be queued.
    ///
    /// # Errors
    /// The reason why it is refused.
    fn cell(&self, cell: &mut CellRequest) -> Result<Arc<dyn RunInterceptor>, Error>;

    /// A call is about to be queued.
    ///
    /// # Errors
    /// The reason why it is refused.
    fn call(&self, call: &mut CallRequest) -> Result<Arc<dyn RunInterceptor>, Error>;

    /// An update is about to be made.
    ///
    /// # Errors
    /// The reason why it is refused.
    fn update(&self, update: &UpdateRequest) -> Result<(), Error> {
        let _ = update;
        Ok(())
    }

    /// Names of the session are about to be told.
    fn names(&self, names: &mut Vec<Name>) {
        let _ = names;
    }

    /// The interceptor of everything that happens outside of all cells.
    fn outside(&self) -> Arc<dyn RunInterceptor>;

    /// The interceptor of a call that the host makes between cells, of a function that it holds: a cell of its own, which
    /// has no result. Called on any thread, while the session is locked, so it must return at once.
    fn held(&self) -> Arc<dyn RunInterceptor> {
        self.outside()
    }

    /// The interceptor of a copy of the session, if one is made; `None` if it is this one.
    fn fork(&self) -> Option<Arc<dyn SessionInterceptor>> {
        None
    }
}
