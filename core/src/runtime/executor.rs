//! Where isolates live: on threads of this process, or in processes of their own.
//!
//! In: runs that the runtime has admitted. Out: handles on them, and what the executor is doing. The runtime decides
//! who is admitted; an executor decides who computes when.

use std::sync::Arc;

use super::{registry::Runs, stats::Stats};
use crate::{
    binding::{handle::RunControl, native::NativeHost},
    error::Error,
    modules::request::Request,
    os::process::Process,
};

/// Computes runs. In a child of its process, nothing but [`Executor::process`] may be asked: whoever held a lock at the
/// fork holds it there for ever.
pub(crate) trait Executor: Send + Sync {
    /// The process that it was made in.
    fn process(&self) -> Process;

    /// Its runs.
    fn runs(&self) -> &dyn Runs;

    /// Whether that many runs wait for their turn. Those that can compute at once do not wait.
    fn is_full(&self, most_queued: usize) -> bool;

    /// Starts a run that was admitted. The host is [told of it](NativeHost::started) before it begins.
    ///
    /// # Errors
    /// The system lacks what every run needs.
    fn start(&self, request: Request, host: Arc<NativeHost>) -> Result<Arc<dyn RunControl>, Error>;

    /// Its runs were [closed](Runs::close): frees everything as soon as the last of them is over, and calls those who
    /// wait for that.
    fn close(&self);

    /// What it is doing now, but for the counts of settled runs.
    fn stats(&self) -> Stats;
}
