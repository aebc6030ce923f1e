//! Everything that outlives a run: threads, ready isolates, compiled modules, and the caps that all runs share.
//!
//! A [`Runtime`] admits runs and has an [`Executor`] compute them: `threads/` is the one on threads of this process,
//! `processes/` the one on worker processes. `options` has the settings of both, `registry` their runs, `session`
//! the handle on a session, `settlements` the outcomes that a session which begins anew needs again, `turns` the runs and
//! calls that wait in one, and `stats` statistics. `prepare` makes an isolate of a request, and `record` keeps the reports, logs and result of a run.

mod executor;
pub(crate) mod options;
pub(crate) mod prepare;
#[cfg(any(target_os = "linux", target_os = "macos", windows))]
pub(crate) mod processes;
pub(crate) mod record;
mod registry;
pub(crate) mod session;
mod sessions;
mod stats;
pub(crate) mod threads;

use std::sync::Arc;

#[cfg(any(target_os = "linux", target_os = "macos", windows))]
use self::processes::Processes;
use self::{executor::Executor, options::RuntimeSettings, registry::CLOSED, threads::Threads};
pub use self::{
    session::{SessionHandle, WeakSessionHandle},
    stats::Stats,
};
use crate::{
    binding::{handle::RunHandle, host::Host, native::NativeHost},
    data::{outcome::Status, runtime_options::RuntimeOptions},
    error::{Error, ErrorKind},
    modules::{request::Request, session_request::SessionRequest},
    os::process::{PerProcess, Process},
};

/// Admits runs and computes them, with resources that all of them share. Cheap to clone; all clones are one runtime.
///
/// Holds a few pristine isolates (some 350 KiB each) and compiled modules. Its threads start with the first run and end
/// when there is nothing to do. Under isolation by process it starts one thread and the first processes at once, and
/// keeps the thread until it is closed or dropped.
///
/// A runtime does not survive a fork, as threads do not: in the child it refuses runs. Runtimes that the child makes
/// itself work, and so does [`Runtime::shared`], which is another one there.
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

    /// The runtime of callers that make none: one per process, also in a forked child.
    #[must_use]
    pub fn shared() -> Self {
        static SHARED: PerProcess<Runtime> = PerProcess::new();
        let make = || {
            let settings = RuntimeSettings::default();
            Self::on(Arc::new(Threads::new(&settings)), &settings)
        };
        SHARED.get_or_init(make).clone()
    }

    /// A runtime with that executor.
    pub(crate) fn on(executor: Arc<dyn Executor>, settings: &RuntimeSettings) -> Self {
        Self { max_queued_runs: settings.max_queued_runs, executor }
    }

    /// The process that it was made in.
    pub(crate) fn process(&self) -> Process {
        self.executor.runs().process()
    }

    /// Starts a run. Returns at once: everything that happens later is in the result.
    ///
    /// # Errors
    /// Misuse of an option, or a runtime that is closed, whose queue is full, or that was made
    /// before this process was forked.
    pub fn start(&self, mut request: Request, host: Arc<dyn Host>) -> Result<RunHandle, Error> {
        request.check()?;
        self.admit()?;
        // In front of the caller's host, which gets no calls of native functions.
        let functions = std::mem::take(&mut request.native);
        let interception = request.interception.take();
        let native = Arc::new(NativeHost::new(host, functions, interception.clone()));
        let run = self.executor.start(request, native)?;
        if self.executor.runs().is_closed() {
            // Another thread closed it meanwhile, and may not have seen this run.
            Arc::clone(&run).terminate(Some(CLOSED));
        }
        Ok(RunHandle::of(run, interception))
    }

    /// Opens a session. `host` receives the events that belong to no cell of the caller's: calls that functions of the
    /// sandbox make which the host calls between cells, and the outcomes of those. [`Host::settled`] tells it that the
    /// session has ended. Returns at once; the first cell builds the isolate.
    ///
    /// # Errors
    /// Misuse of an option; a runtime that is closed, has no sessions, or was made before this process was forked.
    pub fn open_session(
        &self,
        request: SessionRequest,
        host: Arc<dyn Host>,
    ) -> Result<SessionHandle, Error> {
        request.check()?;
        self.admit()?;
        let interceptor = request.interceptor.clone();
        let session = self.executor.session(request, host)?;
        if self.executor.runs().is_closed() {
            // Another thread closed it meanwhile, and may not have seen this session.
            Arc::clone(&session).close(Box::new(|()| {}));
        }
        Ok(SessionHandle::new(self.clone(), session, interceptor))
    }

    /// Whether one more run may start.
    fn admit(&self) -> Result<(), Error> {
        if !self.process().is_current() {
            let why = "the runtime was made before this process was forked, which runtimes do not \
                       survive: make a new one";
            return Err(Error::new(ErrorKind::Unavailable, why));
        }
        if self.executor.runs().is_closed() {
            return Err(Error::new(ErrorKind::RuntimeClosed, "the runtime is closed"));
        }
        match self.max_queued_runs {
            Some(most) if self.executor.is_full(most) => {
                let message = format!("{most} runs are queued, as many as the runtime allows");
                Err(Error::new(ErrorKind::QueueFull, message))
            }
            _ => Ok(()),
        }
    }

    /// Refuses new runs and terminates the others; `done` is called, from any thread, when everything that they held is
    /// freed. May be called again. In a forked child there is nothing to end, and `done` is called at once.
    pub fn close(&self, done: impl FnOnce() + Send + 'static) {
        if !self.process().is_current() {
            return done();
        }
        self.executor.runs().close(Box::new(done));
        self.executor.close();
    }

    /// The current activity of the runtime; none in a forked child.
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
