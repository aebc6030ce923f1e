//! What outlives a run: threads, ready isolates, compiled modules, and the caps that all runs share.
//!
//! A [`Runtime`] admits runs and has an [`Executor`] compute them: `threads/` is the one on threads of this process,
//! `processes/` the one on worker processes. `options` are what both are made from, `registry` their runs, `stats`
//! what they tell of themselves; `prepare` makes an isolate of a request, and `record` keeps what a run has told.

mod executor;
pub(crate) mod options;
pub(crate) mod prepare;
#[cfg(any(target_os = "linux", target_os = "macos", windows))]
pub(crate) mod processes;
pub(crate) mod record;
mod registry;
mod stats;
pub(crate) mod threads;

use std::sync::Arc;

#[cfg(any(target_os = "linux", target_os = "macos", windows))]
use self::processes::Processes;
pub use self::stats::Stats;
use self::{executor::Executor, options::RuntimeSettings, registry::CLOSED, threads::Threads};
use crate::{
    binding::{handle::RunHandle, host::Host, native::NativeHost},
    data::{outcome::Status, runtime_options::RuntimeOptions},
    error::{Error, ErrorKind},
    modules::request::Request,
    os::process::{PerProcess, Process},
};

/// Where runs live. Cheap to clone; all clones are one runtime.
///
/// Holds a few pristine isolates (some 350 KiB each) and compiled modules; starts its threads with
/// the first run and lets them end when there is nothing to do. Under isolation by process it starts one thread
/// and the first processes at once, and keeps the thread until it is closed or dropped.
///
/// A runtime does not survive a fork, as threads do not: in the child it refuses runs. What the
/// child makes itself works, and so does [`Runtime::shared`], which is another one there.
#[derive(Clone)]
pub struct Runtime {
    max_queued_runs: Option<usize>,
    executor: Arc<dyn Executor>,
}

impl std::fmt::Debug for Runtime {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Runtime").field("stats", &self.stats()).finish_non_exhaustive()
    }
}

impl Runtime {
    /// A runtime of its own.
    ///
    /// # Errors
    /// An option out of range, or one that this version does not offer.
    pub fn new(options: &RuntimeOptions) -> Result<Self, Error> {
        let settings = options.check()?;
        let executor: Arc<dyn Executor> = match options.check_workers()? {
            #[cfg(any(target_os = "linux", target_os = "macos", windows))]
            Some(worker) => Arc::new(Processes::start(settings, worker)?),
            // Elsewhere the check refuses processes.
            _ => Arc::new(Threads::new(&settings)),
        };
        Ok(Self::on(executor, &settings))
    }

    /// The runtime of everyone who makes none: one per process, also in a forked child.
    #[must_use]
    pub fn shared() -> Self {
        static SHARED: PerProcess<Runtime> = PerProcess::new();
        let make = || {
            let settings = RuntimeSettings::default();
            Self::on(Arc::new(Threads::new(&settings)), &settings)
        };
        SHARED.get_or_init(make).clone()
    }

    /// A runtime whose runs that executor computes.
    pub(crate) fn on(executor: Arc<dyn Executor>, settings: &RuntimeSettings) -> Self {
        Self { max_queued_runs: settings.max_queued_runs, executor }
    }

    /// The process that it was made in.
    pub(crate) fn process(&self) -> Process {
        self.executor.process()
    }

    /// Starts a run. Returns at once: what happens from here on is a result.
    ///
    /// # Errors
    /// Misuse of an option, or a runtime that is closed, whose queue is full, or that was made
    /// before this process was forked.
    pub fn start(&self, mut request: Request, host: Arc<dyn Host>) -> Result<RunHandle, Error> {
        request.check()?;
        self.admit()?;
        // Before the host of the caller: what is for a native function never gets there.
        let native = Arc::new(NativeHost::new(host, std::mem::take(&mut request.native)));
        let run = self.executor.start(request, native)?;
        if self.executor.runs().is_closed() {
            // By another thread meanwhile, which may not have seen this run.
            Arc::clone(&run).terminate(Some(CLOSED));
        }
        Ok(RunHandle::new(run))
    }

    /// Whether one more run may start.
    fn admit(&self) -> Result<(), Error> {
        let refuse = |why: String| Err(Error::new(ErrorKind::Unavailable, why));
        if !self.process().is_current() {
            let why = "the runtime was made before this process was forked, which runtimes do not \
                       survive: make a new one";
            return refuse(why.to_owned());
        }
        if self.executor.runs().is_closed() {
            return refuse("the runtime is closed".to_owned());
        }
        match self.max_queued_runs {
            Some(most) if self.executor.is_full(most) => {
                refuse(format!("{most} runs are queued, as many as the runtime allows"))
            }
            _ => Ok(()),
        }
    }

    /// Refuses new runs and ends the live ones; `done` is called, from any thread, when all that
    /// they held is freed. May be called again. In a forked child there is nothing to end, and
    /// `done` is called at once.
    pub fn close(&self, done: impl FnOnce() + Send + 'static) {
        if !self.process().is_current() {
            return done();
        }
        self.executor.runs().close(Box::new(done));
        self.executor.close();
    }

    /// What the runtime is doing now: nothing, in a forked child.
    #[must_use]
    pub fn stats(&self) -> Stats {
        if !self.process().is_current() {
            return Stats::default();
        }
        let settled = |status: Status| self.executor.runs().settled(status);
        Stats {
            success: settled(Status::Success),
            error: settled(Status::Error),
            memory: settled(Status::Memory),
            terminated: settled(Status::Terminated),
            link_error: settled(Status::LinkError),
            ..self.executor.stats()
        }
    }
}
