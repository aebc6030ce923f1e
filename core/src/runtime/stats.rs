//! The statistics of a runtime.

use isolane_confine::Confinement;

/// The activity of a runtime, and the resources that it holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Runs that compute now.
    pub computing: usize,
    /// Runs that wait for their host.
    pub parked: usize,
    /// Runs that wait for their turn.
    pub queued: usize,
    /// Runs that succeeded.
    pub success: u64,
    /// Runs that ended as `error`.
    pub error: u64,
    /// Runs that ended as `memory`.
    pub memory: u64,
    /// Runs that ended as `terminated`.
    pub terminated: u64,
    /// Runs that ended as `link_error`.
    pub link_error: u64,
    /// Sessions that are open.
    pub sessions: usize,
    /// Isolates that are pristine and wait for a run.
    pub ready_isolates: usize,
    /// Threads of the runtime.
    pub threads: usize,
    /// Threads that do not return from the engine, although their run has settled.
    pub stuck_threads: usize,
    /// Bytes of compiled modules that are kept.
    pub compile_cache_bytes: usize,
    /// Modules that were compiled and not kept, because each takes more than half of
    /// [`RuntimeOptions::compile_cache_bytes`]. Each run compiles them again.
    ///
    /// [`RuntimeOptions::compile_cache_bytes`]: crate::RuntimeOptions::compile_cache_bytes
    pub uncached_modules: u64,
    /// Processes of the runtime that run isolates or wait for one, under [`Isolation::Process`].
    ///
    /// [`Isolation::Process`]: crate::Isolation::Process
    pub workers: usize,
    /// The confinement of these processes, once the first has started.
    pub confinement: Option<Confinement>,
}
