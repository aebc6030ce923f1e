//! Operations of Python on a run. In a forked child they do nothing.

use std::sync::Arc;

use isolane::{Completion, HostCall, RunHandle, Value};
use pyo3::{
    PyTraverseError, PyVisit,
    exceptions::PyException,
    prelude::*,
    types::{PyBool, PyList, PyTuple},
};

use crate::{
    host::{PyMailbox, PythonHost},
    lock::Lock,
    message::Queue,
    outcome::Outcome,
    value::{self, Budget, Functions, Owners},
};

/// A run or a cell, for the thread that started it.
#[pyclass(name = "RunHandle", module = "isolane._isolane", frozen)]
pub(crate) struct PyRunHandle {
    handle: RunHandle,
    host: Arc<PythonHost>,
    functions: Py<Functions>,
    /// Reports that have arrived and are not read yet.
    reports: Lock<Queue>,
    /// The result, while it is read.
    outcome: Lock<Option<Outcome>>,
}

impl PyRunHandle {
    pub(crate) fn new(handle: RunHandle, host: Arc<PythonHost>, functions: Py<Functions>) -> Self {
        Self { handle, host, functions, reports: Lock::default(), outcome: Lock::default() }
    }

    /// The core's handle.
    pub(crate) fn handle(&self) -> &RunHandle {
        &self.handle
    }
}

#[pymethods]
impl PyRunHandle {
    /// Ends the run; the first reason wins.
    fn terminate(&self, reason: Option<&Bound<'_, PyAny>>) {
        let reason = reason.map(value::any_text);
        self.handle.terminate(reason.as_deref());
    }

    /// Has the system that amended the run announce its news to that mailbox, with events of that number.
    fn announce(&self, mailbox: &PyMailbox, number: u64) {
        if let Some(interception) = self.handle.interception() {
            interception.interceptor().announce_with(Arc::new(mailbox.notice(number)));
        }
    }

    /// Whether the run has not settled yet.
    fn running(&self) -> bool {
        self.handle.running()
    }

    /// Whether the run has settled because somebody or a limit ended it: no host function of it starts any more.
    fn was_ended(&self) -> bool {
        self.handle.was_ended()
    }

    /// The event loop of a call of a system has closed, or another loop takes its events.
    fn lose_host(&self, is_lost: bool) {
        self.handle.lose_host(is_lost);
    }

    /// Whether this process is a forked child, and the run is in its parent.
    fn forked(&self) -> bool {
        !self.handle.is_here()
    }

    /// Whether the sandbox has a host function or a promise of the host.
    fn calls_host(&self) -> bool {
        self.functions.get().reaches_host()
    }

    /// The host function with that number; `None` if the run has released it. The promise is that
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

    /// The reports from that index on, as many as can be read in one turn of a loop, and whether
    /// those are all.
    fn reports_since<'py>(
        &self,
        py: Python<'py>,
        index: usize,
        owner: &Bound<'py, PyAny>,
    ) -> PyResult<(Bound<'py, PyList>, bool)> {
        let (owners, mut budget) = (Owners::new(owner), Budget::of_a_turn());
        let list = PyList::empty(py);
        // The lock is not held during the reading, which may run code that calls this method.
        let mut queue = std::mem::take(&mut *self.reports.lock());
        loop {
            while let Some(report) = queue.next(&owners, &mut budget)? {
                list.append(report)?;
            }
            if !queue.is_empty() {
                *self.reports.lock() = queue;
                return Ok((list, false));
            }
            queue = Queue::new(self.handle.shared_reports_since(index + list.len()));
            if queue.is_empty() {
                return Ok((list, true));
            }
        }
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

    /// Sends the run's events to another mailbox, including those that have not been fetched.
    fn forward(&self, mailbox: &PyMailbox, number: u64) {
        mailbox.forward(&self.host, number, || !self.handle.running());
    }

    /// The outcome of the run, without the first `delivered` reports:
    /// `(status, result, reports, logs, error, duration_ms, memory_used_bytes, cell, extra)`. It can be taken
    /// once. False while reading it takes another turn of a loop.
    fn take_result<'py>(
        &self,
        py: Python<'py>,
        delivered: usize,
        owner: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let begun = self.outcome.lock().take();
        // The reports that are not read yet are read with the result.
        let mut unread = std::mem::take(&mut *self.reports.lock());
        let mut budget = Budget::of_a_turn();
        if !unread.discard(py, &mut budget) {
            *self.reports.lock() = unread;
            *self.outcome.lock() = begun;
            return Ok(PyBool::new(py, false).to_owned().into_any());
        }
        let begun = begun.or_else(|| {
            let result = self.handle.take_result()?;
            Some(Outcome::new(py, result, self.handle.take_extra(), delivered))
        });
        let Some(mut outcome) = begun else { return Ok(py.None().into_bound(py)) };
        if outcome.go_on(&Owners::new(owner), &mut budget)? {
            return Ok(outcome.finish(py)?.into_any());
        }
        *self.outcome.lock() = Some(outcome);
        Ok(PyBool::new(py, false).to_owned().into_any())
    }

    /// Releases the host functions.
    fn end(&self) {
        self.functions.get().clear();
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.functions)
    }
}

/// A call of the sandbox that waits for its answer.
#[pyclass(name = "HostCall", module = "isolane._isolane", frozen)]
pub(crate) struct PyHostCall(Lock<Option<HostCall>>);

impl PyHostCall {
    pub(crate) fn new(call: HostCall) -> Self {
        Self(Lock::new(Some(call)))
    }

    /// Answers the call. Returns the exception that the sandbox throws, if any.
    pub(crate) fn reply<'py>(
        &self,
        functions: &Functions,
        function: u32,
        ok: bool,
        value: &Bound<'py, PyAny>,
        owner: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let (completion, thrown) = completion(functions, Some(function), ok, value, owner);
        // In a child that a host function has forked, the core drops the answer.
        if let Some(call) = self.0.lock().take() {
            call.reply(completion);
        }
        thrown
    }
}

#[pymethods]
impl PyHostCall {
    /// The next report of the run that calls the sink; undefined if there is none.
    fn take_report<'py>(
        &self,
        py: Python<'py>,
        owner: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let report = self.0.lock().as_ref().and_then(HostCall::take_report);
        value::read(py, &report.unwrap_or_else(Value::undefined), &Owners::new(owner))
    }
}

/// The completion of a host function or promise, as a message; `function` is the function that returned it. If the value cannot be cloned, the message holds
/// the error that says so. Also returns the exception that the sandbox throws; an exception that must reach the
/// host's own thread, such as `KeyboardInterrupt`, is raised.
pub(crate) fn completion<'py>(
    functions: &Functions,
    function: Option<u32>,
    ok: bool,
    value: &Bound<'py, PyAny>,
    owner: &Bound<'py, PyAny>,
) -> (Completion, PyResult<Option<Bound<'py, PyAny>>>) {
    let py = value.py();
    let raised = if ok { None } else { Some(value.clone()) };
    let thrown = if ok { None } else { value::thrown_value(value) };
    let value = thrown.as_ref().unwrap_or(value);
    let written = if ok {
        value::write_answer(functions, value, owner, function)
    } else {
        value::write_thrown(functions, value, owner)
    };
    let failure = match written {
        Ok(message) => return (if ok { Ok(message) } else { Err(message) }, Ok(raised)),
        Err(failure) => failure,
    };
    let thrown = value::write_thrown(functions, failure.value(py), owner);
    let thrown = thrown.unwrap_or_else(|_| value::unreadable());
    let raised = if failure.is_instance_of::<PyException>(py) {
        Ok(Some(failure.into_value(py).into_bound(py).into_any()))
    } else {
        Err(failure)
    };
    (Err(thrown), raised)
}
