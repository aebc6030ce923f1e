//! A notebook: kernels that keep their state, and calls that take turns.
//!
//! In: options, then arguments of tool calls. Out: executions; what backends there are; the state of the kernels; children,
//! which share the kernels.

use std::{
    fmt, process,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use isolane::Answer;
use isolane_confine::program::ProgramConfinement;
use isolane_kit::Kit;
use tokio::sync::Mutex as TurnMutex;
use tokio_util::sync::CancellationToken;

use crate::{
    Agent, Args, ChildOptions, ExecuteOptions, Execution, Language, Limits, Llm, Misuse,
    NotebookOptions, PyOptions, Registry, Tool,
    artifacts::Artifacts,
    call::Announce,
    files::Files,
    host::{
        HostTools,
        desk::{Functions, Nesting},
    },
    kernels::{Cause, End, py, py::PyKernel, session::Kernels},
};

/// Runs a model's cells, of Python and JavaScript, in kernels that keep their state.
///
/// Calls run one at a time, in their order; the cells of a call too. Kernels are started for their first cell. Dropping the
/// notebook ends its calls, its children and its kernels. Dropping a child ends its calls and its own children.
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
    pub(crate) limits: Limits,
    pub(crate) functions: Arc<Functions>,
    pub(crate) kernels: Arc<Kernels>,
    /// Locked while a call runs.
    pub(crate) turn: TurnMutex<()>,
    /// The options of Python, to look for its interpreter.
    py: Option<PyOptions>,
    process: u32,
    kind: Kind,
    state: Mutex<State>,
}

/// The place of a notebook among those with its kernels.
enum Kind {
    /// It has a session of that registry, whose kernels end with its last notebook.
    Own(Registry),
    /// A caller made it of another one.
    Child,
    /// The notebook of an agent: its calls, and those of its children, end with the token.
    OfAgent(CancellationToken),
}

#[derive(Default)]
struct State {
    is_closed: bool,
    /// Whether the kernels end with it, once it is closed.
    is_last: bool,
    /// The calls that run or wait.
    calls: Vec<End>,
    children: Vec<Weak<Inner>>,
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
    /// The confinement of kernels of Python: known from the first kernel on, or from the first time that somebody asked
    /// what backends there are. `None` too for kernels with the rights of this process.
    pub confinement: Option<ProgramConfinement>,
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
        let tools = Arc::new(HostTools::new(&options.tools)?);
        let artifacts = options.artifacts.as_ref().map(Artifacts::open).transpose()?.map(Arc::new);
        let registry = options.registry.clone().unwrap_or_else(Registry::shared);
        let session = registry.join(&options)?;
        let (kernels, files) = (Arc::clone(&session.kernels), session.files.clone());
        let py = session.py.clone();
        let NotebookOptions { llm, agent, limits, .. } = options;
        let (depth, kind) = (0, Kind::Own(registry));
        let parts = Parts { tools, llm, agent, limits, py, kernels, files, artifacts, depth, kind };
        Ok(Self(parts.inner()))
    }

    /// A notebook for a subagent: it has the same kernels, and so the same state, and takes turns of its own. Its cells run
    /// while a cell of this notebook waits for the host. It ends with this notebook.
    ///
    /// # Errors
    /// Misuse of an option; a notebook that is closed.
    pub fn child(&self, options: ChildOptions) -> Result<Self, Misuse> {
        self.0.check_open()?;
        let tools = options.tools.map(|tools| HostTools::new(&tools)).transpose()?;
        let parent = &self.0;
        let depth = parent.functions.depth();
        let (kind, depth) = match &parent.kind {
            // A child for the same agent.
            Kind::OfAgent(token) => (Kind::OfAgent(token.clone()), depth),
            Kind::Own(_) | Kind::Child => (Kind::Child, depth + 1),
        };
        let mut parts = parent.parts(kind, depth);
        if let Some(tools) = tools {
            parts.tools = Arc::new(tools);
        }
        parts.llm = options.llm.or(parts.llm);
        parts.agent = options.agent.or(parts.agent);
        parts.limits = options.limits.unwrap_or(parts.limits);
        if let Some(artifacts) = &options.artifacts {
            parts.artifacts = Some(Arc::new(Artifacts::open(artifacts)?));
        }
        let child = Self(parts.inner());
        parent.adopt(&child)?;
        Ok(child)
    }

    /// # Errors
    /// Misuse: it is closed.
    pub(crate) fn check_open(&self) -> Result<(), Misuse> {
        self.0.check_open()
    }

    /// The name of its session, which its children have too.
    #[must_use]
    pub fn session_id(&self) -> &str {
        self.0.kernels.session_id()
    }

    /// Its limits.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.0.limits
    }

    /// Runs the cells of a tool call when the calls before it are done. Returns at once.
    ///
    /// # Errors
    /// Misuse, of the arguments or of a notebook that is closed. After that everything that happens is a result.
    pub fn execute(&self, args: Args, options: ExecuteOptions) -> Result<Execution, Misuse> {
        self.begin(args, options, (None, None))
    }

    /// The kit of its JavaScript cells.
    pub(crate) fn kit(&self) -> Option<&Kit> {
        self.0.kernels.js()?.kit.as_ref()
    }

    /// As [`Notebook::execute`], for a call that a cause may have ended already, of which nothing runs then, and whose caller
    /// may have the page of a kit.
    pub(crate) fn begin(
        &self,
        args: Args,
        options: ExecuteOptions,
        rest: (Option<Cause>, Option<Announce>),
    ) -> Result<Execution, Misuse> {
        self.0.check_open()?;
        args.check(&self.0.limits, |language| self.0.kernels.has(language))?;
        Ok(Execution::begin(Arc::clone(&self.0), args, options, rest))
    }

    /// The name, the description and the JSON Schema of the tool, for the model.
    #[must_use]
    pub fn tool(&self) -> Tool {
        let Inner { py, kernels, limits, functions, .. } = &*self.0;
        let py = py.as_ref().filter(|_| kernels.has(Language::Py));
        Tool::new(py, kernels.js(), limits, functions)
    }

    /// Which backends can run cells. Starts the interpreter of Python for a moment, and tries the confinement, if no kernel
    /// runs.
    pub fn available(&self) -> Answer<Available> {
        let inner = Arc::clone(&self.0);
        isolane::spawn(async move { inner.available().await })
    }

    /// Ends the cells that run in a kernel, those of children too, and gives the next one an empty kernel.
    ///
    /// # Errors
    /// Misuse: a backend that is switched off, a notebook that is closed.
    pub fn reset(&self, language: Language) -> Result<Answer<()>, Misuse> {
        self.0.check_open()?;
        let kernels = &self.0.kernels;
        if !kernels.has(language) {
            let rest = format!(": the {} backend is switched off", language.title());
            return Err(Misuse::new("language", &rest));
        }
        let (kernels, reset) = (Arc::clone(kernels), kernels.reset(language));
        Ok(isolane::spawn(async move { kernels.finish(language, reset).await }))
    }

    /// The kernels, and what they hold.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let is_here = self.0.process == process::id();
        let kernels = if is_here { self.0.kernels.stats() } else { Vec::new() };
        let python = self.0.kernels.py().filter(|_| is_here);
        Stats { confinement: python.and_then(PyKernel::confinement), kernels }
    }

    /// Ends all calls, children and kernels; of a child its calls and its own children. From now on calls are refused.
    pub fn close(&self) -> Answer<()> {
        self.0.close();
        let inner = Arc::clone(&self.0);
        isolane::spawn(async move { inner.rest().await })
    }
}

impl Drop for Notebook {
    fn drop(&mut self) {
        if self.0.process == process::id() {
            self.0.close();
            let inner = Arc::clone(&self.0);
            // Kernels end in their order, also if the caller is in the middle of something.
            drop(isolane::spawn(async move { inner.rest().await }));
        }
    }
}

impl fmt::Debug for Notebook {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Notebook").field("session_id", &self.session_id()).finish_non_exhaustive()
    }
}

/// The parts that a notebook is made of.
struct Parts {
    tools: Arc<HostTools>,
    llm: Option<Llm>,
    agent: Option<Agent>,
    limits: Limits,
    py: Option<PyOptions>,
    kernels: Arc<Kernels>,
    files: Option<Arc<Files>>,
    artifacts: Option<Arc<Artifacts>>,
    depth: u64,
    kind: Kind,
}

impl Parts {
    fn inner(self) -> Arc<Inner> {
        let Self { tools, llm, agent, limits, py, kernels, files, artifacts, depth, kind } = self;
        Arc::new_cyclic(|me: &Weak<Inner>| {
            let me = Weak::clone(me);
            let subagent = Box::new(move |token| me.upgrade()?.subagent(token));
            let nesting = Nesting { depth, subagent };
            let functions = Functions::new(tools, (llm, agent), &limits, nesting);
            let functions = Arc::new(functions.with(files, artifacts));
            let (turn, state) = (TurnMutex::default(), Mutex::default());
            Inner { limits, functions, kernels, turn, py, process: process::id(), kind, state }
        })
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check_open(&self) -> Result<(), Misuse> {
        // In a forked child the lock may be held for ever, and there are no kernels.
        if self.process != process::id() || self.state().is_closed {
            return Err(closed());
        }
        Ok(())
    }

    /// The parts of a notebook with its kernels and functions.
    fn parts(&self, kind: Kind, depth: u64) -> Parts {
        let Functions { tools, llm, agent, .. } = &*self.functions;
        Parts {
            tools: Arc::clone(tools),
            llm: llm.clone(),
            agent: agent.clone(),
            limits: self.limits.clone(),
            py: self.py.clone(),
            kernels: Arc::clone(&self.kernels),
            files: self.functions.files.clone(),
            artifacts: self.functions.artifacts.clone(),
            depth,
            kind,
        }
    }

    /// The notebook of an agent that a cell calls; `None` if this one is closed.
    fn subagent(&self, token: CancellationToken) -> Option<Notebook> {
        let parts = self.parts(Kind::OfAgent(token), self.functions.depth() + 1);
        let child = Notebook(parts.inner());
        self.adopt(&child).ok()?;
        Some(child)
    }

    /// A child ends with this notebook.
    fn adopt(&self, child: &Notebook) -> Result<(), Misuse> {
        let mut state = self.state();
        if state.is_closed {
            return Err(closed());
        }
        state.children.retain(|child| child.strong_count() > 0);
        state.children.push(Arc::downgrade(&child.0));
        Ok(())
    }

    /// A call begins.
    pub(crate) fn admit(&self) -> End {
        let end = End::new();
        let mut state = self.state();
        state.calls.push(end.clone());
        if state.is_closed {
            end.end(Cause::Closed);
        }
        end
    }

    /// A call has ended.
    pub(crate) fn leave(&self, end: &End) {
        self.state().calls.retain(|known| !known.is(end));
    }

    /// Waits until the cell ends whose agent has this notebook.
    pub(crate) async fn agent_ended(&self) {
        match &self.kind {
            Kind::OfAgent(token) => token.cancelled().await,
            Kind::Own(_) | Kind::Child => std::future::pending().await,
        }
    }

    /// Whether the cell has ended whose agent has this notebook.
    pub(crate) fn has_agent_ended(&self) -> bool {
        matches!(&self.kind, Kind::OfAgent(token) if token.is_cancelled())
    }

    /// Ends the calls, and those of children.
    fn close(&self) {
        let (ends, children) = {
            let mut state = self.state();
            if !std::mem::replace(&mut state.is_closed, true)
                && let Kind::Own(registry) = &self.kind
            {
                state.is_last = registry.leave(self.kernels.session_id());
            }
            (state.calls.clone(), std::mem::take(&mut state.children))
        };
        for end in ends {
            end.end(Cause::Closed);
        }
        for child in children.iter().filter_map(Weak::upgrade) {
            child.close();
        }
    }

    /// Waits until the calls have ended, and ends kernels that are its own.
    async fn rest(&self) {
        if self.state().is_last {
            self.kernels.close().await;
        } else {
            drop(self.turn.lock().await);
        }
    }

    async fn available(&self) -> Available {
        let off =
            || Backend { reason: Some("it is switched off".to_owned()), ..Backend::default() };
        let js = if self.kernels.has(Language::Js) {
            let version = Some(env!("CARGO_PKG_VERSION").to_owned());
            Backend { ok: true, version, ..Backend::default() }
        } else {
            off()
        };
        let Some(options) = &self.py else { return Available { js, py: off() } };
        let found = match self.kernels.py().and_then(PyKernel::interpreter) {
            Some(found) => Ok(found),
            None => {
                let (found, confinement) = py::ask(options).await;
                if let Some(python) = self.kernels.py() {
                    python.note(confinement);
                }
                found
            }
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

fn closed() -> Misuse {
    Misuse::new("notebook", " is closed")
}
