//! Executors and the loop.
//!
//! In: options, inputs and models of Python. Out: calls and runs that go on without Python, and their news. No thread of
//! the executors waits for the interpreter's lock: news are queued, and the thread or loop that made the call fetches
//! them. `call` is a call, `data` its input and result, `isolate` opens the sessions of isolates, `code_loop` is a run of
//! the loop, and `inbox` the queue.

mod call;
mod code_loop;
mod data;
mod inbox;
mod isolate;

use std::{
    path::PathBuf,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use isolane::Spelling;
use isolane_executors::{
    CodeExecutionInput, CodeExecutor, ConfinedCodeExecutor, ContainerCodeExecutor,
    ExecutorErrorKind, HostRuntime, InvocationContext, IsolateCodeExecutor, LocalCodeExecutor,
};
use pyo3::{exceptions::PyTypeError, prelude::*, types::PyDict};

use self::{
    call::Done,
    data::{Input, Options, Traits, input_of, json_options, misuse},
    isolate::PyIsolateHost,
};
pub(crate) use self::{
    call::PyExecutorCall,
    code_loop::{PyLoopRun, check_loop},
    isolate::{PyCellEnd, check_session},
};
use crate::{error::exception, host::PyMailbox, options::read_runtime_options, runtime::PyRuntime};

/// An executor of the library.
#[pyclass(name = "CodeExecutor", module = "isolane._isolane", frozen)]
pub(crate) struct PyCodeExecutor(Kind);

enum Kind {
    Local(LocalCodeExecutor),
    Container(Box<ContainerCodeExecutor>),
    Confined(ConfinedCodeExecutor),
    Isolate(IsolateCodeExecutor),
}

impl PyCodeExecutor {
    fn executor(&self) -> Arc<dyn CodeExecutor> {
        match &self.0 {
            Kind::Local(executor) => Arc::new(executor.clone()),
            Kind::Container(executor) => Arc::new((**executor).clone()),
            Kind::Confined(executor) => Arc::new(executor.clone()),
            Kind::Isolate(executor) => Arc::new(executor.clone()),
        }
    }

    /// The same, unless an option is not valid.
    fn checked(self) -> PyResult<Self> {
        // A call that is cancelled before it begins checks the options, and does nothing.
        let context = InvocationContext::default();
        context.cancellation.cancel();
        let executor = self.executor();
        let mut call = executor.execute_code(&context, CodeExecutionInput::default());
        match call.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Err(error)) if error.kind() == ExecutorErrorKind::BadInput => {
                Err(misuse(&error))
            }
            _ => Ok(self),
        }
    }
}

#[pymethods]
impl PyCodeExecutor {
    /// An executor of subprocesses. `options` has those that are given, by name.
    #[staticmethod]
    fn local(options: &Bound<'_, PyDict>) -> PyResult<Self> {
        let options = Options(options);
        let mut executor = LocalCodeExecutor::new();
        if let Some(interpreter) = options.text("interpreter")? {
            executor = executor.with_interpreter(interpreter);
        }
        if let Some(args) = options.texts("args")? {
            executor = executor.with_args(args);
        }
        executor = match options.time("timeout_ms", executor.timeout())? {
            None => executor.without_timeout(),
            Some(timeout) => executor.with_timeout(timeout),
        };
        if let Some(attempts) = options.count("retry_attempts", 0)? {
            executor = executor.with_retry_attempts(attempts_of(attempts));
        }
        for (name, value) in options.pairs("env")?.unwrap_or_default() {
            executor = executor.with_env(name, value);
        }
        if options.flag("inherit_env")? {
            executor = executor.with_inherited_env();
        }
        if let Some(bytes) = options.count("output_limit_bytes", 1)? {
            executor = executor.with_output_limit(bytes_of(bytes));
        }
        Self(Kind::Local(executor)).checked()
    }

    /// An executor of containers.
    #[staticmethod]
    fn container(options: &Bound<'_, PyDict>) -> PyResult<Self> {
        let options = Options(options);
        let mut executor = ContainerCodeExecutor::default();
        if let Some(image) = options.text("image")? {
            executor = ContainerCodeExecutor::new(image);
        }
        if let Some(argv) = options.texts("argv")? {
            executor.argv = argv;
        }
        executor.timeout = options.time("timeout_ms", executor.timeout)?;
        if let Some(attempts) = options.count("retry_attempts", 0)? {
            executor.retry_attempts = attempts_of(attempts);
        }
        if let Some(memory) = options.text("memory")? {
            executor.memory = memory;
        }
        if let Some(cpus) = options.text("cpus")? {
            executor.cpus = cpus;
        }
        if let Some(pids) = options.count("pids_limit", 1)? {
            executor.pids_limit = attempts_of(pids);
        }
        if let Some(user) = options.text("user")? {
            executor.user = user;
        }
        if options.flag("keep_capabilities")? {
            executor.drop_capabilities = false;
        }
        if let Some(args) = options.texts("extra_args")? {
            executor.extra_args = args;
        }
        executor.engine = options.text("engine")?;
        executor.output_files = options.flag("output_files")?;
        if let Some(bytes) = options.count("output_limit_bytes", 1)? {
            executor.output_limit_bytes = bytes_of(bytes);
        }
        Self(Kind::Container(Box::new(executor))).checked()
    }

    /// An executor of confined subprocesses. `worker` is the executable of the package.
    #[staticmethod]
    fn confined(worker: PathBuf, options: &Bound<'_, PyDict>) -> PyResult<Self> {
        let options = Options(options);
        let mut executor = ConfinedCodeExecutor::new().with_worker(worker);
        if let Some(interpreter) = options.text("interpreter")? {
            executor = executor.with_interpreter(interpreter);
        }
        if let Some(args) = options.texts("args")? {
            executor = executor.with_args(args);
        }
        executor = match options.time("timeout_ms", executor.timeout())? {
            None => executor.without_timeout(),
            Some(timeout) => executor.with_timeout(timeout),
        };
        if let Some(attempts) = options.count("retry_attempts", 0)? {
            executor = executor.with_retry_attempts(attempts_of(attempts));
        }
        if let Some(memory) = options.text("memory")? {
            executor = executor.with_memory(memory);
        }
        if let Some(pids) = options.count("pids_limit", 1)? {
            executor = executor.with_pids_limit(attempts_of(pids));
        }
        for (name, value) in options.pairs("env")?.unwrap_or_default() {
            executor = executor.with_env(name, value);
        }
        for path in options.paths("readable")?.unwrap_or_default() {
            executor = executor.with_readable(path);
        }
        if let Some(required) = options.texts("required")? {
            executor = executor.with_required(required);
        }
        if let Some(bytes) = options.count("output_limit_bytes", 1)? {
            executor = executor.with_output_limit(bytes_of(bytes));
        }
        Self(Kind::Confined(executor)).checked()
    }

    /// An executor of isolates. `opener` opens its sessions and starts their cells on the thread that calls `start`.
    /// `options` are JSON.
    #[staticmethod]
    fn isolate(
        py: Python<'_>,
        runtime: Option<&PyRuntime>,
        own: Option<&Bound<'_, PyDict>>,
        worker_folder: PathBuf,
        opener: Py<PyAny>,
        options: &str,
    ) -> PyResult<Self> {
        let options = json_options(options)?;
        let executor = IsolateCodeExecutor::new().json_options(&options, Spelling::Snake);
        let executor = executor.map_err(|error| exception(py, &error))?;
        let runtime = match (runtime, own) {
            (Some(given), _) => HostRuntime::Given(given.0.clone()),
            (None, None) => HostRuntime::Shared,
            (None, Some(own)) => HostRuntime::own(read_runtime_options(own, worker_folder)?)
                .map_err(|error| exception(py, &error))?,
        };
        let host = Arc::new(PyIsolateHost::new(opener, runtime));
        Ok(Self(Kind::Isolate(executor.with_host(host))))
    }

    /// Starts a call. Its news are notices of that number. `context` has its run, turn and attempt; `live` says which
    /// streams are wanted as they come.
    fn start(
        &self,
        mailbox: &PyMailbox,
        number: u64,
        context: (String, u32, u32),
        input: Input,
        live: (bool, bool),
    ) -> PyExecutorCall {
        let call = PyExecutorCall::new(mailbox, number);
        let context = call.context(context, live);
        let (executor, input) = (self.executor(), input_of(input));
        let mut done =
            Box::pin(async move { executor.execute_code(&context, input).await.map(Done::Result) });
        if matches!(self.0, Kind::Isolate(_)) {
            // Its first step opens the session and queues the cell, which takes Python's lock.
            let mut nobody = Context::from_waker(Waker::noop());
            if let Poll::Ready(ended) = done.as_mut().poll(&mut nobody) {
                call.end(ended);
                return call;
            }
        }
        call.spawn(done);
        call
    }

    /// The properties that the loop asks for.
    fn traits(&self) -> Traits {
        let executor = self.executor();
        let timeout = executor.timeout().map(|timeout: Duration| timeout.as_secs_f64() * 1e3);
        let attempts = executor.error_retry_attempts();
        let (is_stateful, keeps_time) = (executor.stateful(), executor.keeps_time());
        (is_stateful, attempts, timeout, keeps_time, executor.code_block_delimiters())
    }

    /// The arguments of the engine for a container of that name, with that working folder if it has one.
    fn build_run_args(&self, name: &str, folder: Option<PathBuf>) -> PyResult<Vec<String>> {
        match (&self.0, folder) {
            (Kind::Container(executor), None) => Ok(executor.build_run_args(name)),
            (Kind::Container(executor), Some(folder)) => {
                Ok(executor.build_run_args_staged(name, &folder))
            }
            _ => Err(wrong_kind()),
        }
    }

    /// Makes an executor of containers ready. The end is a notice of that number.
    fn prepare(&self, mailbox: &PyMailbox, number: u64) -> PyResult<PyExecutorCall> {
        let Kind::Container(executor) = &self.0 else { return Err(wrong_kind()) };
        let (call, executor) = (PyExecutorCall::new(mailbox, number), executor.clone());
        call.spawn(async move { executor.prepare().await.map(|()| Done::Nothing) });
        Ok(call)
    }

    /// Closes the sessions of an executor of isolates. The end is a notice of that number.
    fn close(&self, mailbox: &PyMailbox, number: u64) -> PyResult<PyExecutorCall> {
        let Kind::Isolate(executor) = &self.0 else { return Err(wrong_kind()) };
        let (call, executor) = (PyExecutorCall::new(mailbox, number), executor.clone());
        call.spawn(async move {
            executor.close().await;
            Ok(Done::Nothing)
        });
        Ok(call)
    }

    /// Asks for the confinement of programs. The answer is a notice of that number.
    fn confinement(&self, mailbox: &PyMailbox, number: u64) -> PyResult<PyExecutorCall> {
        let Kind::Confined(executor) = &self.0 else { return Err(wrong_kind()) };
        let (call, executor) = (PyExecutorCall::new(mailbox, number), executor.clone());
        call.spawn(async move { executor.confinement().await.map(Done::Confinement) });
        Ok(call)
    }
}

fn attempts_of(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn bytes_of(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

fn wrong_kind() -> PyErr {
    PyTypeError::new_err("this executor has no such method")
}
