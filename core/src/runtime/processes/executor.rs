//! Worker processes, as the runtime sees them.

use std::sync::Arc;

use super::workers::Workers;
use crate::{
    binding::{handle::RunControl, host::Host},
    error::Error,
    modules::request::Request,
    os::process::Process,
    runtime::{
        executor::Executor,
        options::{RuntimeSettings, WorkerSettings},
        registry::Runs,
        stats::Stats,
    },
};

/// Computes runs in worker processes, and closes when nobody has it any more.
pub(crate) struct Processes(Arc<Workers>);

impl Processes {
    /// Starts a zygote and what looks after it.
    pub(crate) fn start(settings: RuntimeSettings, worker: WorkerSettings) -> Result<Self, Error> {
        Workers::start(settings, worker).map(Self)
    }
}

impl Executor for Processes {
    fn process(&self) -> Process {
        self.0.process()
    }

    fn runs(&self) -> &dyn Runs {
        self.0.registry()
    }

    fn is_full(&self, most_queued: usize) -> bool {
        self.0.is_full(most_queued)
    }

    fn start(&self, request: Request, host: Arc<dyn Host>) -> Result<Arc<dyn RunControl>, Error> {
        Ok(self.0.run(request, host))
    }

    fn close(&self) {
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
            self.0.close();
        }
    }
}
