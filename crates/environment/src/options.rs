//! The options of a process service.

use std::{fmt, sync::Arc};

use crate::Environment;

/// The options of a [`ProcessService`](crate::ProcessService). Times are in milliseconds.
#[derive(Clone)]
pub struct ProcessServiceOptions {
    /// Runs the code; a [`TypeScriptEnvironment`](crate::TypeScriptEnvironment) by default.
    pub environment: Option<Arc<dyn Environment>>,
    /// Executions at once; 4 per core, at least 8, by default.
    pub concurrency: usize,
    /// Processes that wait for a place; 1,000 by default.
    pub max_queued: usize,
    /// The time limit of processes that ask for none; 30,000 by default.
    pub default_timeout_ms: Option<u64>,
    /// The longest time limit that a client may ask for; 3,600,000 by default.
    pub max_timeout_ms: u64,
    /// The time that a kill may take; 10,000 by default.
    pub kill_grace_ms: u64,
    /// The time that an environment may take beyond the time limit; 60,000 by default. `None`: any.
    pub backstop_ms: Option<u64>,
    /// The bytes that are kept of each stream; 8 MiB by default. The rest is dropped.
    pub max_stream_bytes: usize,
    /// The bytes of an output's JSON; 8 MiB by default.
    pub max_output_bytes: usize,
    /// Finished processes that are kept; 10,000 by default.
    pub retain_count: usize,
    /// How long finished processes are kept; 7 days by default.
    pub retain_ms: u64,
    /// The tokio runtime of the service; by default the library's own thread for futures. With a runtime whose clock is
    /// paused, a test sets the service's clock.
    pub handle: Option<tokio::runtime::Handle>,
}

impl Default for ProcessServiceOptions {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            environment: None,
            concurrency: (4 * cores).max(8),
            max_queued: 1000,
            default_timeout_ms: Some(30_000),
            max_timeout_ms: 3_600_000,
            kill_grace_ms: 10_000,
            backstop_ms: Some(60_000),
            max_stream_bytes: 8 << 20,
            max_output_bytes: 8 << 20,
            retain_count: 10_000,
            retain_ms: 7 * 24 * 60 * 60 * 1000,
            handle: None,
        }
    }
}

impl fmt::Debug for ProcessServiceOptions {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ProcessServiceOptions")
            .field("concurrency", &self.concurrency)
            .finish_non_exhaustive()
    }
}
