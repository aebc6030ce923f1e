//! What outlives a run: threads, ready isolates, compiled modules, and the caps that all runs share.

pub(crate) mod options;
pub(crate) mod prepare;
#[cfg(any(target_os = "linux", target_os = "macos", windows))]
pub(crate) mod processes;
pub(crate) mod record;
mod registry;
pub(crate) mod threads;

use std::{sync::Arc, time::Duration};

#[cfg(any(target_os = "linux", target_os = "macos", windows))]
use isolane_confine::Confinement;

use self::processes::{DropGuard, Workers};
use self::{
    options::{RuntimeOptions, RuntimeSettings},
    registry::{CLOSED, Closer, Registry},
    threads::{
        run::Run,
        scheduler::{Scheduler, SchedulerStats},
        watchdog::Watchdog,
    },
};
use crate::{
    binding::{
        adaptive_spin::AdaptiveSpin,
        handle::{RunControl, RunHandle},
        host::Host,
        native::NativeHost,
    },
    data::outcome::Status,
    error::{Error, ErrorKind},
    isolate::{Pool, PoolOptions, Realm},
    modules::{cache::Cache, request::Request},
    os::process::{PerProcess, Process},
};

/// Slots alive at once. Parked runs beyond them live in plain isolates, which hold less.
const MAX_SLOTS: usize = 64;

/// How many of them are not for runs that may wait: more than compute at once by default.
const KEPT_SLOTS: usize = 16;

/// Runs that a slot serves before it is made anew.
const RUNS_PER_SLOT: u32 = 10_000;

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
    place: Place,
}

/// Where its isolates live.
#[derive(Clone)]
enum Place {
    Threads(Arc<Inner>),
    #[cfg(any(target_os = "linux", target_os = "macos", windows))]
    Workers(Arc<DropGuard>),
}

impl std::fmt::Debug for Runtime {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Runtime").field("stats", &self.stats()).finish_non_exhaustive()
    }
}

/// What the parts of a runtime share.
pub(crate) struct Inner {
    /// Where its threads are. In a child of that process nothing here is touched, nor freed: each
    /// thread that was there at the fork holds it there for ever.
    process: Process,
    pub(crate) scheduler: Scheduler,
    pub(crate) watchdog: Watchdog,
    pub(crate) pool: Pool<Realm>,
    pub(crate) cache: Arc<Cache>,
    /// With the answers of hosts.
    pub(crate) spin: AdaptiveSpin,
    pub(crate) safety_cap: Duration,
    max_queued_runs: Option<usize>,
    pub(crate) max_stuck_threads: usize,
    pub(crate) registry: Registry<Run>,
}

/// What a runtime is doing, and what it holds.
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
    /// Isolates that are pristine and wait for a run.
    pub ready_isolates: usize,
    /// Threads of the runtime.
    pub threads: usize,
    /// Threads that do not come back from the engine, although their run has settled.
    pub stuck_threads: usize,
    /// Bytes of compiled modules that are kept.
    pub compile_cache_bytes: usize,
    /// Processes of the runtime that run isolates or wait for one, under [`Isolation::Process`].
    ///
    /// [`Isolation::Process`]: crate::Isolation::Process
    pub workers: usize,
    /// What these processes are kept from, once the first is there.
    pub confinement: Option<Confinement>,
}

impl Runtime {
    /// A runtime of its own.
    ///
    /// # Errors
    /// An option out of range, or one that this version does not offer.
    pub fn new(options: &RuntimeOptions) -> Result<Self, Error> {
        let settings = options.check()?;
        #[cfg(any(target_os = "linux", target_os = "macos", windows))]
        if let Some(worker) = options.check_workers()? {
            let keeper = Workers::start(settings, worker)?;
            return Ok(Self { place: Place::Workers(Arc::new(keeper)) });
        }
        #[cfg(not(any(target_os = "linux", target_os = "macos", windows)))]
        options.check_workers()?;
        Ok(Self::with(&settings))
    }

    /// The runtime of everyone who makes none: one per process, also in a forked child.
    #[must_use]
    pub fn shared() -> Self {
        static SHARED: PerProcess<Runtime> = PerProcess::new();
        SHARED.get_or_init(|| Self::with(&RuntimeSettings::default())).clone()
    }

    fn with(settings: &RuntimeSettings) -> Self {
        let options = PoolOptions {
            ready: settings.ready_isolates,
            spare: settings.max_concurrent_runs.min(settings.ready_isolates),
            max_slots: MAX_SLOTS.max(settings.ready_isolates),
            kept_slots: KEPT_SLOTS,
            runs_per_slot: RUNS_PER_SLOT,
        };
        let inner = Inner {
            process: Process::current(),
            scheduler: Scheduler::new(settings.max_concurrent_runs),
            watchdog: Watchdog::default(),
            pool: Pool::new(Realm::build, options),
            cache: Arc::new(Cache::new(settings.compile_cache_bytes)),
            spin: AdaptiveSpin::default(),
            safety_cap: settings.safety_cap,
            max_queued_runs: settings.max_queued_runs,
            max_stuck_threads: settings.max_stuck_threads,
            registry: Registry::default(),
        };
        Self { place: Place::Threads(Arc::new(inner)) }
    }

    #[cfg(test)]
    pub(crate) fn scheduler(&self) -> &Scheduler {
        match &self.place {
            Place::Threads(inner) => &inner.scheduler,
            #[cfg(any(target_os = "linux", target_os = "macos", windows))]
            Place::Workers(_) => panic!("a runtime of threads"),
        }
    }

    /// The process that it was made in.
    pub(crate) fn process(&self) -> Process {
        match &self.place {
            Place::Threads(inner) => inner.process,
            #[cfg(any(target_os = "linux", target_os = "macos", windows))]
            Place::Workers(keeper) => keeper.0.process(),
        }
    }

    /// Starts a run. Returns at once: what happens from here on is a result.
    ///
    /// # Errors
    /// Misuse of an option, or a runtime that is closed, whose queue is full, or that was made
    /// before this process was forked.
    pub fn start(&self, mut request: Request, host: Arc<dyn Host>) -> Result<RunHandle, Error> {
        request.check()?;
        if !self.process().is_current() {
            let message = "the runtime was made before this process was forked, which runtimes do \
                           not survive: make a new one";
            return Err(Error::new(ErrorKind::Unavailable, message));
        }
        // Before the host of the caller: what is for a native function never gets there.
        let native = Arc::new(NativeHost::new(host, std::mem::take(&mut request.native)));
        let host = Arc::clone(&native) as Arc<dyn Host>;
        let started = match &self.place {
            Place::Threads(inner) => inner.start(request, host).map(|run| RunHandle::new(run)),
            #[cfg(any(target_os = "linux", target_os = "macos", windows))]
            Place::Workers(keeper) => keeper.0.run(request, host).map(RunHandle::new),
        };
        started.inspect(|run| native.started(&run.run))
    }

    /// Refuses new runs and ends the live ones; `done` is called, from any thread, when all that
    /// they held is freed. May be called again. In a forked child there is nothing to end, and
    /// `done` is called at once.
    pub fn close(&self, done: impl FnOnce() + Send + 'static) {
        if !self.process().is_current() {
            return done();
        }
        match &self.place {
            Place::Threads(inner) => inner.close(Box::new(done)),
            #[cfg(any(target_os = "linux", target_os = "macos", windows))]
            Place::Workers(keeper) => keeper.0.close(Box::new(done)),
        }
    }

    /// What the runtime is doing now: nothing, in a forked child.
    #[must_use]
    pub fn stats(&self) -> Stats {
        if !self.process().is_current() {
            return Stats::default();
        }
        match &self.place {
            Place::Threads(inner) => inner.stats(),
            #[cfg(any(target_os = "linux", target_os = "macos", windows))]
            Place::Workers(keeper) => keeper.0.stats(),
        }
    }
}

impl Inner {
    /// Whether this is the process that the runtime was made in. In a forked child no lock of it
    /// may be waited for: whoever held it is not there.
    pub(crate) fn is_here(&self) -> bool {
        self.process.is_current()
    }

    fn start(self: &Arc<Self>, request: Request, host: Arc<dyn Host>) -> Result<Arc<Run>, Error> {
        if self.registry.is_closed() {
            return Err(Error::new(ErrorKind::Unavailable, "the runtime is closed"));
        }
        if let Some(most) = self.max_queued_runs
            && self.scheduler.is_full(most)
        {
            let message = format!("{most} runs are queued, as many as the runtime allows");
            return Err(Error::new(ErrorKind::Unavailable, message));
        }
        // Both, or the run could wait for ever for a thread that never comes.
        if !self.watchdog.has_thread(self) || !self.scheduler.has_threads(self) {
            let message = "the system has no thread left for the runtime";
            return Err(Error::new(ErrorKind::Unavailable, message));
        }
        let run = self.registry.admit(|place| Run::new(Arc::clone(self), place, request, host));
        self.watchdog.attend();
        self.scheduler.enqueue(Arc::clone(&run));
        if self.registry.is_closed() {
            // By another thread meanwhile, which may not have seen this run.
            Arc::clone(&run).terminate(Some(CLOSED));
        }
        Ok(run)
    }

    fn close(self: &Arc<Self>, done: Closer) {
        self.registry.close(done);
        for run in self.registry.runs() {
            run.terminate(Some(CLOSED));
        }
        self.computed();
    }

    fn stats(&self) -> Stats {
        let SchedulerStats { computing, queued, threads, stuck } = self.scheduler.stats();
        let settled = |status: Status| self.registry.settled(status);
        Stats {
            computing,
            parked: self.registry.count(Run::parked),
            queued,
            success: settled(Status::Success),
            error: settled(Status::Error),
            memory: settled(Status::Memory),
            terminated: settled(Status::Terminated),
            link_error: settled(Status::LinkError),
            ready_isolates: self.pool.stats().ready,
            threads,
            stuck_threads: stuck,
            compile_cache_bytes: self.cache.held_bytes(),
            workers: 0,
            confinement: None,
        }
    }

    /// Runs that have not settled.
    pub(crate) fn live(&self) -> usize {
        self.registry.live()
    }

    /// A thread is done with a run: was it the last that a closed runtime waited for?
    pub(crate) fn computed(&self) {
        if !self.registry.is_closed() || self.live() > 0 {
            return;
        }
        if !self.scheduler.is_idle() {
            return;
        }
        let closers = self.registry.take_closers();
        if !closers.is_empty() {
            self.scheduler.close();
            self.pool.close();
            self.cache.clear();
            self.watchdog.close();
            for done in closers {
                done();
            }
        }
    }
}
