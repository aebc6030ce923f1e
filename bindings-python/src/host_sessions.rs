//! Sessions of systems, with the values and functions of Python.
//!
//! In: requests of a system. Out: sessions, and cells whose events go to the loop that made the call. The system asks on
//! the thread of that loop, which has the interpreter's lock, for it alone can read Python's values. Nothing here keeps a
//! Python object but by a weak reference: Python's collector would not see that a session refers to its system.

use std::{fmt, sync::Arc};

use isolane::{Error, ErrorKind, ExecutionResult, Language, Runtime, SessionHandle};
use isolane_door::{Amend, CellFuture, CloseFuture, HostCell, HostSession, SessionHost};
use pyo3::{
    exceptions::{PyRuntimeError, PyTypeError, PyValueError},
    prelude::*,
    types::PyDict,
};
use tokio::sync::oneshot;

use crate::{
    error::exception, execution::PyRunHandle, host::silent_host, lock::Lock,
    options::session::read_session, session::PySession, value::Functions,
};

/// The opener of the sessions of one system.
pub(crate) struct PySessionHost {
    /// A weak reference to a `_host_sessions.HostSessions`.
    opener: Arc<Py<PyAny>>,
}

impl PySessionHost {
    pub(crate) fn new(opener: Py<PyAny>) -> Self {
        Self { opener: Arc::new(opener) }
    }

    fn open_here(
        &self,
        py: Python<'_>,
        runtime: &Runtime,
        amend: Amend<'_>,
    ) -> PyResult<PyHostSession> {
        let opened = self.opener.bind(py).call0()?.call_method0("open")?;
        let (host, reference, arguments) =
            opened.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>, Bound<'_, PyDict>)>()?;
        let functions = Py::new(py, Functions::default())?;
        let request = read_session(&arguments, functions.get(), &host)?;
        let silent = Arc::new(silent_host());
        let open = || {
            let request = amend(request)?;
            runtime.open_session(request, silent.clone())
        };
        let handle = open().map_err(|error| exception(py, &error))?;
        host.call_method1("opened", (PySession::new(handle.clone(), silent, functions),))?;
        let (host, opener) = (reference.unbind(), Arc::clone(&self.opener));
        Ok(PyHostSession { handle, host, opener })
    }
}

impl fmt::Debug for PySessionHost {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("PySessionHost").finish_non_exhaustive()
    }
}

impl SessionHost for PySessionHost {
    fn open(&self, runtime: &Runtime, amend: Amend<'_>) -> Result<Arc<dyn HostSession>, Error> {
        Python::attach(|py| match self.open_here(py, runtime, amend) {
            Ok(session) => Ok(Arc::new(session) as Arc<dyn HostSession>),
            Err(raised) => Err(refusal(py, &raised)),
        })
    }
}

struct PyHostSession {
    handle: SessionHandle,
    /// A weak reference to a `_session_host.SessionHost`, which the opener keeps.
    host: Py<PyAny>,
    opener: Arc<Py<PyAny>>,
}

impl PyHostSession {
    /// Starts a cell, whose end is sent to that place.
    fn start(
        &self,
        py: Python<'_>,
        code: &str,
        options: HostCell,
        end: PyCellEnd,
    ) -> PyResult<Running> {
        let language = options.language.map(|language| match language {
            Language::JavaScript => "javascript",
            Language::TypeScript => "typescript",
        });
        let host = self.host.bind(py).call0()?;
        let arguments = (host, end, code, language, options.timeout_ms);
        let remote = self.opener.bind(py).call0()?.call_method1("start_cell", arguments)?;
        Ok(Running(remote.cast::<PyRunHandle>()?.get().handle().clone()))
    }
}

impl HostSession for PyHostSession {
    fn run(&self, code: String, options: HostCell) -> CellFuture {
        let (sender, ended) = oneshot::channel();
        let end = PyCellEnd(Lock::new(Some(sender)));
        let started = Python::attach(|py| {
            self.start(py, &code, options, end).map_err(|raised| refusal(py, &raised))
        });
        Box::pin(async move {
            let _running = started?;
            ended.await.map_err(|_| {
                let message = "the event loop of the call has closed";
                Error::new(ErrorKind::Unavailable, message)
            })
        })
    }

    fn close(&self) -> CloseFuture {
        let (sender, closed) = oneshot::channel();
        self.handle.close(move || {
            // The executor may wait no more.
            let _ = sender.send(());
        });
        Box::pin(async move {
            // An error would mean that it was closed already.
            let _ = closed.await;
        })
    }
}

impl Drop for PyHostSession {
    fn drop(&mut self) {
        // Python has a handle on it, too.
        self.handle.close(|| ());
    }
}

/// A cell that runs. Dropping it ends the cell.
struct Running(isolane::RunHandle);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.terminate(None);
    }
}

/// The place to which Python's side of a cell brings its end.
#[pyclass(name = "CellEnd", module = "isolane._isolane", frozen)]
pub(crate) struct PyCellEnd(Lock<Option<oneshot::Sender<ExecutionResult>>>);

#[pymethods]
impl PyCellEnd {
    /// Hands over the result of a cell that has settled. Returns what became of the state of its session.
    fn settle(&self, remote: &PyRunHandle) -> &'static str {
        let Some(result) = remote.handle().take_result() else { return "reset" };
        let state = result.cell.as_ref().map_or("kept", |cell| cell.session.as_str());
        if let Some(sender) = self.0.lock().take() {
            // Nobody waits any more for a call that was cancelled.
            drop(sender.send(result));
        }
        state
    }
}

/// Checks the arguments of a session. Nothing is opened.
#[pyfunction]
pub(crate) fn check_session(
    owner: &Bound<'_, PyAny>,
    arguments: &Bound<'_, PyDict>,
) -> PyResult<()> {
    read_session(arguments, &Functions::default(), owner).map(drop)
}

/// The refusal that an exception means.
fn refusal(py: Python<'_>, raised: &PyErr) -> Error {
    let message = raised.value(py).str().map_or_else(|_| String::new(), |text| text.to_string());
    let kind = if raised.is_instance_of::<PyTypeError>(py) {
        ErrorKind::Type
    } else if raised.is_instance_of::<PyValueError>(py) {
        ErrorKind::Range
    } else if raised.is_instance_of::<PyRuntimeError>(py) {
        ErrorKind::Unavailable
    } else {
        ErrorKind::Serialization
    };
    Error::new(kind, message)
}
