//! The trait of executors: on threads of this process, or in processes of their own.
//!
//! In: runs that the runtime has admitted. Out: handles on them, and the executor's statistics. The runtime decides
//! which runs are admitted; an executor decides which of them compute when.

use std::sync::Arc;

use super::{registry::Runs, session::SessionControl, stats::Stats};
use crate::{
    binding::{handle::RunControl, host::Host, native::NativeHost},
    error::Error,
    modules::{request::Request, session_request::SessionRequest},
};

/// Computes runs. In a child of its process only the process of its [`Runs`] may be asked for.
pub(crate) trait Executor: Send + Sync {
    /// Its runs.
    fn runs(&self) -> &dyn Runs;

    /// Whether that many runs wait for their turn. Those that can compute at once do not wait.
    fn is_full(&self, most_queued: usize) -> bool;

    /// Starts a run that was admitted. The host [receives](NativeHost::started) it before it begins.
    ///
    /// # Errors
    /// The system lacks a resource that every run needs.
    fn start(&self, request: Request, host: Arc<NativeHost>) -> Result<Arc<dyn RunControl>, Error>;

    /// Opens a session, whose events outside of cells go to that host.
    ///
    /// # Errors
    /// This executor has no such sessions, or the system lacks a resource that every cell needs.
    fn session(
        &self,
        request: SessionRequest,
        host: Arc<dyn Host>,
    ) -> Result<Arc<dyn SessionControl>, Error>;

    /// Its runs were [closed](Runs::close): frees everything as soon as the last of them has ended, and calls the
    /// closers.
    fn close(&self);

    /// Its current activity, without the counts of settled runs.
    fn stats(&self) -> Stats;
}
