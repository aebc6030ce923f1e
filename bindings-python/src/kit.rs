//! Kits: their options, their runs, and the host's own use of them.
//!
//! In: Python objects. Out: kits; runs and sessions of them, which are as any others; answers that arrive later. The kit
//! reads all options itself.

use std::sync::Arc;

use isolane::{Error, NativeRun, RunHandle, Spelling, Value, value::Writer};
use isolane_kit::browser::{Answer, Browser, Command, DrivenBrowser, Failure, Task};
use isolane_kit::kit::{CallError, CallRecord, Kit, KitOptions, KitOutcome, KitRun, KitSecrets};
use pyo3::{
    exceptions::{PyRuntimeError, PyTypeError},
    prelude::*,
    types::{PyDict, PyTuple},
};

use crate::{
    error::exception,
    execution::PyRunHandle,
    host::{PyMailbox, silent_host},
    options::{self, session::read_session},
    runtime::PyRuntime,
    session::{Content, PyAnswer, PySession},
    value::{self, Functions},
};

/// A kit.
#[pyclass(name = "Kit", module = "isolane._isolane", frozen)]
pub(crate) struct PyKit {
    kit: Kit,
    /// The page that Python drives.
    page: Option<Arc<DrivenBrowser>>,
}

#[pymethods]
impl PyKit {
    /// Opens a kit on that runtime, or the default one. `options` has those that are given by name, without `runtime`.
    /// `has_page`: Python drives a page. The caller of a run is told of its tasks, as `announce` has it.
    #[new]
    fn new(
        py: Python<'_>,
        runtime: Option<&PyRuntime>,
        options: &Bound<'_, PyDict>,
        has_page: bool,
    ) -> PyResult<Self> {
        let message = plain(options.as_any(), "options")?;
        let page = has_page.then(driven);
        let browser = page.clone().map(|page| page as Arc<dyn Browser>);
        let opened = KitOptions::read(&message, browser, Spelling::Snake).and_then(|options| {
            let runtime = runtime.map(|runtime| runtime.0.clone());
            Kit::new(KitOptions { runtime, ..options })
        });
        opened.map(|kit| Self { kit, page }).map_err(|error| exception(py, &error))
    }

    /// Starts a tool or a module with the capabilities of the kit, as `start` does.
    fn start(
        &self,
        py: Python<'_>,
        mailbox: &PyMailbox,
        number: u64,
        owner: &Bound<'_, PyAny>,
        arguments: &Bound<'_, PyDict>,
        is_tool: bool,
    ) -> PyResult<PyRunHandle> {
        let functions = Py::new(py, Functions::default())?;
        let request = options::read_request(arguments, functions.get(), owner)?;
        let host = Arc::new(mailbox.host(number));
        let start = || {
            let amended = if is_tool { self.kit.tool(request) } else { self.kit.code(request) };
            self.kit.runtime().start(amended?.0, host.clone())
        };
        let handle = start().map_err(|error| self.refusal(py, &error))?;
        mailbox.listen(&handle);
        Ok(PyRunHandle::new(handle, host, functions))
    }

    /// Opens a session with the capabilities of the kit, as `open_session` does.
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
            let request = self.kit.session_request(request)?;
            self.kit.runtime().open_session(request, host.clone())
        };
        let handle = open().map_err(|error| self.refusal(py, &error))?;
        Ok(PySession::new(handle, host, functions))
    }

    /// Calls a function of the host's side, such as `state.get`. An event with that number says that the answer is there.
    fn call(
        &self,
        mailbox: &PyMailbox,
        number: u64,
        name: &str,
        args: &Bound<'_, PyTuple>,
    ) -> PyResult<PyAnswer> {
        let args = plain(args.as_any(), "args")?;
        let (answer, arrived) = PyAnswer::new(None, mailbox, number);
        let done = move |done| arrived(Content::Called(done));
        // Nothing else can be wrong here: the kit is closed, or has not been given that.
        let call = self.kit.call(name, args, done).map_err(unavailable)?;
        Ok(answer.for_call(call))
    }

    /// Describes all that code sees of the kit.
    fn describe(&self, mailbox: &PyMailbox, number: u64) -> PyResult<PyAnswer> {
        if self.kit.is_closed() {
            return Err(PyRuntimeError::new_err("the kit is closed"));
        }
        let (answer, arrived) = PyAnswer::new(None, mailbox, number);
        let kit = self.kit.clone();
        drop(isolane::spawn(async move {
            arrived(Content::Called(kit.describe().await.map(|text| {
                let mut message = Writer::new();
                message.string(&text);
                message.finish()
            })));
        }));
        Ok(answer)
    }

    /// The key by which another system finds the kit.
    fn key(&self) -> PyResult<String> {
        if self.page.is_some() {
            // Its tasks are announced to the callers of runs of the kit.
            return Err(PyTypeError::new_err("js.kit has a page that Python drives"));
        }
        Ok(self.kit.key())
    }

    /// Refuses new runs, and ends the live ones.
    fn close(&self) {
        self.kit.close();
    }

    fn set_secret(&self, py: Python<'_>, name: &str, secret: &Bound<'_, PyAny>) -> PyResult<()> {
        let secret = plain(secret, "secret")?;
        self.secrets()?;
        self.kit.set_secret(name, &secret).map_err(|error| exception(py, &error))
    }

    /// Whether there was one.
    fn delete_secret(&self, name: &str) -> PyResult<bool> {
        Ok(self.secrets()?.delete(name))
    }

    fn secret_names(&self) -> PyResult<Vec<String>> {
        Ok(self.secrets()?.names())
    }

    /// The next task of the page, if there is one: its number, kind, time in milliseconds, and what its kind has.
    fn next_page_task<'py>(&self, py: Python<'py>) -> PyResult<Option<PageTask<'py>>> {
        let Some(task) = self.page.as_ref().and_then(|page| page.take()) else { return Ok(None) };
        let Task { number, command, timeout } = task;
        let (kind, fields) = fields(py, command)?;
        // Playwright takes 0 for no limit.
        Ok(Some((number, kind, (timeout.as_secs_f64() * 1e3).max(1.0), fields)))
    }

    /// Answers a task of the page. `text` is a text that was asked for, the URL where the page has arrived, or the message
    /// of a failure.
    #[pyo3(signature = (number, kind, text = "", title = "", status = 0, data = None))]
    fn answer_page_task(
        &self,
        number: u32,
        kind: &str,
        text: &str,
        title: &str,
        status: u16,
        data: Option<&[u8]>,
    ) {
        let answer = match kind {
            "nothing" => Ok(Answer::Nothing),
            "arrived" => {
                Ok(Answer::Arrived { url: text.to_owned(), title: title.to_owned(), status })
            }
            "text" => Ok(Answer::Text(text.to_owned())),
            "too_large" => Ok(Answer::TooLarge),
            "bytes" => Ok(Answer::Bytes(data.unwrap_or_default().to_vec())),
            "timeout" => Err(Failure::Timeout),
            _ => Err(Failure::Other(text.to_owned())),
        };
        if let Some(page) = &self.page {
            page.answer(number, answer);
        }
    }
}

/// A task of a page: its number, kind, time in milliseconds, and what its kind has.
type PageTask<'py> = (u32, &'static str, f64, Bound<'py, PyDict>);

/// A page whose tasks are announced to the callers of the runs.
fn driven() -> Arc<DrivenBrowser> {
    let announce = |run: &NativeRun| {
        if let Some(run) = run.interception().and_then(KitRun::of) {
            run.announce();
        }
    };
    Arc::new(DrivenBrowser::new(announce))
}

/// Has tasks of a run for a page announced to that mailbox, with events of that number.
pub(crate) fn announce(run: &RunHandle, mailbox: &PyMailbox, number: u64) {
    if let Some(run) = run.interception().as_ref().and_then(KitRun::of) {
        run.announce_with(mailbox.notice(number));
    }
}

/// The kind of a command, and what belongs to it.
fn fields(py: Python<'_>, command: Command) -> PyResult<(&'static str, Bound<'_, PyDict>)> {
    let fields = PyDict::new(py);
    let kind = match command {
        Command::Navigate { url, wait_until } => {
            fields.set_item("url", url)?;
            fields.set_item("wait_until", wait_until.name())?;
            "navigate"
        }
        Command::Screenshot { selector, full_page } => {
            fields.set_item("selector", selector)?;
            fields.set_item("full_page", full_page)?;
            "screenshot"
        }
        Command::Click { selector } => {
            fields.set_item("selector", selector)?;
            "click"
        }
        Command::Type { selector, text, clear_first } => {
            fields.set_item("selector", selector)?;
            fields.set_item("text", text)?;
            fields.set_item("clear_first", clear_first)?;
            "type"
        }
        Command::Read { selector, property, most_units } => {
            fields.set_item("selector", selector)?;
            fields.set_item("property", property.name())?;
            fields.set_item("most_units", most_units)?;
            "read"
        }
        Command::Evaluate { expression } => {
            fields.set_item("expression", expression)?;
            "evaluate"
        }
        Command::Close => "close",
    };
    Ok((kind, fields))
}

impl PyKit {
    fn secrets(&self) -> PyResult<KitSecrets> {
        self.kit.secrets().map_err(unavailable)
    }

    /// The exception for a refused start.
    fn refusal(&self, py: Python<'_>, error: &Error) -> PyErr {
        if self.kit.is_closed() { unavailable(error.clone()) } else { exception(py, error) }
    }
}

/// The exception for the use of something that a kit does not have, or does not have any more.
#[expect(clippy::needless_pass_by_value, reason = "as a function of errors")]
fn unavailable(error: Error) -> PyErr {
    PyRuntimeError::new_err(error.message().to_owned())
}

/// A message of plain values.
fn plain(value: &Bound<'_, PyAny>, root: &str) -> PyResult<Value> {
    // Nothing calls the functions among them: in JSON form a function is nothing.
    value::write(&Functions::default(), value, &value.py().None().into_bound(value.py()), root)
}

/// The fields of a call: its name, start, duration, success, bytes, summary and error.
type Call = (&'static str, f64, f64, bool, u64, String, Option<String>);

/// The kit's part of the outcome of a run that a kit intercepts: the JSON text, the calls, and those dropped.
pub(crate) type KitFields = (Option<String>, Vec<Call>, u64);

pub(crate) fn kit_fields(run: &RunHandle) -> Option<KitFields> {
    let KitOutcome { json, calls, calls_dropped } = KitRun::of(&run.interception()?)?.outcome();
    let call = |CallRecord { name, started, duration_ms, ok, bytes, summary, error }| {
        (name, started, duration_ms, ok, bytes, summary, error)
    };
    Some((json, calls.into_iter().map(call).collect(), calls_dropped))
}

/// The fields of the error of a call by the host.
pub(crate) type ErrorFields =
    (String, String, Option<String>, Option<String>, Option<u32>, Option<u32>);

pub(crate) fn error_fields(error: CallError) -> ErrorFields {
    let CallError { name, message, code, filename, line, column } = error;
    (name, message, code, filename, line, column)
}
