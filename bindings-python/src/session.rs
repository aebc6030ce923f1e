//! Sessions, for Python.
//!
//! In: the arguments of `Session` and of its methods, and completions of the host. Out: handles on cells, and answers
//! that arrive later: an event of the mailbox says that one has. In a forked child every method refuses or does nothing.

use std::sync::Arc;

use isolane::{Completion, Error, Name, RunHandle, Runtime, SessionHandle};
use pyo3::{
    IntoPyObjectExt, PyTraverseError, PyVisit,
    prelude::*,
    types::{PyDict, PyTuple},
};

use crate::{
    error::exception,
    execution::{PyHostCall, PyRunHandle, completion},
    host::{PyMailbox, PythonHost, silent_host},
    lock::Lock,
    options::session as options,
    runtime::PyRuntime,
    value::{self, Functions, Owners},
};

/// A session of the core.
#[pyclass(name = "Session", module = "isolane._isolane", frozen)]
pub(crate) struct PySession {
    handle: SessionHandle,
    /// The host of events outside of cells.
    host: Arc<PythonHost>,
    functions: Py<Functions>,
}

/// Opens a session, in the default runtime if none is given. `owner` gives out numbers for promises. `arguments` are
/// those of `Session` by name.
#[pyfunction]
#[pyo3(signature = (runtime, owner, arguments))]
pub(crate) fn open_session(
    py: Python<'_>,
    runtime: Option<&PyRuntime>,
    owner: &Bound<'_, PyAny>,
    arguments: &Bound<'_, PyDict>,
) -> PyResult<PySession> {
    let functions = Py::new(py, Functions::default())?;
    let request = options::read_session(arguments, functions.get(), owner)?;
    let host = Arc::new(silent_host());
    let open = || match runtime {
        Some(runtime) => runtime.0.open_session(request, host.clone()),
        None => Runtime::shared().open_session(request, host.clone()),
    };
    let handle = open().map_err(|error| exception(py, &error))?;
    Ok(PySession { handle, host, functions })
}

impl PySession {
    pub(crate) fn new(
        handle: SessionHandle,
        host: Arc<PythonHost>,
        functions: Py<Functions>,
    ) -> Self {
        Self { handle, host, functions }
    }
}

#[pymethods]
impl PySession {
    /// Queues a cell. The mailbox receives its events with that number. `arguments` are those of `run` by name, with
    /// the source. No value is among them, so the owner is not used.
    fn run(
        &self,
        py: Python<'_>,
        mailbox: &PyMailbox,
        number: u64,
        _owner: &Bound<'_, PyAny>,
        arguments: &Bound<'_, PyDict>,
    ) -> PyResult<PyRunHandle> {
        let request = options::read_cell(arguments, self.functions.get())?;
        let host = Arc::new(mailbox.host(number));
        let handle = self.handle.run(request, host.clone());
        let handle = handle.map_err(|error| exception(py, &error))?;
        mailbox.listen(&handle);
        Ok(PyRunHandle::new(handle, host, self.functions.clone_ref(py)))
    }

    /// Queues a call. `owner` gives out numbers for promises among its arguments.
    fn call(
        &self,
        py: Python<'_>,
        mailbox: &PyMailbox,
        number: u64,
        owner: &Bound<'_, PyAny>,
        arguments: &Bound<'_, PyDict>,
    ) -> PyResult<PyRunHandle> {
        let request = options::read_call(arguments, self.functions.get(), owner)?;
        let host = Arc::new(mailbox.host(number));
        let handle = self.handle.call(request, host.clone());
        let handle = handle.map_err(|error| exception(py, &error))?;
        mailbox.listen(&handle);
        Ok(PyRunHandle::new(handle, host, self.functions.clone_ref(py)))
    }

    /// Hands over more from the next cell on.
    fn update(
        &self,
        py: Python<'_>,
        owner: &Bound<'_, PyAny>,
        arguments: &Bound<'_, PyDict>,
    ) -> PyResult<()> {
        let request = options::read_update(arguments, self.functions.get(), owner)?;
        self.handle.update(request).map_err(|error| exception(py, &error))
    }

    /// Asks for the names. An event with that number says that the answer is there.
    fn names(&self, mailbox: &PyMailbox, number: u64) -> PyAnswer {
        let (answer, arrived) = PyAnswer::new(None, mailbox, number);
        self.handle.names(move |names| arrived(Content::Names(names)));
        answer
    }

    /// Forgets all state.
    fn reset(&self, mailbox: &PyMailbox, number: u64) -> PyAnswer {
        let (answer, arrived) = PyAnswer::new(None, mailbox, number);
        self.handle.reset(move |reset| arrived(Content::Done(reset)));
        answer
    }

    /// Makes a copy.
    fn fork(&self, py: Python<'_>, mailbox: &PyMailbox, number: u64) -> PyAnswer {
        let functions = self.functions.clone_ref(py);
        let (answer, arrived) = PyAnswer::new(Some(functions), mailbox, number);
        let host = Arc::new(silent_host());
        let of_copy = host.clone();
        self.handle.fork(host, move |forked| arrived(Content::Fork(forked, of_copy)));
        answer
    }

    /// Ends everything. An event with that number says that the session has ended.
    fn close(&self, mailbox: &PyMailbox, number: u64) {
        self.handle.close(mailbox.closed(number));
    }

    /// Whether the session is open.
    fn running(&self) -> bool {
        self.handle.is_here() && !self.handle.is_closed()
    }

    /// Whether this process is a forked child, and the session is in its parent.
    fn forked(&self) -> bool {
        !self.handle.is_here()
    }

    /// The host function with that number; `None` if the session has released it. The promise is that
    /// of a call for which the sandbox does not wait.
    #[pyo3(signature = (number, promise=None))]
    fn function<'py>(
        &self,
        py: Python<'py>,
        number: u32,
        promise: Option<u32>,
    ) -> Option<Bound<'py, PyAny>> {
        if let Some(promise) = promise {
            self.functions.get().answers(number, promise, 0);
        }
        self.functions.get().function(py, number)
    }

    /// Forgets the functions that were given to the cells at these places alone.
    fn take_back(&self, first: u32, last: u32) {
        self.functions.get().take_back(first, last);
    }

    /// Settles a promise of the host. Returns the exception that the sandbox throws, if any.
    fn settle_promise<'py>(
        &self,
        promise: u32,
        ok: bool,
        value: &Bound<'py, PyAny>,
        owner: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let functions = self.functions.get();
        let function = functions.answered(promise);
        let (completion, thrown) = completion(functions, function, ok, value, owner);
        self.handle.settle_promise(promise, completion);
        thrown
    }

    /// Answers a call of that function of the host. Returns the exception that the sandbox throws, if any.
    fn reply<'py>(
        &self,
        call: &PyHostCall,
        function: u32,
        ok: bool,
        value: &Bound<'py, PyAny>,
        owner: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        call.reply(self.functions.get(), function, ok, value, owner)
    }

    /// Calls a function of the sandbox.
    fn call_function(
        &self,
        function: u32,
        call: u32,
        args: &Bound<'_, PyTuple>,
        owner: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let args = value::write(self.functions.get(), args.as_any(), owner, "arguments")?;
        self.handle.call_function(function, args, call);
        Ok(())
    }

    /// Releases a function of the sandbox that was received `times` times.
    fn release_function(&self, function: u32, times: u32) {
        self.handle.release_function(function, times);
    }

    /// Sends the events outside of cells to that mailbox.
    fn forward(&self, mailbox: &PyMailbox, number: u64) {
        mailbox.forward(&self.host, number, || self.handle.is_closed());
    }

    /// Releases the host functions.
    fn end(&self) {
        self.functions.get().clear();
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.functions)
    }
}

/// The answer of a session to a question.
#[pyclass(name = "Answer", module = "isolane._isolane", frozen)]
pub(crate) struct PyAnswer {
    content: Arc<Lock<Option<Content>>>,
    /// For a copy: the functions of the original.
    functions: Option<Py<Functions>>,
    /// For a call of a system.
    call: Option<RunHandle>,
}

pub(crate) enum Content {
    Done(Result<(), Error>),
    Names(Result<Vec<Name>, Error>),
    Fork(Result<SessionHandle, Error>, Arc<PythonHost>),
    /// The outcome of a call of a system.
    Called(Completion),
}

impl PyAnswer {
    /// An answer, and the function that its content arrives through, on any thread.
    pub(crate) fn new(
        functions: Option<Py<Functions>>,
        mailbox: &PyMailbox,
        number: u64,
    ) -> (Self, impl FnOnce(Content) + Send + 'static) {
        let content = Arc::new(Lock::default());
        let (arriving, arrived) = (Arc::clone(&content), mailbox.closed(number));
        let arrive = move |content| {
            *arriving.lock() = Some(content);
            arrived();
        };
        (Self { content, functions, call: None }, arrive)
    }

    /// The answer to a call of a system.
    pub(crate) fn of_call(self, call: RunHandle) -> Self {
        Self { call: Some(call), ..self }
    }
}

#[pymethods]
impl PyAnswer {
    /// Gives the call of a system up that this is the answer to. The answer arrives all the same.
    fn cancel(&self) {
        if let Some(call) = &self.call {
            call.terminate(None);
        }
    }

    /// The answer, once: the names as `(name, kind, type, size)`, the copy, or nothing; for a call of a system whether it
    /// is a value, and the value or the thrown value. Raises the refusal.
    fn take<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let content = self.content.lock().take();
        let refused = |error: Error| exception(py, &error);
        match content {
            None => Ok(py.None().into_bound(py)),
            Some(Content::Done(done)) => {
                done.map_err(refused)?;
                Ok(py.None().into_bound(py))
            }
            Some(Content::Names(names)) => {
                let fields = |name: Name| (name.name, name.kind.as_str(), name.kind_of, name.size);
                let names: Vec<_> = names.map_err(refused)?.into_iter().map(fields).collect();
                names.into_pyobject(py)
            }
            Some(Content::Called(completion)) => {
                let is_value = completion.is_ok();
                let (Ok(value) | Err(value)) = completion;
                let owner = py.None().into_bound(py);
                (is_value, value::read(py, &value, &Owners::new(&owner))?).into_bound_py_any(py)
            }
            Some(Content::Fork(forked, host)) => {
                let handle = forked.map_err(refused)?;
                let copied = self.functions.as_ref().map(|functions| functions.get().copy(py));
                let functions = Py::new(py, copied.unwrap_or_default())?;
                Ok(Bound::new(py, PySession { handle, host, functions })?.into_any())
            }
        }
    }
}
