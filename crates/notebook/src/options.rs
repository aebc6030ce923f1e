//! The options of a notebook: their defaults, and how they are read.
//!
//! In: options as a caller wrote them. Out: [`NotebookOptions`], or misuse. Sizes are in bytes; KB and MiB are powers of
//! 1,024.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use isolane::{Inputs, Runtime, Spelling};
use isolane_confine::program::Required;
use isolane_kit::Kit;
use serde_json::Value as Json;

use crate::{
    Agent, ArtifactsOptions, CellTool, FilesOptions, Llm, Misuse, Registry,
    given::{Group, MOST, spelled, wrong_type},
    kernels::py::may_be_shown,
};

/// Names that cells of JavaScript have from the notebook.
const OWN_NAMES: [&str; 18] = [
    "agent", "append", "console", "counter", "diff", "display", "env", "llm", "output", "parallel",
    "pipeline", "print", "read", "sort", "tool", "tree", "uniq", "write",
];

/// The options of a notebook.
#[derive(Clone, Debug)]
pub struct NotebookOptions {
    /// The backend of JavaScript; `None` switches it off.
    pub js: Option<JsOptions>,
    /// The backend of Python; `None` switches it off.
    pub py: Option<PyOptions>,
    /// The name of the session; a fresh one by default. Notebooks that name the same one in a registry share its kernels. It
    /// has the `js`, `py`, `files` and `env` of the notebook that opened it: whoever joins leaves them as they are by default,
    /// or gives the same.
    pub session_id: Option<String>,
    /// Where the session is; by default the registry of this process.
    pub registry: Option<Registry>,
    /// The variables of the environment that cells have with `env`, in Python beside our own HOME, TMPDIR, PATH, LANG, TZ
    /// and MPLBACKEND.
    pub env: BTreeMap<String, String>,
    /// The files that cells may use, by `read` and its like, and in Python as the working directory.
    pub files: Option<FilesOptions>,
    /// The folder for what is too long for a result.
    pub artifacts: Option<ArtifactsOptions>,
    /// The tools that cells call as `tool.<name>(args)`.
    pub tools: Vec<CellTool>,
    /// The function behind `llm`.
    pub llm: Option<Llm>,
    /// The function behind `agent`.
    pub agent: Option<Agent>,
    /// The limits of calls and cells.
    pub limits: Limits,
}

/// The options of JavaScript cells.
#[derive(Clone, Debug)]
pub struct JsOptions {
    /// The runtime of the session; by default that of the kit, else the shared one.
    pub runtime: Option<Runtime>,
    /// The language of cells.
    pub language: isolane::Language,
    /// The most memory of the session; by default that of the kit, else 128 MiB.
    pub memory_limit_bytes: Option<u64>,
    /// The largest state that is kept for rolling back, 64 MiB by default.
    pub checkpoint_bytes: Option<u64>,
    /// Identifiers that every cell sees.
    pub globals: Inputs,
    /// Bridged modules: specifier, and the exports by name.
    pub imports: BTreeMap<String, Inputs>,
    /// Modules that cells may import: relative specifier, and the source.
    pub modules: BTreeMap<String, String>,
    /// Capabilities of cells: `fetch`, `state`, timers, for example. Its secrets are taken out of all that a cell
    /// shows. Clocks of cells are the notebook's: the time limit of the kit does not count.
    pub kit: Option<Kit>,
    /// The time without a cell after which the session ends, in ms. 0, the default: never.
    pub idle_timeout_ms: u64,
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

/// The rights of a kernel of Python.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Isolation {
    /// It has its own folders, those that it is shown, and the network if it is given. On Linux; elsewhere there is no kernel.
    #[default]
    Confined,
    /// Those of this process.
    None,
}

/// The options of Python cells. Those from `required` to `scratch_bytes` are for kernels that are confined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PyOptions {
    /// The interpreter; by default that of `VIRTUAL_ENV`, else `python3`. 3.10 or newer.
    pub interpreter: Option<PathBuf>,
    /// The number of cells of a kernel.
    pub mode: Mode,
    /// The working directory, which is on `sys.path`; by default the root of `files`, else a folder of the kernel's own,
    /// which goes with the kernel.
    pub working_folder: Option<PathBuf>,
    /// Folders that are added to `sys.path`.
    pub path: Vec<PathBuf>,
    /// The rights of a kernel; confined by default.
    pub isolation: Isolation,
    /// The items of its confinement without which there is no kernel, by the names of
    /// [`Confinement`](isolane::Confinement): by default `file_system` and, without `network`, `network`.
    pub required: Option<Vec<String>>,
    /// Whether a kernel has the network of this machine.
    pub network: bool,
    /// Whether it may start processes.
    pub processes: bool,
    /// The most processes and threads that it has at a time, 256. It has three threads of its own.
    pub max_processes: u64,
    /// Files and folders that it may read beside its interpreter, `path` and the system's folders.
    pub readable: Vec<PathBuf>,
    /// Folders that it may write to beside its own.
    pub writable: Vec<PathBuf>,
    /// The bytes of its own folders together, 256 MiB.
    pub scratch_bytes: u64,
    /// The executable `isolane-worker`, which starts confined kernels; by default the file that the environment variable
    /// `ISOLANE_WORKER` names, or the one beside the running program.
    pub worker: Option<PathBuf>,
    /// The most memory of a kernel, 2 GiB. Confined, of all its processes together where the machine delegates a control
    /// group; else, on Linux, of the data of each process, and of the kernel's own resident pages.
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
            /// Reads limits; those that are left out are those of `default`.
            pub(crate) fn read(
                given: &Json,
                spelling: Spelling,
                default: &Self,
            ) -> Result<Self, Misuse> {
                let group = Group::new("limits.", given, &[$(stringify!($name),)+ "window"], spelling)?;
                let window = group.choice("window", &["tail", "head", "ends"])?;
                let windows = [Window::Tail, Window::Head, Window::Ends];
                Ok(Self {
                    $($name: group.count(stringify!($name), $least, $most)?.unwrap_or(default.$name),)+
                    window: window.and_then(|at| windows.get(at).copied()).unwrap_or(default.window),
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
    /// The calls of `agent` in one cell, 50.
    agent_calls: 50, 0..=MOST;
    /// The agents above one another, 3.
    agent_depth: 3, 0..=MOST;
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
            session_id: None,
            registry: None,
            env: BTreeMap::new(),
            files: None,
            artifacts: None,
            tools: Vec::new(),
            llm: None,
            agent: None,
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
            kit: None,
            idle_timeout_ms: 0,
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
            isolation: Isolation::default(),
            required: None,
            network: false,
            processes: true,
            max_processes: 256,
            readable: Vec::new(),
            writable: Vec::new(),
            scratch_bytes: 256 << 20,
            worker: None,
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
        let keys = [
            "js",
            "py",
            "session_id",
            "registry",
            "env",
            "files",
            "artifacts",
            "tools",
            "llm",
            "agent",
            "limits",
        ];
        let group = Group::new("", given, &keys, spelling)?;
        for key in ["tools", "llm", "agent"] {
            if let Some(other) = group.value(key) {
                return Err(wrong_type(key, "handed over as functions", other));
            }
        }
        if let Some(other) = group.value("registry") {
            return Err(wrong_type("registry", "a Registry", other));
        }
        let read = |given: &Json| Limits::read(given, spelling, &Limits::default());
        let limits = group.value("limits").map(read);
        let files = group.value("files").map(|given| FilesOptions::read(given, spelling));
        let artifacts =
            group.value("artifacts").map(|given| ArtifactsOptions::read(given, spelling));
        Ok(Self {
            js: backend(&group, "js", JsOptions::read, spelling)?,
            py: backend(&group, "py", PyOptions::read, spelling)?,
            session_id: group.text("session_id")?,
            env: group.texts_by_name("env")?.unwrap_or_default().into_iter().collect(),
            files: files.transpose()?,
            artifacts: artifacts.transpose()?,
            limits: limits.transpose()?.unwrap_or_default(),
            ..Self::default()
        })
    }

    /// Checks fields that a Rust caller wrote.
    pub(crate) fn check(&self) -> Result<(), Misuse> {
        if self.session_id.as_ref().is_some_and(String::is_empty) {
            return Err(Misuse::new("session_id", " must not be empty"));
        }
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
        self.py.iter().try_for_each(PyOptions::check)?;
        self.js.iter().try_for_each(JsOptions::check)
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
            "kit",
            "idle_timeout_ms",
        ];
        let group = Group::new("js.", given, &keys, spelling)?;
        if let Some(other) = group.value("kit") {
            return Err(wrong_type(&group.path("kit"), "a Kit", other));
        }
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
            idle_timeout_ms: group.count("idle_timeout_ms", 0, MOST)?.unwrap_or_default(),
            ..Self::default()
        })
    }

    /// Checks fields that a Rust caller wrote.
    fn check(&self) -> Result<(), Misuse> {
        if self.kit.as_ref().is_some_and(Kit::is_closed) {
            return Err(Misuse::new("js.kit", " is closed"));
        }
        let of_kit = |name: &str| self.kit.iter().flat_map(Kit::names).any(|known| known == name);
        for name in self.globals.names() {
            let owner = if OWN_NAMES.contains(&name) {
                "notebook"
            } else if of_kit(name) {
                "kit"
            } else {
                continue;
            };
            let problem = format!(": the name is the {owner}'s: choose another name");
            return Err(Misuse::new(format!("js.globals.{name}"), &problem));
        }
        Ok(())
    }
}

impl PyOptions {
    /// Kernels work in that folder, if it can be shown to them, and may write to it if cells may.
    pub(crate) fn work_in(&mut self, root: &Path, is_writable: bool) {
        if self.isolation == Isolation::None || may_be_shown(root) {
            self.working_folder.get_or_insert_with(|| root.to_owned());
            self.writable.extend(is_writable.then(|| root.to_owned()));
        }
    }

    fn read(given: &Json, spelling: Spelling) -> Result<Self, Misuse> {
        let keys = [
            "interpreter",
            "mode",
            "isolation",
            "required",
            "network",
            "processes",
            "max_processes",
            "readable",
            "scratch_bytes",
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
        let isolation = match group.choice("isolation", &["confined", "none"])? {
            Some(1) => Isolation::None,
            _ => Isolation::Confined,
        };
        let mode = match group.choice("mode", &["session", "per-call"])? {
            Some(1) => Mode::PerCall,
            _ => Mode::Session,
        };
        let count = |key, least, default| Ok(group.count(key, least, MOST)?.unwrap_or(default));
        let paths = |key| -> Result<Vec<PathBuf>, Misuse> {
            Ok(group.texts(key)?.unwrap_or_default().into_iter().map(PathBuf::from).collect())
        };
        Ok(Self {
            working_folder: None,
            isolation,
            required: required(&group, spelling)?,
            network: group.flag("network")?.unwrap_or(default.network),
            processes: group.flag("processes")?.unwrap_or(default.processes),
            max_processes: count("max_processes", LEAST_PROCESSES, default.max_processes)?,
            readable: paths("readable")?,
            writable: Vec::new(),
            scratch_bytes: count("scratch_bytes", 1 << 20, default.scratch_bytes)?,
            worker: None,
            interpreter: group.text("interpreter")?.map(PathBuf::from),
            mode,
            path: paths("path")?,
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
    /// Checks fields that a Rust caller wrote.
    fn check(&self) -> Result<(), Misuse> {
        if let Some(names) = &self.required {
            let place = |at: usize| format!("py.required[{at}]");
            if let Err(at) = Required::parse(names) {
                let problem = format!(": there is no item '{}'", names[at]);
                return Err(Misuse::new(place(at), &problem));
            }
            let network = names.iter().position(|name| name == "network");
            if let Some(at) = network.filter(|_| self.network) {
                return Err(Misuse::new(place(at), ": a kernel with 'network' has the network"));
            }
        }
        if self.isolation == Isolation::None {
            return Ok(());
        }
        for (key, paths) in
            [("readable", &self.readable), ("writable", &self.writable), ("path", &self.path)]
        {
            if let Some(at) = paths.iter().position(|path| !may_be_shown(path)) {
                let problem = format!(": a kernel cannot be shown '{}'", paths[at].display());
                return Err(Misuse::new(format!("py.{key}[{at}]"), &problem));
            }
        }
        Ok(())
    }

    /// The items of the confinement without which there is no kernel.
    #[cfg_attr(
        not(target_os = "linux"),
        expect(dead_code, reason = "kernels are confined on Linux")
    )]
    pub(crate) fn required_items(&self) -> Required {
        let default = || {
            let network = (!self.network).then_some("network");
            ["file_system"].into_iter().chain(network).map(str::to_owned).collect()
        };
        let names: Vec<String> = self.required.clone().unwrap_or_else(default);
        // They were checked as the notebook was opened.
        Required::parse(&names).unwrap_or_else(|_| Required::all())
    }
}

/// The fewest processes and threads with which a kernel works.
const LEAST_PROCESSES: u64 = 4;

/// The items of the confinement that are required, in the spelling of this library.
fn required(group: &Group<'_>, spelling: Spelling) -> Result<Option<Vec<String>>, Misuse> {
    let Some(names) = group.texts("required")? else { return Ok(None) };
    let known = |(at, name): (usize, &String)| {
        let item = Required::ITEMS.into_iter().find(|item| spelled(item, spelling) == *name);
        item.map(str::to_owned).ok_or_else(|| {
            let items = Required::ITEMS.map(|item| format!("'{}'", spelled(item, spelling)));
            let path = format!("{}[{at}]", group.path("required"));
            wrong_type(&path, &items.join(" or "), &name.as_str().into())
        })
    };
    names.iter().enumerate().map(known).collect::<Result<_, _>>().map(Some)
}
