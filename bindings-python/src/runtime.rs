//! What outlives a run, and the start of one.

use std::{path::PathBuf, sync::Arc};

use isolane::{Isolation, Runtime, RuntimeOptions, Spelling, wrong_type};
use pyo3::{
    exceptions::{PyKeyError, PyTypeError},
    prelude::*,
    types::{IntoPyDict, PyDict},
};

use crate::{
    error::exception,
    execution::PyRunHandle,
    host::PyMailbox,
    options::{self, Options, optional_number},
    value::Functions,
};

/// A runtime of the core.
#[pyclass(name = "Runtime", module = "isolane._isolane", frozen)]
pub(crate) struct PyRuntime(Runtime);

#[pymethods]
impl PyRuntime {
    /// `worker_folder` is where the package keeps its executable. `numbers` has every option that is one,
    /// by name, `None` for its default.
    #[new]
    fn new(
        py: Python<'_>,
        isolation: &Bound<'_, PyAny>,
        worker: Option<&Bound<'_, PyAny>>,
        worker_folder: PathBuf,
        numbers: &Bound<'_, PyDict>,
    ) -> PyResult<Self> {
        let number = |name| {
            let given = numbers.get_item(name)?.ok_or_else(|| PyKeyError::new_err(name))?;
            optional_number(name, Some(&given).filter(|given| !given.is_none()))
        };
        let options = RuntimeOptions {
            isolation: read_isolation(isolation)?,
            safety_cap_ms: number("safety_cap_ms")?,
            max_concurrent_runs: number("max_concurrent_runs")?,
            max_queued_runs: number("max_queued_runs")?,
            max_stuck_threads: number("max_stuck_threads")?,
            ready_isolates: number("ready_isolates")?,
            compile_cache_bytes: number("compile_cache_bytes")?,
            worker: worker.map(read_path).transpose()?,
            worker_folder: Some(worker_folder),
            runs_per_worker: number("runs_per_worker")?,
            worker_idle_ms: number("worker_idle_ms")?,
            spelling: Spelling::Snake,
        };
        Runtime::new(&options).map(Self).map_err(|error| exception(py, &error))
    }

    /// Refuses new runs and ends the live ones. The end of it comes to the mailbox as an event with
    /// that number.
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
        counts.set_item("ready_isolates", stats.ready_isolates)?;
        counts.set_item("threads", stats.threads)?;
        counts.set_item("stuck_threads", stats.stuck_threads)?;
        counts.set_item("compile_cache_bytes", stats.compile_cache_bytes)?;
        counts.set_item("workers", stats.workers)?;
        let confinement = stats.confinement.map(|confinement| confinement.items().into_py_dict(py));
        counts.set_item("confinement", confinement.transpose()?)?;
        Ok(counts)
    }
}

/// Starts a run, in the default runtime when none is given. Its events come to the mailbox with
/// that number; `owner` gives out numbers for promises.
#[pyfunction]
#[pyo3(signature = (runtime, mailbox, number, owner, source, execute, imports, modules, globals, language, memory_limit_bytes, filename, report))]
#[expect(clippy::too_many_arguments, reason = "the arguments of `run_code`, and whom to tell")]
pub(crate) fn start(
    py: Python<'_>,
    runtime: Option<&PyRuntime>,
    mailbox: &PyMailbox,
    number: u64,
    owner: &Bound<'_, PyAny>,
    source: &Bound<'_, PyAny>,
    execute: Option<Bound<'_, PyAny>>,
    imports: Option<Bound<'_, PyAny>>,
    modules: Option<Bound<'_, PyAny>>,
    globals: Option<Bound<'_, PyAny>>,
    language: Option<Bound<'_, PyAny>>,
    memory_limit_bytes: Option<Bound<'_, PyAny>>,
    filename: Option<Bound<'_, PyAny>>,
    report: Option<Bound<'_, PyAny>>,
) -> PyResult<PyRunHandle> {
    let functions = Functions::default();
    let options = Options {
        execute,
        imports,
        modules,
        globals,
        language,
        memory_limit_bytes,
        filename,
        report,
    };
    let request = options::read_request(source, &options, &functions, owner)?;
    let host = Arc::new(mailbox.host(number));
    let start = || match runtime {
        Some(runtime) => runtime.0.start(request, host.clone()),
        None => Runtime::shared().start(request, host.clone()),
    };
    let handle = start().map_err(|error| exception(py, &error))?;
    mailbox.listen(&handle);
    Ok(PyRunHandle::new(handle, host, functions))
}

fn read_isolation(isolation: &Bound<'_, PyAny>) -> PyResult<Isolation> {
    match isolation.extract::<&str>().unwrap_or_default() {
        "thread" => Ok(Isolation::Thread),
        "process" => Ok(Isolation::Process),
        _ => {
            let got = options::shown(isolation)?;
            let error = wrong_type("isolation", "'thread' or 'process'", &got);
            Err(exception(isolation.py(), &error))
        }
    }
}

fn read_path(worker: &Bound<'_, PyAny>) -> PyResult<PathBuf> {
    worker.extract().map_err(|failure: PyErr| {
        if !failure.is_instance_of::<PyTypeError>(worker.py()) {
            return failure;
        }
        match options::shown(worker) {
            Ok(got) => exception(worker.py(), &wrong_type("worker", "a path", &got)),
            Err(failure) => failure,
        }
    })
}
