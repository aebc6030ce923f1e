//! A notebook: kernels that keep their state, and calls that take turns.
//!
//! In: options, then arguments of tool calls. Out: executions; what backends there are; the state of the kernels.

use std::{
    fmt, process,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use isolane::{Answer, Error};
use tokio::{sync::Mutex as TurnMutex, time::Instant};
use uuid::Uuid;

use crate::{
    Args, ExecuteOptions, Execution, Language, Misuse, NotebookOptions, Tool,
    host::{HostTools, desk::Functions},
    kernels::{Cause, Cell, End, Ended, js::JsKernel, py, py::PyKernel},
    record::usize_of,
    text::words,
};

/// Runs a model's cells, of Python and JavaScript, in kernels that keep their state.
///
/// Calls run one at a time, in their order; the cells of a call too. Kernels are started for their first cell. Dropping the
/// notebook ends its calls and its kernels.
///
/// ```
/// use isolane_notebook::{Args, Notebook, NotebookOptions};
/// use serde_json::json;
///
/// let notebook = Notebook::new(NotebookOptions::default())?;
/// let args = Args::from_json(&json!({ "cells": [{ "language": "js", "code": "const x = 6; x * 7" }] }))?;
/// let result = notebook.execute(args, Default::default())?.wait();
/// assert_eq!((result.text.as_str(), result.is_error), ("42", false));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Notebook(Arc<Inner>);

/// The state that the calls of a notebook share.
pub(crate) struct Inner {
    pub(crate) options: NotebookOptions,
    pub(crate) kernels: TurnMutex<Kernels>,
    pub(crate) functions: Arc<Functions>,
    process: u32,
    session_id: String,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    is_closed: bool,
    /// The calls that run or wait.
    calls: Vec<End>,
    /// The cell that runs.
    cell: Option<(Language, End)>,
    js: Option<Known>,
    py: Option<Known>,
}

/// The facts about a kernel that stay known while a call has it.
#[derive(Clone, Copy)]
struct Known {
    used: Instant,
    process_id: Option<u32>,
    restarts: u64,
}

/// The kernels of a notebook.
pub(crate) struct Kernels {
    js: Option<JsKernel>,
    /// `None` if it is switched off.
    pub(crate) py: Option<PyKernel>,
}

/// The backends of a notebook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Available {
    /// JavaScript.
    pub js: Backend,
    /// Python.
    pub py: Backend,
}

/// A backend.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Backend {
    /// Whether it can run cells.
    pub ok: bool,
    /// The version of the interpreter, or of this library for JavaScript.
    pub version: Option<String>,
    /// The path of the interpreter.
    pub path: Option<String>,
    /// Why it cannot run cells.
    pub reason: Option<String>,
}

/// The state of a notebook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stats {
    /// The kernels that are there.
    pub kernels: Vec<KernelStats>,
}

/// The state of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelStats {
    /// The session of the notebook.
    pub session_id: String,
    /// The language.
    pub language: Language,
    /// Whether a cell runs in it.
    pub busy: bool,
    /// Milliseconds since its last cell ended; 0 while it is busy.
    pub idle_ms: u64,
    /// The resident memory of its process, where the system tells it.
    pub rss_bytes: Option<u64>,
    /// How often it was replaced since the last reset.
    pub restarts: u64,
}

impl Notebook {
    /// Opens a notebook. Nothing is started before the first cell.
    ///
    /// # Errors
    /// Misuse of an option.
    pub fn new(options: NotebookOptions) -> Result<Self, Misuse> {
        options.check()?;
        let tools = HostTools::new(&options.tools)?;
        let functions = Arc::new(Functions::new(tools, options.llm.clone(), &options.limits));
        let python = options.py.clone().map(|python| {
            let live_bytes = usize_of(options.limits.live_bytes);
            PyKernel::new(python, options.env.clone(), functions.helpers(), live_bytes)
        });
        Ok(Self(Arc::new(Inner {
            kernels: TurnMutex::new(Kernels { js: None, py: python }),
            options,
            functions,
            process: process::id(),
            session_id: Uuid::new_v4().to_string(),
            state: Mutex::default(),
        })))
    }

    /// Runs the cells of a tool call when the calls before it are done. Returns at once.
    ///
    /// # Errors
    /// Misuse, of the arguments or of a notebook that is closed. After that everything that happens is a result.
    pub fn execute(&self, args: Args, options: ExecuteOptions) -> Result<Execution, Misuse> {
        self.begin(args, options, None)
    }

    /// As [`Notebook::execute`], for a call that a cause may have ended already: nothing of it runs then.
    pub(crate) fn begin(
        &self,
        args: Args,
        options: ExecuteOptions,
        cause: Option<Cause>,
    ) -> Result<Execution, Misuse> {
        self.0.check_open()?;
        args.check(&self.0.options.limits, |language| self.0.has(language))?;
        Ok(Execution::begin(Arc::clone(&self.0), args, options, cause))
    }

    /// The name, the description and the JSON Schema of the tool, for the model.
    #[must_use]
    pub fn tool(&self) -> Tool {
        let (has_py, has_js) = (self.0.has(Language::Py), self.0.has(Language::Js));
        Tool::new(has_py, has_js, &self.0.options.limits, &self.0.functions)
    }

    /// Which backends can run cells. Starts the interpreter of Python for a moment if no kernel runs.
    pub fn available(&self) -> Answer<Available> {
        let inner = Arc::clone(&self.0);
        isolane::spawn(async move { inner.available().await })
    }

    /// Ends the cell that runs in a kernel, and gives the next one an empty kernel.
    ///
    /// # Errors
    /// Misuse: a backend that is switched off, a notebook that is closed.
    pub fn reset(&self, language: Language) -> Result<Answer<()>, Misuse> {
        self.0.check_open()?;
        if !self.0.has(language) {
            let rest = format!(": the {} backend is switched off", language.title());
            return Err(Misuse::new("language", &rest));
        }
        let inner = Arc::clone(&self.0);
        if let Some((_, end)) =
            inner.state().cell.as_ref().filter(|(running, _)| *running == language)
        {
            end.end(Cause::Reset);
        }
        Ok(isolane::spawn(async move {
            let mut kernels = inner.kernels.lock().await;
            kernels.reset(language).await;
            inner.note(&kernels);
        }))
    }

    /// The kernels, and what they hold.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.0.stats()
    }

    /// Ends all calls and kernels. From now on calls are refused.
    pub fn close(&self) -> Answer<()> {
        self.0.close();
        let inner = Arc::clone(&self.0);
        isolane::spawn(async move {
            let mut kernels = inner.kernels.lock().await;
            kernels.close().await;
            inner.note(&kernels);
        })
    }
}

impl Drop for Notebook {
    fn drop(&mut self) {
        if self.0.process == process::id() {
            self.0.close();
            let inner = Arc::clone(&self.0);
            // Kernels end in their order, also if the caller is in the middle of something.
            drop(isolane::spawn(async move { inner.kernels.lock().await.close().await }));
        }
    }
}

impl fmt::Debug for Notebook {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Notebook").field("session_id", &self.0.session_id).finish_non_exhaustive()
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check_open(&self) -> Result<(), Misuse> {
        // In a forked child the lock may be held for ever, and there are no kernels.
        if self.process != process::id() || self.state().is_closed {
            return Err(Misuse::new("notebook", " is closed"));
        }
        Ok(())
    }

    fn has(&self, language: Language) -> bool {
        match language {
            Language::Js => self.options.js.is_some(),
            Language::Py => self.options.py.is_some(),
        }
    }

    /// A call begins.
    pub(crate) fn admit(&self) -> End {
        let end = End::new();
        let mut state = self.state();
        state.calls.push(end.clone());
        end
    }

    /// A call has ended.
    pub(crate) fn leave(&self, end: &End) {
        self.state().calls.retain(|known| !known.is(end));
    }

    /// A cell begins.
    pub(crate) fn begin_cell(&self, language: Language) -> End {
        let end = End::new();
        self.state().cell = Some((language, end.clone()));
        end
    }

    /// The cell has ended.
    pub(crate) fn end_cell(&self, kernels: &Kernels) {
        self.state().cell = None;
        self.note(kernels);
    }

    /// Notes the kernels that are there, for `stats`.
    pub(crate) fn note(&self, kernels: &Kernels) {
        let used = Instant::now();
        let js = kernels.js.as_ref().map(|_| Known { used, process_id: None, restarts: 0 });
        let py = kernels.py.as_ref().and_then(|python| {
            let process_id = python.process_id();
            process_id.is_some().then(|| Known { used, process_id, restarts: python.restarts() })
        });
        let mut state = self.state();
        (state.js, state.py) = (js, py);
    }

    fn close(&self) {
        let ends: Vec<End> = {
            let mut state = self.state();
            state.is_closed = true;
            state.calls.clone()
        };
        for end in ends {
            end.end(Cause::Closed);
        }
    }

    fn stats(&self) -> Stats {
        if self.process != process::id() {
            return Stats { kernels: Vec::new() };
        }
        let state = self.state();
        let known = [(Language::Js, state.js), (Language::Py, state.py)];
        let kernels = known.into_iter().filter_map(|(language, known)| {
            let known = known?;
            let busy = state.cell.as_ref().is_some_and(|(running, _)| *running == language);
            let idle = if busy { 0 } else { known.used.elapsed().as_millis() };
            Some(KernelStats {
                session_id: self.session_id.clone(),
                language,
                busy,
                idle_ms: u64::try_from(idle).unwrap_or(u64::MAX),
                rss_bytes: known.process_id.and_then(py::resident_bytes),
                restarts: known.restarts,
            })
        });
        Stats { kernels: kernels.collect() }
    }

    async fn available(&self) -> Available {
        let off =
            || Backend { reason: Some("it is switched off".to_owned()), ..Backend::default() };
        let js = match self.options.js {
            Some(_) => {
                let version = Some(env!("CARGO_PKG_VERSION").to_owned());
                Backend { ok: true, version, ..Backend::default() }
            }
            None => off(),
        };
        let Some(options) = &self.options.py else { return Available { js, py: off() } };
        let known = match self.kernels.try_lock() {
            Ok(kernels) => kernels.py.as_ref().and_then(PyKernel::interpreter),
            // A call has the kernels.
            Err(_) => None,
        };
        let found = match known {
            Some(found) => Ok(found),
            None => py::ask(options).await,
        };
        let py = match found {
            Ok(found) => Backend {
                ok: true,
                version: Some(found.version),
                path: Some(found.path),
                reason: None,
            },
            Err(reason) => Backend { reason: Some(reason), ..Backend::default() },
        };
        Available { js, py }
    }
}

impl Kernels {
    /// Opens the session of JavaScript, if there is none.
    pub(crate) fn open_js(
        &mut self,
        options: &NotebookOptions,
        functions: &Functions,
    ) -> Result<&mut JsKernel, Error> {
        let kernel = match self.js.take() {
            Some(kernel) => kernel,
            None => JsKernel::open(&options.js.clone().unwrap_or_default(), functions.helpers())?,
        };
        Ok(self.js.insert(kernel))
    }

    /// Runs a cell.
    pub(crate) async fn run(
        &mut self,
        inner: &Inner,
        language: Language,
        cell: &Cell<'_>,
    ) -> Ended {
        if let Some(cause) = cell.end.cause() {
            return Ended::before(cause);
        }
        let unavailable =
            |reason: &str| Ended::refused("Unavailable", words::unavailable(language, reason));
        match language {
            Language::Js => match self.open_js(&inner.options, &inner.functions) {
                Ok(kernel) => kernel.run(cell).await,
                Err(error) => unavailable(error.message()),
            },
            Language::Py => match &mut self.py {
                Some(kernel) => kernel.run(cell).await,
                None => unavailable("it is switched off"),
            },
        }
    }

    /// The next cell of that language finds an empty kernel.
    pub(crate) async fn reset(&mut self, language: Language) {
        match language {
            Language::Js => {
                if let Some(kernel) = self.js.take() {
                    kernel.close().await;
                }
            }
            Language::Py => {
                if let Some(kernel) = &mut self.py {
                    kernel.reset().await;
                }
            }
        }
    }

    async fn close(&mut self) {
        self.reset(Language::Js).await;
        if let Some(kernel) = &mut self.py {
            kernel.end().await;
        }
    }
}
