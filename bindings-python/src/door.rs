//! Systems and their calls.
//!
//! In: Python objects. Out: systems; calls, which are runs for Python; answers that are there at once. The systems read
//! all options and arguments.

use std::{path::PathBuf, sync::Arc};

use isolane::{Error, ErrorKind, Spelling};
use isolane_door::{self as door, Context, SessionHost, System};
use pyo3::{
    prelude::*,
    types::{PyDict, PyTuple},
};
use tokio::sync::oneshot;

use crate::{
    error::exception,
    execution::PyRunHandle,
    host::{PyMailbox, silent_host},
    host_sessions::PySessionHost,
    lock::Lock,
    options::{self, session::read_session},
    runtime::PyRuntime,
    session::{Content, PyAnswer, PySession},
    value::{self, Functions, Owners},
};

/// A system that Python has opened.
#[pyclass(name = "System", module = "isolane._isolane", frozen)]
pub(crate) struct PySystem(Lock<Option<Open>>);

struct Open {
    system: Arc<dyn System>,
    /// Dropped when the system is closed: the run of its options settles then.
    _is_open: oneshot::Sender<()>,
}

/// Opens a system. Functions among the options belong to the run that is returned, which lasts as long as the system;
/// the mailbox receives its events with that number. `sessions`, a weak reference, opens its sessions if it has any.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "the arguments of a Python function")]
pub(crate) fn open_system(
    py: Python<'_>,
    name: &str,
    runtime: Option<&PyRuntime>,
    worker_folder: PathBuf,
    mailbox: &PyMailbox,
    number: u64,
    owner: &Bound<'_, PyAny>,
    options: &Bound<'_, PyDict>,
    sessions: Option<Py<PyAny>>,
) -> PyResult<(PySystem, PyRunHandle)> {
    let functions = Py::new(py, Functions::default())?;
    let options = value::write(functions.get(), options.as_any(), owner, "options")?;
    let runtime = runtime.map(|runtime| runtime.0.clone());
    let (is_open, closed) = oneshot::channel::<()>();
    let sessions =
        sessions.map(|opener| Arc::new(PySessionHost::new(opener)) as Arc<dyn SessionHost>);
    let open = |caller| {
        let spelling = Spelling::Snake;
        let context = Context { spelling, runtime, sessions, worker_folder, caller };
        isolane_systems::open(name, &options, context)
    };
    let closed = async move {
        // The sender is dropped, and never used.
        let _ = closed.await;
    };
    let host = Arc::new(mailbox.host(number));
    let opened = door::open(host.clone(), open, closed);
    let (system, handle) = opened.map_err(|error| exception(py, &error))?;
    let system = PySystem(Lock::new(Some(Open { system, _is_open: is_open })));
    Ok((system, PyRunHandle::new(handle, host, functions)))
}

#[pymethods]
impl PySystem {
    /// Begins a call. The mailbox receives its events with that number. Also returns whether it lasts as long as the
    /// system.
    fn call(
        &self,
        py: Python<'_>,
        mailbox: &PyMailbox,
        number: u64,
        owner: &Bound<'_, PyAny>,
        method: &str,
        args: &Bound<'_, PyTuple>,
    ) -> PyResult<(PyRunHandle, bool)> {
        let functions = Py::new(py, Functions::default())?;
        let args = value::write(functions.get(), args.as_any(), owner, "arguments")?;
        let host = Arc::new(mailbox.host(number));
        let begin = || door::begin(&*self.system()?, host.clone(), method, args);
        let begun = begin().map_err(|error| exception(py, &error))?;
        Ok((PyRunHandle::new(begun.handle, host, functions), begun.is_background))
    }

    /// Begins a call without functions. An event with that number says that the answer is there. `names` are those of the
    /// arguments, for errors.
    fn answer(
        &self,
        py: Python<'_>,
        mailbox: &PyMailbox,
        number: u64,
        method: &str,
        args: &Bound<'_, PyTuple>,
        names: Vec<String>,
    ) -> PyResult<PyAnswer> {
        // Nothing calls functions among the arguments.
        let nobody = py.None().into_bound(py);
        let args = value::write_named(args, names, &nobody)?;
        let (answer, arrived) = PyAnswer::new(None, mailbox, number);
        let done = move |completion| arrived(Content::Called(completion));
        let begin = || door::answer(&*self.system()?, method, args, done);
        let call = begin().map_err(|error| exception(py, &error))?;
        Ok(answer.of_call(call))
    }

    /// The answer of a method that has it at once.
    fn ask<'py>(
        &self,
        py: Python<'py>,
        owner: &Bound<'py, PyAny>,
        method: &str,
        args: &Bound<'py, PyTuple>,
        names: Vec<String>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let args = value::write_named(args, names, owner)?;
        let ask = || door::ask(&*self.system()?, method, args);
        let answer = ask().map_err(|error| exception(py, &error))?;
        value::read(py, &answer, &Owners::new(owner))
    }

    /// Starts a run of that kind, whose request the system amends, as `start` does.
    fn start(
        &self,
        py: Python<'_>,
        mailbox: &PyMailbox,
        number: u64,
        owner: &Bound<'_, PyAny>,
        arguments: &Bound<'_, PyDict>,
        kind: &str,
    ) -> PyResult<PyRunHandle> {
        let functions = Py::new(py, Functions::default())?;
        let request = options::read_request(arguments, functions.get(), owner)?;
        let host = Arc::new(mailbox.host(number));
        let start = || {
            let (runtime, request) = self.system()?.amend_run(kind, request)?;
            runtime.start(request, host.clone())
        };
        let handle = start().map_err(|error| exception(py, &error))?;
        mailbox.listen(&handle);
        Ok(PyRunHandle::new(handle, host, functions))
    }

    /// Opens a session whose request the system amends, as `open_session` does.
    fn session(
        &self,
        py: Python<'_>,
        owner: &Bound<'_, PyAny>,
        arguments: &Bound<'_, PyDict>,
    ) -> PyResult<PySession> {
        let functions = Py::new(py, Functions::default())?;
        let request = read_session(arguments, functions.get(), owner)?;
        let host = Arc::new(silent_host());
        let open = || {
            let (runtime, request) = self.system()?.amend_session(request)?;
            runtime.open_session(request, host.clone())
        };
        let handle = open().map_err(|error| exception(py, &error))?;
        Ok(PySession::new(handle, host, functions))
    }

    /// Closes the system, once no call of it goes on.
    fn close(&self) {
        let open = self.0.lock().take();
        // Without the lock.
        drop(open);
    }
}

impl PySystem {
    fn system(&self) -> Result<Arc<dyn System>, Error> {
        let open = self.0.lock();
        let system = open.as_ref().map(|open| Arc::clone(&open.system));
        system.ok_or_else(|| Error::new(ErrorKind::Unavailable, "it is closed"))
    }
}
