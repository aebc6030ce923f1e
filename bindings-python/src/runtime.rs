//! Runtimes, and the start of a run.

use std::{path::PathBuf, sync::Arc};

use isolane::Runtime;
use pyo3::{
    prelude::*,
    types::{IntoPyDict, PyDict},
};

use crate::{error::exception, execution::PyRunHandle, host::PyMailbox, options, value::Functions};

/// A runtime of the core.
#[pyclass(name = "Runtime", module = "isolane._isolane", frozen)]
pub(crate) struct PyRuntime(pub(crate) Runtime);

#[pymethods]
impl PyRuntime {
    /// `worker_folder` is the folder of the package's worker executable. `options` has options by name; `None` takes
    /// the default.
    #[new]
    fn new(py: Python<'_>, worker_folder: PathBuf, options: &Bound<'_, PyDict>) -> PyResult<Self> {
        let options = options::read_runtime_options(options, worker_folder)?;
        Runtime::new(&options).map(Self).map_err(|error| exception(py, &error))
    }

    /// Refuses new runs and ends the live ones. Then an event with that number reports the end to the
    /// mailbox.
    fn close(&self, mailbox: &PyMailbox, number: u64) {
        self.0.close(mailbox.closed(number));
    }

    /// The core's counts, as of now, by name.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stats = self.0.stats();
        let settled = PyDict::new(py);
        settled.set_item("success", stats.success)?;
        settled.set_item("error", stats.error)?;
        settled.set_item("memory", stats.memory)?;
        settled.set_item("terminated", stats.terminated)?;
        settled.set_item("link_error", stats.link_error)?;
        let counts = PyDict::new(py);
        counts.set_item("computing", stats.computing)?;
        counts.set_item("parked", stats.parked)?;
        counts.set_item("queued", stats.queued)?;
        counts.set_item("settled", settled)?;
        counts.set_item("sessions", stats.sessions)?;
        counts.set_item("ready_isolates", stats.ready_isolates)?;
        counts.set_item("threads", stats.threads)?;
        counts.set_item("stuck_threads", stats.stuck_threads)?;
        counts.set_item("compile_cache_bytes", stats.compile_cache_bytes)?;
        counts.set_item("uncached_modules", stats.uncached_modules)?;
        counts.set_item("workers", stats.workers)?;
        let confinement = stats.confinement.map(|confinement| confinement.items().into_py_dict(py));
        counts.set_item("confinement", confinement.transpose()?)?;
        Ok(counts)
    }
}

/// Starts a run, in the default runtime if none is given. The mailbox receives its events with that number.
/// `owner` gives out numbers for promises. `arguments` are those of `run_code` by name, with the source.
#[pyfunction]
#[pyo3(signature = (runtime, mailbox, number, owner, arguments))]
pub(crate) fn start(
    py: Python<'_>,
    runtime: Option<&PyRuntime>,
    mailbox: &PyMailbox,
    number: u64,
    owner: &Bound<'_, PyAny>,
    arguments: &Bound<'_, PyDict>,
) -> PyResult<PyRunHandle> {
    let functions = Py::new(py, Functions::default())?;
    let request = options::read_request(arguments, functions.get(), owner)?;
    let host = Arc::new(mailbox.host(number));
    let start = || match runtime {
        Some(runtime) => runtime.0.start(request, host.clone()),
        None => Runtime::shared().start(request, host.clone()),
    };
    let handle = start().map_err(|error| exception(py, &error))?;
    mailbox.listen(&handle);
    Ok(PyRunHandle::new(handle, host, functions))
}
