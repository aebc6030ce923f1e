//! The executor on threads of this process, as the runtime sees it.

use std::sync::Arc;

use super::{
    resources::Resources,
    run::{Run, Session, Start, ThreadPlace},
    scheduler::SchedulerStats,
};
use crate::{
    binding::{
        handle::{Recipient, RunControl},
        host::Host,
        native::NativeHost,
    },
    error::{Error, ErrorKind},
    isolate::session::SessionIsolate,
    modules::{request::Request, session_request::SessionRequest},
    runtime::{
        executor::Executor, options::RuntimeSettings, registry::Runs, session::SessionControl,
        stats::Stats,
    },
};

/// Computes runs on threads of this process. They start with the first run, and end some time after the last.
pub(crate) struct Threads(pub(crate) Arc<Resources<Run>>);

impl Threads {
    pub(crate) fn new(settings: &RuntimeSettings) -> Self {
        Self(Resources::new(settings))
    }
}

impl Executor for Threads {
    fn runs(&self) -> &dyn Runs {
        &self.0.registry
    }

    fn is_full(&self, most_queued: usize) -> bool {
        self.0.scheduler.is_full(most_queued)
    }

    fn start(&self, request: Request, host: Arc<NativeHost>) -> Result<Arc<dyn RunControl>, Error> {
        let Resources { registry, scheduler, watchdog, .. } = &*self.0;
        self.0.ensure_threads()?;
        let run = registry.admit(|place| {
            let start = Start::of_program(request, Arc::<NativeHost>::clone(&host));
            Run::new(Arc::clone(&self.0), place, start)
        });
        host.started(&(Arc::clone(&run) as Arc<dyn Recipient>));
        watchdog.attend();
        scheduler.enqueue(Arc::clone(&run));
        Ok(run)
    }

    fn session(
        &self,
        request: SessionRequest,
        host: Arc<dyn Host>,
    ) -> Result<Arc<dyn SessionControl>, Error> {
        if !SessionIsolate::is_available(request.interleave) {
            let message = "this build of the engine has no sessions";
            return Err(Error::new(ErrorKind::Unavailable, message));
        }
        Ok(Session::open(ThreadPlace::new(Arc::clone(&self.0)), request, host))
    }

    fn close(&self) {
        self.0.registry.close_sessions();
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
            sessions: registry.sessions(),
            compile_cache_bytes: cache.held_bytes(),
            uncached_modules: cache.too_large(),
            ..Stats::default()
        }
    }
}
