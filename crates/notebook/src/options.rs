//! The options of a notebook: their defaults, and how they are read.
//!
//! In: options as a caller wrote them. Out: [`NotebookOptions`], or misuse. Sizes are in bytes; KB and MiB are powers of
//! 1,024.

use std::{collections::BTreeMap, path::PathBuf};

use isolane::{Inputs, Runtime, Spelling};
use serde_json::Value as Json;

use crate::{
    CellTool, Llm, Misuse,
    given::{Group, MOST, wrong_type},
};

/// Names that cells of JavaScript have from the notebook.
const OWN_NAMES: [&str; 7] = ["console", "display", "llm", "parallel", "pipeline", "print", "tool"];

/// The options of a notebook.
#[derive(Clone, Debug)]
pub struct NotebookOptions {
    /// The backend of JavaScript; `None` switches it off.
    pub js: Option<JsOptions>,
    /// The backend of Python; `None` switches it off.
    pub py: Option<PyOptions>,
    /// The variables of the environment that Python cells have, beside our own HOME, TMPDIR, PATH, LANG, TZ and MPLBACKEND.
    pub env: BTreeMap<String, String>,
    /// The tools that cells call as `tool.<name>(args)`.
    pub tools: Vec<CellTool>,
    /// The function behind `llm`.
    pub llm: Option<Llm>,
    /// The limits of calls and cells.
    pub limits: Limits,
}

/// The options of JavaScript cells.
#[derive(Clone, Debug)]
pub struct JsOptions {
    /// The runtime of the session; by default the shared one.
    pub runtime: Option<Runtime>,
    /// The language of cells.
    pub language: isolane::Language,
    /// The most memory of the session, 128 MiB by default.
    pub memory_limit_bytes: Option<u64>,
    /// The largest state that is kept for rolling back, 64 MiB by default.
    pub checkpoint_bytes: Option<u64>,
    /// Identifiers that every cell sees.
    pub globals: Inputs,
    /// Bridged modules: specifier, and the exports by name.
    pub imports: BTreeMap<String, Inputs>,
    /// Modules that cells may import: relative specifier, and the source.
    pub modules: BTreeMap<String, String>,
}

/// The number of cells that a kernel of Python serves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// All of the notebook.
    #[default]
    Session,
    /// One.
    PerCall,
}

/// The options of Python cells.
///
/// A kernel has the rights of this process: confinement is not there yet, and `'none'` is the only value of `isolation`.
#[derive(Clone, Debug)]
pub struct PyOptions {
    /// The interpreter; by default that of `VIRTUAL_ENV`, else `python3`. 3.10 or newer.
    pub interpreter: Option<PathBuf>,
    /// The number of cells of a kernel.
    pub mode: Mode,
    /// The working directory, which is on `sys.path`; by default a folder of the kernel's own, which goes with the kernel.
    pub working_folder: Option<PathBuf>,
    /// Folders that are added to `sys.path`.
    pub path: Vec<PathBuf>,
    /// The most memory of a kernel, 2 GiB. On Linux: of its data, and of its resident pages.
    pub memory_limit_bytes: u64,
    /// The longest frame of a kernel, 64 MiB. A longer one ends the kernel.
    pub frame_bytes: u64,
    /// The time in which a kernel must be ready, 30,000 ms.
    pub start_timeout_ms: u64,
    /// The time that an interrupted cell has to end, 2,000 ms. After that its kernel is killed.
    pub interrupt_grace_ms: u64,
    /// The time that a kernel has to end by itself when the notebook is closed, 2,000 ms.
    pub shutdown_grace_ms: u64,
    /// How often a kernel that died by itself is replaced without being asked for, 1.
    pub restarts: u64,
}

/// The part of a text that is shown if it is longer than a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Window {
    /// The end.
    #[default]
    Tail,
    /// The beginning.
    Head,
    /// A fifth of the limit from the beginning, the rest from the end.
    Ends,
}

impl Window {
    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tail => "tail",
            Self::Head => "head",
            Self::Ends => "ends",
        }
    }
}

/// The bound of limits of what is held in memory.
const MOST_TEXT: u64 = 64 << 20;

/// Declares [`Limits`]: each number with its default and its bounds.
macro_rules! limits {
    ($($(#[$docs:meta])+ $name:ident: $default:expr, $least:literal ..= $most:expr;)+) => {
        /// The limits of calls and cells.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct Limits {
            $($(#[$docs])+ pub $name: u64,)+
            /// The part of a long text that is shown.
            pub window: Window,
        }

        impl Default for Limits {
            fn default() -> Self {
                Self { $($name: $default,)+ window: Window::default() }
            }
        }

        impl Limits {
            fn read(given: &Json, spelling: Spelling) -> Result<Self, Misuse> {
                let group = Group::new("limits.", given, &[$(stringify!($name),)+ "window"], spelling)?;
                let default = Self::default();
                let window = group.choice("window", &["tail", "head", "ends"])?;
                let windows = [Window::Tail, Window::Head, Window::Ends];
                Ok(Self {
                    $($name: group.count(stringify!($name), $least, $most)?.unwrap_or(default.$name),)+
                    window: window.and_then(|at| windows.get(at).copied()).unwrap_or_default(),
                })
            }
        }
    };
}

limits! {
    /// The seconds of a cell that has no `timeout`, 30.
    timeout_seconds: 30, 1..=600;
    /// The largest `timeout` of a cell, 600.
    max_timeout_seconds: 600, 1..=600;
    /// The seconds of wall time that end any cell, 3,600.
    max_cell_seconds: 3600, 1..=MOST;
    /// The most cells of a call, 64.
    max_cells: 64, 1..=MOST;
    /// The longest code of a cell, 1 MiB.
    code_bytes: 1 << 20, 1..=MOST;
    /// The bytes of the text block of a result, 50 KB. Heads, errors and the notice do not count.
    output_bytes: 50 << 10, 1..=MOST_TEXT;
    /// Its lines, 3,000.
    output_lines: 3000, 1..=MOST;
    /// The bytes of the text of an update, and of text that comes between cells, 100 KB.
    live_bytes: 100 << 10, 1..=MOST_TEXT;
    /// The least time between two updates, 50 ms.
    update_interval_ms: 50, 0..=MOST;
    /// The bytes of one display in the text, 8,000.
    display_bytes: 8000, 1..=MOST_TEXT;
    /// The bytes of the JSON values of a cell, 1 MiB.
    json_bytes: 1 << 20, 1..=MOST_TEXT;
    /// The bytes of an image, 5 MiB.
    image_bytes: 5 << 20, 1..=MOST_TEXT;
    /// The images of a call, 16.
    images: 16, 0..=1000;
    /// The status events of a cell that are kept, the newest, 1,000.
    status_events: 1000, 0..=100_000;
    /// The calls of host functions that are worked on at once, 64. More wait.
    host_calls: 64, 1..=10_000;
    /// The calls of `llm` in one cell, 200.
    llm_calls: 200, 0..=MOST;
    /// The functions that `parallel` and `pipeline` run at once, 4, unless their cell says otherwise.
    concurrency: 4, 1..=1_000;
    /// The most that a cell may say, 16.
    max_concurrency: 16, 1..=1_000;
}

impl Default for NotebookOptions {
    fn default() -> Self {
        Self {
            js: Some(JsOptions::default()),
            py: Some(PyOptions::default()),
            env: BTreeMap::new(),
            tools: Vec::new(),
            llm: None,
            limits: Limits::default(),
        }
    }
}

impl Default for JsOptions {
    fn default() -> Self {
        Self {
            runtime: None,
            language: isolane::Language::TypeScript,
            memory_limit_bytes: None,
            checkpoint_bytes: None,
            globals: Inputs::new(),
            imports: BTreeMap::new(),
            modules: BTreeMap::new(),
        }
    }
}

impl Default for PyOptions {
    fn default() -> Self {
        Self {
            interpreter: None,
            mode: Mode::Session,
            working_folder: None,
            path: Vec::new(),
            memory_limit_bytes: 2 << 30,
            frame_bytes: 64 << 20,
            start_timeout_ms: 30_000,
            interrupt_grace_ms: 2000,
            shutdown_grace_ms: 2000,
            restarts: 1,
        }
    }
}

impl NotebookOptions {
    /// Reads options that are JSON, with the keys of a language. Functions and runtimes are handed over in the fields.
    ///
    /// # Errors
    /// Misuse: an unknown key, a value of the wrong type, a number out of range.
    pub fn from_json(given: &Json, spelling: Spelling) -> Result<Self, Misuse> {
        let keys = ["js", "py", "env", "tools", "llm", "limits"];
        let group = Group::new("", given, &keys, spelling)?;
        for key in ["tools", "llm"] {
            if let Some(other) = group.value(key) {
                return Err(wrong_type(key, "handed over as functions", other));
            }
        }
        let limits = group.value("limits").map(|given| Limits::read(given, spelling));
        Ok(Self {
            js: backend(&group, "js", JsOptions::read, spelling)?,
            py: backend(&group, "py", PyOptions::read, spelling)?,
            env: group.texts_by_name("env")?.unwrap_or_default().into_iter().collect(),
            limits: limits.transpose()?.unwrap_or_default(),
            ..Self::default()
        })
    }

    /// Checks fields that a Rust caller wrote.
    pub(crate) fn check(&self) -> Result<(), Misuse> {
        let is_bad = |name: &&String| name.is_empty() || name.contains(['=', '\0']);
        if let Some(name) = self.env.keys().find(is_bad) {
            return Err(Misuse::new(
                "env",
                &format!(": {name:?} is not a valid name of a variable"),
            ));
        }
        if let Some((name, _)) = self.env.iter().find(|(_, text)| text.contains('\0')) {
            return Err(Misuse::new(format!("env.{name}"), " must not contain NUL"));
        }
        let mut names = self.js.iter().flat_map(|js| js.globals.names());
        if let Some(name) = names.find(|name| OWN_NAMES.contains(name)) {
            let problem = ": the name is the notebook's: choose another name";
            return Err(Misuse::new(format!("js.globals.{name}"), problem));
        }
        Ok(())
    }
}

/// The options of a backend: on unless it is `false`.
fn backend<T: Default>(
    group: &Group<'_>,
    key: &str,
    read: fn(&Json, Spelling) -> Result<T, Misuse>,
    spelling: Spelling,
) -> Result<Option<T>, Misuse> {
    match group.value(key) {
        Some(Json::Bool(false)) => Ok(None),
        None | Some(Json::Bool(true)) => Ok(Some(T::default())),
        Some(given @ Json::Object(_)) => read(given, spelling).map(Some),
        Some(other) => Err(wrong_type(key, "an object, true or false", other)),
    }
}

impl JsOptions {
    fn read(given: &Json, spelling: Spelling) -> Result<Self, Misuse> {
        let keys = [
            "runtime",
            "language",
            "memory_limit_bytes",
            "checkpoint_bytes",
            "globals",
            "imports",
            "modules",
        ];
        let group = Group::new("js.", given, &keys, spelling)?;
        if let Some(other) = group.value("runtime") {
            return Err(wrong_type(&group.path("runtime"), "a Runtime", other));
        }
        for key in ["globals", "imports"] {
            if let Some(other) = group.value(key) {
                return Err(wrong_type(&group.path(key), "handed over as values", other));
            }
        }
        let language = match group.choice("language", &["typescript", "javascript"])? {
            Some(1) => isolane::Language::JavaScript,
            _ => isolane::Language::TypeScript,
        };
        Ok(Self {
            language,
            memory_limit_bytes: group.count("memory_limit_bytes", 1, MOST)?,
            checkpoint_bytes: group.count("checkpoint_bytes", 0, MOST)?,
            modules: group.texts_by_name("modules")?.unwrap_or_default().into_iter().collect(),
            ..Self::default()
        })
    }
}

impl PyOptions {
    fn read(given: &Json, spelling: Spelling) -> Result<Self, Misuse> {
        let keys = [
            "interpreter",
            "mode",
            "isolation",
            "path",
            "memory_limit_bytes",
            "frame_bytes",
            "start_timeout_ms",
            "interrupt_grace_ms",
            "shutdown_grace_ms",
            "restarts",
        ];
        let group = Group::new("py.", given, &keys, spelling)?;
        let default = Self::default();
        if group.choice("isolation", &["none", "confined"])? == Some(1) {
            let rest = ": 'confined' is not available yet; 'none' has the rights of this process";
            return Err(Misuse::new(group.path("isolation"), rest));
        }
        let mode = match group.choice("mode", &["session", "per-call"])? {
            Some(1) => Mode::PerCall,
            _ => Mode::Session,
        };
        let count = |key, least, default| Ok(group.count(key, least, MOST)?.unwrap_or(default));
        Ok(Self {
            working_folder: None,
            interpreter: group.text("interpreter")?.map(PathBuf::from),
            mode,
            path: group.texts("path")?.unwrap_or_default().into_iter().map(PathBuf::from).collect(),
            memory_limit_bytes: count("memory_limit_bytes", 1 << 20, default.memory_limit_bytes)?,
            frame_bytes: group
                .count("frame_bytes", 1 << 10, u64::from(u32::MAX) - 5)?
                .unwrap_or(default.frame_bytes),
            start_timeout_ms: count("start_timeout_ms", 1, default.start_timeout_ms)?,
            interrupt_grace_ms: count("interrupt_grace_ms", 0, default.interrupt_grace_ms)?,
            shutdown_grace_ms: count("shutdown_grace_ms", 0, default.shutdown_grace_ms)?,
            restarts: count("restarts", 0, default.restarts)?,
        })
    }
}
