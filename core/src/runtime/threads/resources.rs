//! What the runs of an executor on threads share.

use std::{sync::Arc, time::Duration};

use super::{run::Run, scheduler::Scheduler, watchdog::Watchdog};
use crate::{
    binding::adaptive_spin::AdaptiveSpin,
    isolate::{Pool, PoolOptions, Realm},
    modules::cache::Cache,
    os::process::Process,
    runtime::{options::RuntimeSettings, registry::Registry},
};

/// Slots alive at once. Parked runs beyond them live in plain isolates, which hold less.
const MAX_SLOTS: usize = 64;

/// How many of them are not for runs that may wait: more than compute at once by default.
const KEPT_SLOTS: usize = 16;

/// Runs that a slot serves before it is made anew.
const RUNS_PER_SLOT: u32 = 10_000;

/// What the runs share, and the threads that compute them.
pub(crate) struct Resources {
    /// Where its threads are. In a child of that process nothing here is touched, nor freed: each
    /// thread that was there at the fork holds it there for ever.
    pub(crate) process: Process,
    pub(crate) scheduler: Scheduler,
    pub(crate) watchdog: Watchdog,
    pub(crate) pool: Pool<Realm>,
    pub(crate) cache: Arc<Cache>,
    /// With the answers of hosts.
    pub(crate) spin: AdaptiveSpin,
    pub(crate) safety_cap: Duration,
    pub(crate) max_stuck_threads: usize,
    pub(crate) registry: Registry<Run>,
}

impl Resources {
    pub(crate) fn new(settings: &RuntimeSettings) -> Arc<Self> {
        let options = PoolOptions {
            ready: settings.ready_isolates,
            spare: settings.max_concurrent_runs.min(settings.ready_isolates),
            max_slots: MAX_SLOTS.max(settings.ready_isolates),
            kept_slots: KEPT_SLOTS,
            runs_per_slot: RUNS_PER_SLOT,
        };
        Arc::new(Self {
            process: Process::current(),
            scheduler: Scheduler::new(settings.max_concurrent_runs),
            watchdog: Watchdog::default(),
            pool: Pool::new(Realm::build, options),
            cache: Arc::new(Cache::new(settings.compile_cache_bytes)),
            spin: AdaptiveSpin::default(),
            safety_cap: settings.safety_cap,
            max_stuck_threads: settings.max_stuck_threads,
            registry: Registry::default(),
        })
    }

    /// Whether this is the process that they were made in. In a forked child no lock of them
    /// may be waited for: whoever held it is not there.
    pub(crate) fn is_here(&self) -> bool {
        self.process.is_current()
    }

    /// A thread is done with a run: was it the last that a closed runtime waited for?
    pub(crate) fn computed(&self) {
        if !self.registry.is_over() || !self.scheduler.is_idle() {
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
