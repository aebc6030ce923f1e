//! The executor on worker processes, as the runtime sees it.

use std::{io, sync::Arc};

use super::{
    driver,
    run::{Run, Session, Start, WorkerPlace},
    workers::Workers,
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
    protocol::readiness::Readiness,
    runtime::{
        executor::Executor,
        options::{RuntimeSettings, WorkerSettings},
        registry::Runs,
        session::SessionControl,
        stats::Stats,
    },
};

/// Computes runs in worker processes, and closes when it is dropped.
pub(crate) struct Processes(Arc<Workers<Run>>);

impl Processes {
    /// Starts a zygote and its driver.
    pub(crate) fn start(settings: RuntimeSettings, worker: WorkerSettings) -> Result<Self, Error> {
        let unavailable = |what: &str, error: io::Error| {
            let refused = Error::new(ErrorKind::Internal, format!("{what}: {error}"));
            refused.with_source(Some(Arc::new(error)))
        };
        let readiness = Readiness::new()
            .map_err(|error| unavailable("the system has no descriptor left", error.into()))?;
        let workers = Arc::new(Workers::new(settings, worker, Arc::new(readiness)));
        driver::start(&workers)
            .map_err(|error| unavailable("the system has no thread left", error))?;
        Ok(Self(workers))
    }
}

impl Executor for Processes {
    fn runs(&self) -> &dyn Runs {
        self.0.registry()
    }

    fn is_full(&self, most_queued: usize) -> bool {
        self.0.is_full(most_queued)
    }

    fn start(&self, request: Request, host: Arc<NativeHost>) -> Result<Arc<dyn RunControl>, Error> {
        // Called before anything is locked, because it calls the host.
        let validated_kinds = host.validated_kinds();
        let workers = &self.0;
        let native = Arc::clone(&host);
        let start = Start::of_program(request, host, validated_kinds);
        let make = |place| Run::new(Arc::clone(workers), place, start);
        let started = |run: &Arc<Run>| native.started(&(Arc::clone(run) as Arc<dyn Recipient>));
        Ok(workers.start(make, started))
    }

    fn session(
        &self,
        request: SessionRequest,
        host: Arc<dyn Host>,
    ) -> Result<Arc<dyn SessionControl>, Error> {
        if request.interleave && !SessionIsolate::is_available(true) {
            let message = "this build of the engine has no cells that interleave";
            return Err(Error::new(ErrorKind::Unavailable, message));
        }
        Ok(Session::open(WorkerPlace::new(Arc::clone(&self.0)), request, host))
    }

    fn close(&self) {
        self.0.registry().close_sessions();
        self.0.close();
    }

    fn stats(&self) -> Stats {
        self.0.stats()
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        if self.0.is_here() {
            self.0.registry().close(Box::new(|| {}));
            self.0.registry().close_sessions();
            self.0.close();
        }
    }
}
