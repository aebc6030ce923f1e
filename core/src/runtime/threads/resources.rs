//! The resources that the runs of an executor on threads share.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use super::{
    homes::{Guest, Homes},
    scheduler::{self, Job, Scheduler},
    watchdog::{self, Watchdog, Watched},
};
use crate::{
    binding::{adaptive_spin::AdaptiveSpin, handle::RunControl},
    error::{Error, ErrorKind},
    isolate::{Pool, PoolOptions, Realm},
    modules::cache::Cache,
    runtime::{
        options::RuntimeSettings,
        registry::{Registry, Runs},
    },
};

/// The most slots at once. Parked runs beyond them use plain isolates, which hold less.
const MAX_SLOTS: usize = 64;

/// Slots that are kept from runs that may wait: more than the runs that compute at once by default.
const KEPT_SLOTS: usize = 16;

/// Runs that a slot serves before it is built again.
const RUNS_PER_SLOT: u32 = 10_000;

/// The resources of runs, and the threads that compute them.
pub(crate) struct Resources<R: Guest> {
    pub(crate) scheduler: Scheduler<R>,
    pub(crate) watchdog: Watchdog<R>,
    pub(crate) pool: Pool<Realm>,
    pub(crate) cache: Arc<Cache>,
    /// For the answers of hosts.
    pub(crate) spin: AdaptiveSpin,
    pub(crate) safety_cap: Duration,
    pub(crate) max_stuck_threads: usize,
    pub(crate) registry: Registry<R>,
    /// The homes of sessions.
    pub(crate) homes: Arc<Homes<R>>,
}

impl<R: RunControl + Job + Watched + Guest> Resources<R> {
    pub(crate) fn new(settings: &RuntimeSettings) -> Arc<Self> {
        let options = PoolOptions {
            ready: settings.ready_isolates,
            spare: settings.max_concurrent_runs.min(settings.ready_isolates),
            max_slots: MAX_SLOTS.max(settings.ready_isolates),
            kept_slots: KEPT_SLOTS,
            runs_per_slot: RUNS_PER_SLOT,
        };
        Arc::new_cyclic(|owner: &Weak<Self>| Self {
            scheduler: Scheduler::new(settings.max_concurrent_runs, owner.clone()),
            watchdog: Watchdog::new(owner.clone()),
            pool: Pool::new(Realm::build, options).with_extended(Realm::build_extended),
            cache: Arc::new(Cache::new(settings.compile_cache_bytes)),
            spin: AdaptiveSpin::default(),
            safety_cap: settings.safety_cap,
            max_stuck_threads: settings.max_stuck_threads,
            registry: Registry::default(),
            homes: Arc::default(),
        })
    }

    /// Whether this is the process that they were made in. In a forked child no lock of them may be waited for, because
    /// its holder is not there.
    pub(crate) fn is_here(&self) -> bool {
        self.registry.process().is_current()
    }

    /// Makes sure that runs find the threads that they need.
    ///
    /// # Errors
    /// The system has no thread left: a run could wait for ever for one.
    pub(crate) fn ensure_threads(&self) -> Result<(), Error> {
        if self.watchdog.has_thread() && self.scheduler.has_threads() {
            return Ok(());
        }
        let message = "the system gives the runtime no thread: raise the limit of this process on threads (ulimit -u, or the \
                       pids of its container) or on address space (ulimit -v)";
        Err(Error::new(ErrorKind::Unavailable, message))
    }

    /// Frees everything and calls the closers, if it is closed and no thread has a run any more.
    pub(crate) fn close_when_idle(&self) {
        if !self.registry.is_over() || !self.scheduler.is_idle() {
            return;
        }
        let closers = self.registry.take_closers();
        if !closers.is_empty() {
            self.scheduler.close();
            self.homes.close();
            self.pool.close();
            self.cache.clear();
            self.watchdog.close();
            for done in closers {
                done();
            }
        }
    }
}

impl<R: RunControl + Job + Watched + Guest> scheduler::Owner<R> for Resources<R> {
    fn scheduler(&self) -> &Scheduler<R> {
        &self.scheduler
    }

    fn prepare(&self, others_wait: &dyn Fn() -> bool) {
        self.pool.fill(others_wait);
    }

    fn computed(&self) {
        self.close_when_idle();
    }
}

impl<R: RunControl + Job + Watched + Guest> watchdog::Owner<R> for Resources<R> {
    fn watchdog(&self) -> &Watchdog<R> {
        &self.watchdog
    }

    fn computing(&self) -> Vec<Arc<R>> {
        self.scheduler.current()
    }

    fn try_again(&self) -> bool {
        let busy = self.registry.live() > 0;
        if busy {
            self.scheduler.try_again();
        }
        busy
    }
}
