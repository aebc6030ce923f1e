//! What outlives a run: threads, ready isolates, compiled modules, and the caps that all runs share.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use slab::Slab;

use crate::{
    cache::Cache,
    error::{Error, ErrorKind},
    execution::{Live, Remote},
    host::Host,
    isolate::{Pool, PoolOptions, Realm},
    options::{Request, RuntimeOptions, RuntimeSettings},
    outcome::Status,
    patience::Patience,
    process::{PerProcess, Process},
    run::Run,
    scheduler::{Scheduler, SchedulerStats},
    sync::Mutex,
    watchdog::Watchdog,
};

/// Slots alive at once. Parked runs beyond them live in plain isolates, which hold less.
const MAX_SLOTS: usize = 64;

/// How many of them are not for runs that may wait: more than compute at once by default.
const KEPT_SLOTS: usize = 16;

/// Runs that a slot serves before it is made anew.
const RUNS_PER_SLOT: u32 = 10_000;

/// Why the runs of a runtime that is closed end.
const CLOSED: &str = "runtime closed";

/// Where runs live. Cheap to clone; all clones are one runtime.
///
/// Holds a few pristine isolates (some 350 KiB each) and compiled modules; starts its threads with
/// the first run and lets them end when there is nothing to do.
///
/// A runtime does not survive a fork, as threads do not: in the child it refuses runs. What the
/// child makes itself works, and so does [`Runtime::shared`], which is another one there.
#[derive(Clone)]
pub struct Runtime {
    inner: Arc<Inner>,
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
    pub(crate) patience: Patience,
    pub(crate) safety_cap: Duration,
    max_queued_runs: Option<usize>,
    pub(crate) max_stuck_threads: usize,
    closed: AtomicBool,
    runs: Mutex<Slab<Arc<Run>>>,
    live: AtomicUsize,
    settled: [AtomicU64; 5],
    closers: Mutex<Vec<Box<dyn FnOnce() + Send>>>,
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
}

impl Runtime {
    /// A runtime of its own.
    ///
    /// # Errors
    /// An option out of range, or one that this version does not offer.
    pub fn new(options: &RuntimeOptions) -> Result<Self, Error> {
        let settings = options.check()?;
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
            patience: Patience::default(),
            safety_cap: settings.safety_cap,
            max_queued_runs: settings.max_queued_runs,
            max_stuck_threads: settings.max_stuck_threads,
            closed: AtomicBool::new(false),
            runs: Mutex::default(),
            live: AtomicUsize::new(0),
            settled: Default::default(),
            closers: Mutex::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    #[cfg(test)]
    pub(crate) fn scheduler(&self) -> &Scheduler {
        &self.inner.scheduler
    }

    /// The process that it was made in.
    pub(crate) fn process(&self) -> Process {
        self.inner.process
    }

    /// Starts a run. Returns at once: what happens from here on is a result.
    ///
    /// # Errors
    /// Misuse of an option, or a runtime that is closed, whose queue is full, or that was made
    /// before this process was forked.
    pub fn start(&self, request: Request, host: Arc<dyn Host>) -> Result<Remote, Error> {
        request.check()?;
        let inner = &self.inner;
        if !inner.is_here() {
            let message = "the runtime was made before this process was forked, which runtimes do \
                           not survive: make a new one";
            return Err(Error::new(ErrorKind::Unavailable, message));
        }
        if inner.closed.load(Ordering::Acquire) {
            return Err(Error::new(ErrorKind::Unavailable, "the runtime is closed"));
        }
        if let Some(most) = inner.max_queued_runs
            && inner.scheduler.is_full(most)
        {
            let message = format!("{most} runs are queued, as many as the runtime allows");
            return Err(Error::new(ErrorKind::Unavailable, message));
        }
        // Both, or the run could wait for ever for a thread that never comes.
        if !inner.watchdog.has_thread(inner) || !inner.scheduler.has_threads(inner) {
            let message = "the system has no thread left for the runtime";
            return Err(Error::new(ErrorKind::Unavailable, message));
        }
        let run = inner.admit(|place| Run::new(Arc::clone(inner), place, request, host));
        inner.watchdog.attend();
        inner.scheduler.enqueue(Arc::clone(&run));
        if inner.closed.load(Ordering::Acquire) {
            // By another thread meanwhile, which may not have seen this run.
            Arc::clone(&run).terminate(Some(CLOSED));
        }
        Ok(Remote::new(run))
    }

    /// Refuses new runs and ends the live ones; `done` is called, from any thread, when all that
    /// they held is freed. May be called again. In a forked child there is nothing to end, and
    /// `done` is called at once.
    pub fn close(&self, done: impl FnOnce() + Send + 'static) {
        let inner = &self.inner;
        if !inner.is_here() {
            return done();
        }
        inner.closed.store(true, Ordering::Release);
        inner.closers.lock().push(Box::new(done));
        let live: Vec<Arc<Run>> =
            inner.runs.lock().iter().map(|(_, run)| Arc::clone(run)).collect();
        for run in live {
            run.terminate(Some(CLOSED));
        }
        inner.computed();
    }

    /// What the runtime is doing now: nothing, in a forked child.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let inner = &self.inner;
        if !inner.is_here() {
            return Stats::default();
        }
        let SchedulerStats { computing, queued, threads, stuck } = inner.scheduler.stats();
        let settled = |status: Status| inner.settled[status as usize].load(Ordering::Relaxed);
        let parked = inner.runs.lock().iter().filter(|(_, run)| run.parked()).count();
        Stats {
            computing,
            parked,
            queued,
            success: settled(Status::Success),
            error: settled(Status::Error),
            memory: settled(Status::Memory),
            terminated: settled(Status::Terminated),
            link_error: settled(Status::LinkError),
            ready_isolates: inner.pool.stats().ready,
            threads,
            stuck_threads: stuck,
            compile_cache_bytes: inner.cache.held_bytes(),
        }
    }
}

impl Inner {
    /// Whether this is the process that the runtime was made in. In a forked child no lock of it
    /// may be waited for: whoever held it is not there.
    pub(crate) fn is_here(&self) -> bool {
        self.process.is_current()
    }

    fn admit(&self, make: impl FnOnce(usize) -> Run) -> Arc<Run> {
        self.live.fetch_add(1, Ordering::Relaxed);
        let mut runs = self.runs.lock();
        let vacant = runs.vacant_entry();
        let run = Arc::new(make(vacant.key()));
        vacant.insert(Arc::clone(&run));
        run
    }

    /// Runs that have not settled.
    pub(crate) fn live(&self) -> usize {
        self.live.load(Ordering::Relaxed)
    }

    /// Counts a run that has settled, and forgets it.
    pub(crate) fn settle(&self, place: usize, status: Status) {
        self.settled[status as usize].fetch_add(1, Ordering::Relaxed);
        let run = self.runs.lock().try_remove(place);
        self.live.fetch_sub(1, Ordering::Relaxed);
        drop(run);
    }

    /// A thread is done with a run: was it the last that a closed runtime waited for?
    pub(crate) fn computed(&self) {
        if !self.closed.load(Ordering::Acquire) || self.live() > 0 {
            return;
        }
        if !self.scheduler.is_idle() {
            return;
        }
        let closers = std::mem::take(&mut *self.closers.lock());
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
