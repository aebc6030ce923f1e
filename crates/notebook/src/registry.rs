//! The sessions that notebooks share by their names, and how long their kernels last.
//!
//! In: notebooks that open, join and leave a session, and kernels that were started. Out: the kernels of a session, until
//! its last notebook closes. A kernel without a cell ends after a time; of too many kernels of Python the one that was used
//! least recently ends, never one with a cell; and beyond another number no further one is started. One task looks at kernels
//! from time to time, while there are any.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    process,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use isolane::Spelling;
use serde_json::Value as Json;
use uuid::Uuid;

use crate::{
    FilesOptions, Isolation, JsOptions, Misuse, NotebookOptions, PyOptions,
    files::Files,
    given::{Group, MOST},
    kernels::{py, session::Kernels},
    record::usize_of,
    text::words,
};

/// The options of a [`Registry`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegistryOptions {
    /// The most kernels of Python, 4. Beyond them the one that was used least recently ends, if no cell runs in it.
    pub max_kernels: u64,
    /// The most kernels of Python that run at once, 16: those with cells count too. Beyond them a cell fails.
    pub max_running_kernels: u64,
    /// The time without a cell after which a kernel of Python ends, 300,000 ms. 0: never.
    pub idle_timeout_ms: u64,
    /// The time between two looks at kernels, 30,000 ms.
    pub sweep_ms: u64,
    /// The time between two heartbeats of a kernel of Python, 5,000 ms: one without a cell that misses two is dead. Its
    /// memory is looked at in the same time.
    pub heartbeat_ms: u64,
}

impl Default for RegistryOptions {
    fn default() -> Self {
        Self {
            max_kernels: 4,
            max_running_kernels: 16,
            idle_timeout_ms: 300_000,
            sweep_ms: 30_000,
            heartbeat_ms: 5000,
        }
    }
}

impl RegistryOptions {
    /// Reads options that are JSON, with the keys of a language.
    ///
    /// # Errors
    /// Misuse: an unknown key, a value of the wrong type, a number out of range.
    pub fn from_json(given: &Json, spelling: Spelling) -> Result<Self, Misuse> {
        let keys =
            ["max_kernels", "max_running_kernels", "idle_timeout_ms", "sweep_ms", "heartbeat_ms"];
        let group = Group::new("", given, &keys, spelling)?;
        let default = Self::default();
        let count = |key, least, default| Ok(group.count(key, least, MOST)?.unwrap_or(default));
        Ok(Self {
            max_kernels: count("max_kernels", 1, default.max_kernels)?,
            idle_timeout_ms: count("idle_timeout_ms", 0, default.idle_timeout_ms)?,
            max_running_kernels: count("max_running_kernels", 1, default.max_running_kernels)?,
            sweep_ms: count("sweep_ms", 1, default.sweep_ms)?,
            heartbeat_ms: count("heartbeat_ms", 1, default.heartbeat_ms)?,
        })
    }
}

/// The sessions of notebooks by their names, and the bounds of their kernels. Notebooks of one registry that name the same
/// session share its kernels. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Registry(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    options: RegistryOptions,
    process: u32,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    sessions: BTreeMap<String, Shared>,
    /// Those that have started a kernel, or are about to.
    kernels: Vec<Weak<Kernels>>,
    /// Those in which cells of Python run, or a process starts, once for each.
    admitted: Vec<Weak<Kernels>>,
    /// Whether a task looks at kernels.
    is_sweeping: bool,
}

#[derive(Debug)]
struct Shared {
    session: Arc<Session>,
    /// The notebooks that are open, without children.
    notebooks: usize,
}

/// A session: what all of its notebooks have.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) kernels: Arc<Kernels>,
    pub(crate) files: Option<Arc<Files>>,
    /// As they are for kernels.
    pub(crate) py: Option<PyOptions>,
    /// As the notebook was given them that opened it.
    given: Given,
}

/// The options that belong to a session.
#[derive(Debug)]
struct Given {
    js: Option<JsOptions>,
    py: Option<PyOptions>,
    files: Option<FilesOptions>,
    env: BTreeMap<String, String>,
}

/// The registry of this process.
static SHARED: Mutex<Option<Registry>> = Mutex::new(None);

impl Registry {
    /// A registry without sessions.
    #[must_use]
    pub fn new(options: RegistryOptions) -> Self {
        let (process, state) = (process::id(), Mutex::default());
        Self(Arc::new(Inner { options, process, state }))
    }

    /// The one of notebooks that name none.
    #[must_use]
    pub fn shared() -> Self {
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        // A forked child has one of its own.
        let known = shared.take().filter(Self::is_here);
        shared.insert(known.unwrap_or_else(|| Self::new(RegistryOptions::default()))).clone()
    }

    fn is_here(&self) -> bool {
        self.0.process == process::id()
    }

    /// The session that a notebook names, or a new one.
    ///
    /// # Errors
    /// Misuse of an option: the session has other ones, or they cannot be used.
    pub(crate) fn join(&self, options: &NotebookOptions) -> Result<Arc<Session>, Misuse> {
        if !self.is_here() {
            return Err(Misuse::new("registry", " belongs to the process that has made it"));
        }
        let mut state = self.0.state();
        if let Some(id) = &options.session_id
            && let Some(shared) = state.sessions.get_mut(id)
        {
            shared.session.given.check_join(id, options)?;
            shared.notebooks += 1;
            return Ok(Arc::clone(&shared.session));
        }
        let id = options.session_id.clone().unwrap_or_else(|| Uuid::new_v4().to_string());
        let session = Arc::new(Session::open(options, id.clone(), &self.0)?);
        let shared = Shared { session: Arc::clone(&session), notebooks: 1 };
        state.sessions.insert(id, shared);
        Ok(session)
    }

    /// A notebook leaves its session. Gives whether it was the last one, with which the kernels end.
    pub(crate) fn leave(&self, id: &str) -> bool {
        let mut state = self.0.state();
        let Some(shared) = state.sessions.get_mut(id) else { return true };
        shared.notebooks -= 1;
        let is_last = shared.notebooks == 0;
        if is_last {
            state.sessions.remove(id);
        }
        is_last
    }
}

/// The way from kernels to their registry, which may be gone before them.
#[derive(Clone, Debug)]
pub(crate) struct Place(Weak<Inner>);

impl Place {
    /// A cell of Python is about to need a process. Ends processes without a cell, if too many run.
    ///
    /// # Errors
    /// As many run as may, each with a cell.
    pub(crate) async fn admit(&self, kernels: &Arc<Kernels>) -> Result<Admission, String> {
        let Some(inner) = self.0.upgrade() else { return Ok(Admission(None)) };
        if let Some(admission) = inner.admit(kernels) {
            return Ok(admission);
        }
        for other in inner.oldest_of_python() {
            other.end_python(Duration::ZERO, words::EVICTED.to_owned()).await;
            if let Some(admission) = inner.admit(kernels) {
                return Ok(admission);
            }
        }
        Err(words::too_many_run(inner.options.max_running_kernels))
    }

    /// A cell is about to run in a kernel that was started: ends others, if there are too many.
    pub(crate) async fn started(&self, kernels: &Arc<Kernels>) {
        let Some(inner) = self.0.upgrade() else { return };
        {
            let mut state = inner.state();
            state.add(kernels);
            if !state.is_sweeping {
                state.is_sweeping = true;
                drop(isolane::spawn(sweep(Weak::clone(&self.0), inner.options.clone())));
            }
        }
        inner.make_room().await;
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn known(&self) -> Vec<Arc<Kernels>> {
        self.state().kernels.iter().filter_map(Weak::upgrade).collect()
    }

    /// The kernels with a process of Python, the one that was used least recently first.
    fn oldest_of_python(&self) -> Vec<Arc<Kernels>> {
        let mut known = self.known();
        known.retain(|kernels| kernels.has_python());
        known.sort_by_key(|kernels| kernels.python_used());
        known
    }

    /// Lets these kernels have a process of Python, if they have one or fewer others than may run do.
    fn admit(self: &Arc<Self>, kernels: &Arc<Kernels>) -> Option<Admission> {
        let mut state = self.state();
        state.add(kernels);
        let known = Arc::downgrade(kernels);
        let runs = |other: &&Weak<Kernels>| {
            let has_python = || other.upgrade().is_some_and(|other| other.has_python());
            !other.ptr_eq(&known)
                && (state.admitted.iter().any(|admitted| admitted.ptr_eq(other)) || has_python())
        };
        let others = state.kernels.iter().filter(runs).count();
        if !kernels.has_python() && others >= usize_of(self.options.max_running_kernels) {
            return None;
        }
        state.admitted.push(Weak::clone(&known));
        Some(Admission(Some((Arc::downgrade(self), known))))
    }

    async fn make_room(&self) {
        for kernels in self.oldest_of_python() {
            // Another cell may have made room meanwhile.
            if self.oldest_of_python().len() <= usize_of(self.options.max_kernels) {
                return;
            }
            kernels.end_python(Duration::ZERO, words::EVICTED.to_owned()).await;
        }
    }
}

/// The right of kernels to have a process of Python, until it is dropped. A process that is there then goes on counting.
#[derive(Debug)]
pub(crate) struct Admission(Option<(Weak<Inner>, Weak<Kernels>)>);

impl Drop for Admission {
    fn drop(&mut self) {
        let Some((registry, kernels)) = &self.0 else { return };
        let Some(registry) = registry.upgrade() else { return };
        let mut state = registry.state();
        if let Some(at) = state.admitted.iter().position(|admitted| admitted.ptr_eq(kernels)) {
            state.admitted.swap_remove(at);
        }
    }
}

impl State {
    fn add(&mut self, kernels: &Arc<Kernels>) {
        self.kernels.retain(|known| known.strong_count() > 0);
        let known = Arc::downgrade(kernels);
        if !self.kernels.iter().any(|other| other.ptr_eq(&known)) {
            self.kernels.push(known);
        }
    }
}

/// Looks at kernels from time to time, until there are none that could end.
async fn sweep(registry: Weak<Inner>, options: RegistryOptions) {
    loop {
        tokio::time::sleep(Duration::from_millis(options.sweep_ms)).await;
        let Some(inner) = registry.upgrade() else { return };
        for kernels in inner.known() {
            kernels.end_idle(options.idle_timeout_ms).await;
        }
        let mut state = inner.state();
        let known: Vec<_> = state.kernels.iter().filter_map(Weak::upgrade).collect();
        if !known.iter().any(|kernels| kernels.may_idle(options.idle_timeout_ms)) {
            state.is_sweeping = false;
            return;
        }
    }
}

impl Session {
    fn open(options: &NotebookOptions, id: String, registry: &Arc<Inner>) -> Result<Self, Misuse> {
        let given = Given {
            js: options.js.clone(),
            py: options.py.clone(),
            files: options.files.clone(),
            env: options.env.clone(),
        };
        let files = options.files.as_ref().map(Files::open).transpose()?.map(Arc::new);
        let mut py = options.py.clone();
        if let (Some(python), Some(files)) = (&mut py, &files) {
            python.work_in(files.root(), files.is_writable());
            if files.is_writable() && python.isolation == Isolation::Confined {
                refuse_replaceable(python, files.root())?;
            }
        }
        let heartbeat = Duration::from_millis(registry.options.heartbeat_ms);
        let place = Place(Arc::downgrade(registry));
        let kernels = Kernels::new(options, py.as_ref(), id, files.as_ref(), (place, heartbeat));
        Ok(Self { kernels, files, py, given })
    }
}

impl Given {
    /// Checks the options of a notebook that joins. Those that are as by default are the session's own.
    ///
    /// # Errors
    /// Misuse: one that the session has not.
    fn check_join(&self, id: &str, options: &NotebookOptions) -> Result<(), Misuse> {
        let js = joins(self.js.as_ref(), options.js.as_ref(), |js| {
            let JsOptions { language, memory_limit_bytes, checkpoint_bytes, .. } = js;
            let sizes = (*memory_limit_bytes, *checkpoint_bytes, js.idle_timeout_ms);
            (*language, sizes, js.modules.clone())
        });
        let py = joins(self.py.as_ref(), options.py.as_ref(), |py| PyOptions {
            worker: None,
            ..py.clone()
        });
        let files = options.files.as_ref().is_none_or(|files| {
            self.files.as_ref().is_some_and(|own| placed(own) == placed(files))
        });
        let env = options.env.is_empty() || options.env == self.env;
        for (key, is_same) in [("js", js), ("py", py), ("files", files), ("env", env)] {
            if !is_same {
                let rest =
                    format!(" must be as it is in session '{id}', which is open, or left out");
                return Err(Misuse::new(key, &rest));
            }
        }
        Ok(())
    }
}

/// Whether a backend is that of the session, or left out.
fn joins<T: Default, C: PartialEq>(
    own: Option<&T>,
    given: Option<&T>,
    compared: fn(&T) -> C,
) -> bool {
    let Some(given) = given.map(compared) else { return own.is_none() };
    given == compared(&T::default()) || own.is_some_and(|own| compared(own) == given)
}

/// Files whose folder has one name.
fn placed(files: &FilesOptions) -> FilesOptions {
    let root = fs::canonicalize(&files.root).unwrap_or_else(|_| files.root.clone());
    FilesOptions { root, ..files.clone() }
}

/// # Errors
/// Misuse: cells could replace a program that runs without confinement, as the first one that starts a kernel does.
fn refuse_replaceable(python: &PyOptions, root: &Path) -> Result<(), Misuse> {
    let mut programs = [Some(py::program(python)), python.worker.clone()].into_iter().flatten();
    match programs.find(|program| program.starts_with(root)) {
        None => Ok(()),
        Some(program) => {
            let rest = format!(": cells could replace {} in it", program.display());
            Err(Misuse::new("files.root", &rest))
        }
    }
}
