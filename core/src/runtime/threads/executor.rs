//! The executor on threads of this process, as the runtime sees it.

use std::sync::Arc;

use super::{resources::Resources, run::Run, scheduler::SchedulerStats};
use crate::{
    binding::{handle::RunControl, native::NativeHost},
    error::{Error, ErrorKind},
    modules::request::Request,
    os::process::Process,
    runtime::{executor::Executor, options::RuntimeSettings, registry::Runs, stats::Stats},
};

/// Computes runs on threads of this process. They start with the first run, and end some time after the last.
pub(crate) struct Threads(pub(crate) Arc<Resources<Run>>);

impl Threads {
    pub(crate) fn new(settings: &RuntimeSettings) -> Self {
        Self(Resources::new(settings))
    }
}

impl Executor for Threads {
    fn process(&self) -> Process {
        self.0.process
    }

    fn runs(&self) -> &dyn Runs {
        &self.0.registry
    }

    fn is_full(&self, most_queued: usize) -> bool {
        self.0.scheduler.is_full(most_queued)
    }

    fn start(&self, request: Request, host: Arc<NativeHost>) -> Result<Arc<dyn RunControl>, Error> {
        let Resources { registry, scheduler, watchdog, .. } = &*self.0;
        // Both are needed, or the run could wait for ever for a thread that never comes.
        if !watchdog.has_thread() || !scheduler.has_threads() {
            let message = "the system has no thread left for the runtime";
            return Err(Error::new(ErrorKind::Unavailable, message));
        }
        let run = registry.admit(|place| {
            Run::new(Arc::clone(&self.0), place, request, Arc::<NativeHost>::clone(&host))
        });
        host.started(&(Arc::clone(&run) as Arc<dyn RunControl>));
        watchdog.attend();
        scheduler.enqueue(Arc::clone(&run));
        Ok(run)
    }

    fn close(&self) {
        self.0.close_when_idle();
    }

    fn stats(&self) -> Stats {
        let Resources { registry, scheduler, pool, cache, .. } = &*self.0;
        let SchedulerStats { computing, queued, threads, stuck } = scheduler.stats();
        Stats {
            computing,
            parked: registry.count(Run::parked),
            queued,
            ready_isolates: pool.stats().ready,
            threads,
            stuck_threads: stuck,
            compile_cache_bytes: cache.held_bytes(),
            uncached_modules: cache.too_large(),
            ..Stats::default()
        }
    }
}
