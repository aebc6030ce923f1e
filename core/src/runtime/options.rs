//! What a caller may ask of a run, and every check on it.
//!
//! In: options as a binding read them from its caller. Out: nothing, or the [`Error`] that the
//! caller deserves, before anything starts. The lists of valid names live here and nowhere else.

use std::{
    collections::HashMap,
    env::consts::EXE_SUFFIX,
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{
    error::{Error, ErrorKind},
    modules::link::specifier,
    value::{Value, Writer},
};

/// The memory limit of a run that names none: 128 MiB.
pub(crate) const DEFAULT_MEMORY_LIMIT_BYTES: u64 = 128 << 20;

/// The label of an entry that has none.
pub(crate) const DEFAULT_FILENAME: &str = "<runCode>";

/// The language of the entry and of every module whose name does not say otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Language {
    /// Standard ECMAScript modules, run as they stand.
    JavaScript,
    /// TypeScript, whose types are erased and not checked.
    #[default]
    TypeScript,
}

/// How a language spells its options, for the messages of its errors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spelling {
    /// `memoryLimitBytes`
    Camel,
    /// `memory_limit_bytes`
    #[default]
    Snake,
}

/// A set of option names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionSet {
    /// The options of a run.
    Run,
    /// The fields of `execute`.
    Execute,
    /// The options of a `Runtime`.
    Runtime,
}

impl OptionSet {
    fn names(self) -> &'static [&'static str] {
        match self {
            Self::Run => &[
                "execute",
                "imports",
                "modules",
                "globals",
                "language",
                "memory_limit_bytes",
                "filename",
                "report",
            ],
            Self::Execute => &["fn", "args"],
            Self::Runtime => &[
                "isolation",
                "safety_cap_ms",
                "max_concurrent_runs",
                "max_queued_runs",
                "max_stuck_threads",
                "ready_isolates",
                "compile_cache_bytes",
                "worker",
                "runs_per_worker",
                "worker_idle_ms",
            ],
        }
    }
}

/// A source text as the caller gave it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceText {
    /// The text, lone surrogates replaced by U+FFFD.
    pub text: String,
    /// Where the first lone surrogate stands, in UTF-16 code units from the start.
    pub lone_surrogate: Option<usize>,
}

impl SourceText {
    /// A source given as UTF-16.
    #[must_use]
    pub fn from_utf16(units: &[u16]) -> Self {
        let mut at = 0;
        let mut lone_surrogate = None;
        for unit in char::decode_utf16(units.iter().copied()) {
            match unit {
                Ok(char) => at += char.len_utf16(),
                Err(_) => {
                    lone_surrogate = Some(at);
                    break;
                }
            }
        }
        Self { text: String::from_utf16_lossy(units), lone_surrogate }
    }
}

impl From<String> for SourceText {
    fn from(text: String) -> Self {
        Self { text, lone_surrogate: None }
    }
}

/// A run as a binding asks for it: names here, values in one message beside them.
#[derive(Clone, Debug)]
pub struct Request {
    /// The entry.
    pub source: SourceText,
    /// The label of the entry.
    pub filename: Option<String>,
    /// The entry's language.
    pub language: Language,
    /// The export to select, `default` when `None`.
    pub function: Option<String>,
    /// Further modules: key and source.
    pub modules: Vec<(String, SourceText)>,
    /// The names of the globals, in the order of their values in `inputs`.
    pub globals: Vec<String>,
    /// The bridged modules with the names of their exports, in the order of their values in
    /// `inputs`.
    pub imports: Vec<(String, Vec<String>)>,
    /// One message: an array of the globals' values, then the values of the imports' exports,
    /// then the array of the arguments.
    pub inputs: Value,
    /// Whether the caller gave a sink for reports.
    pub report: bool,
    /// The limit as the caller wrote it.
    pub memory_limit_bytes: Option<f64>,
    /// How to spell options in errors.
    pub spelling: Spelling,
}

impl Request {
    /// A run of that source, with nothing handed over.
    #[must_use]
    pub fn new(source: SourceText) -> Self {
        let mut inputs = Writer::new();
        inputs.array(1);
        inputs.array(0);
        Self {
            source,
            filename: None,
            language: Language::default(),
            function: None,
            modules: Vec::new(),
            globals: Vec::new(),
            imports: Vec::new(),
            inputs: inputs.finish(),
            report: false,
            memory_limit_bytes: None,
            spelling: Spelling::default(),
        }
    }

    /// Checks everything that can be known before anything starts.
    ///
    /// # Errors
    /// The first mistake found, naming the option.
    pub fn check(&self) -> Result<(), Error> {
        non_empty(self.function.as_deref(), "execute.fn")?;
        non_empty(self.filename.as_deref(), "filename")?;
        if let Some(limit) = self.memory_limit_bytes {
            check_memory_limit(limit, self.spelling)?;
        }
        for (key, _) in &self.imports {
            specifier::check_bridge_key(key)
                .map_err(|reason| type_error(format!("imports[{:?}] {reason}", shown(key))))?;
        }
        self.check_modules()?;
        self.globals.iter().try_for_each(|name| check_global_name(name))
    }

    fn check_modules(&self) -> Result<(), Error> {
        let entry = specifier::entry_path(self.filename());
        let mut keys: HashMap<String, &str> = HashMap::new();
        for (key, _) in &self.modules {
            let refused = |reason: &str| type_error(format!("modules[{:?}] {reason}", shown(key)));
            let normalized = specifier::normalize_module_key(key).map_err(&refused)?;
            if entry.as_ref() == Some(&normalized) {
                return Err(refused("is where the entry sits"));
            }
            if let Some(other) = keys.insert(normalized, key) {
                return Err(refused(&format!("is the same module as {:?}", shown(other))));
            }
        }
        Ok(())
    }

    /// Whether anything was handed over by name: without, a run has nothing that it could wait for, but what
    /// its arguments may hold.
    pub(crate) fn hands_over(&self) -> bool {
        !(self.globals.is_empty() && self.imports.is_empty())
    }

    /// The label of the entry.
    pub(crate) fn filename(&self) -> &str {
        self.filename.as_deref().unwrap_or(DEFAULT_FILENAME)
    }

    pub(crate) fn memory_limit(&self) -> u64 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "checked to be a safe integer of at least 1"
        )]
        self.memory_limit_bytes.map_or(DEFAULT_MEMORY_LIMIT_BYTES, |limit| limit as u64)
    }
}

/// Where the isolates of a runtime live.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Isolation {
    /// On threads of this process.
    #[default]
    Thread,
    /// In processes of their own, one for each run unless the runtime says otherwise. On Linux, macOS and Windows.
    Process,
}

/// The options of a [`Runtime`](crate::Runtime), as a caller wrote them; `None` takes the default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RuntimeOptions {
    /// Where isolates live.
    pub isolation: Isolation,
    /// CPU time of one run, in milliseconds; 300,000 by default.
    pub safety_cap_ms: Option<f64>,
    /// Isolates that compute at once; 4 per core, at least 8, by default.
    pub max_concurrent_runs: Option<f64>,
    /// Runs that may wait for their turn; beyond it a new run is refused. No bound by default.
    pub max_queued_runs: Option<f64>,
    /// Threads that may be lost to builtins that do not come back when their run has ended. With
    /// that many no run starts until one does, and with twice as many none goes on. 32 by default.
    pub max_stuck_threads: Option<f64>,
    /// Isolates that are kept pristine ahead of need; by default as many as may compute at once, and at
    /// most 4 per core, or 8.
    pub ready_isolates: Option<f64>,
    /// Bytes of compiled modules that are kept; 32 MiB by default. Processes keep none.
    pub compile_cache_bytes: Option<f64>,
    /// Under [`Isolation::Process`]: the executable `isolane-worker`. By default what the environment
    /// variable `ISOLANE_WORKER` names, or else the file of that name in `worker_folder`.
    pub worker: Option<PathBuf>,
    /// Where a binding keeps its executable; by default the folder of the running program.
    pub worker_folder: Option<PathBuf>,
    /// Runs that a process serves, one after another, before it ends; 1 by default: none ever sees two.
    pub runs_per_worker: Option<f64>,
    /// For how long processes are kept ready, in milliseconds, while there are no runs; 60,000 by default.
    pub worker_idle_ms: Option<f64>,
    /// How to spell options in errors.
    pub spelling: Spelling,
}

/// Checked options of a runtime.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RuntimeSettings {
    pub(crate) safety_cap: Duration,
    pub(crate) max_concurrent_runs: usize,
    pub(crate) max_queued_runs: Option<usize>,
    pub(crate) max_stuck_threads: usize,
    pub(crate) ready_isolates: usize,
    pub(crate) compile_cache_bytes: usize,
}

impl Default for RuntimeSettings {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let max_concurrent_runs = (4 * cores).max(8);
        Self {
            safety_cap: Duration::from_mins(5),
            max_concurrent_runs,
            max_queued_runs: None,
            max_stuck_threads: 32,
            ready_isolates: max_concurrent_runs,
            compile_cache_bytes: 32 << 20,
        }
    }
}

/// Checked options of the processes of a runtime.
#[derive(Clone, Debug)]
pub(crate) struct WorkerSettings {
    /// The executable.
    pub(crate) program: PathBuf,
    /// Runs of one process.
    pub(crate) runs: u32,
    /// How long ready processes are kept while there are no runs.
    pub(crate) idle: Duration,
}

impl RuntimeOptions {
    /// The settings of its processes, if isolates are to live in such.
    pub(crate) fn check_workers(&self) -> Result<Option<WorkerSettings>, Error> {
        let runs = count("runs_per_worker", self.runs_per_worker, 1, self.spelling)?;
        let idle = count("worker_idle_ms", self.worker_idle_ms, 0, self.spelling)?;
        if self.isolation == Isolation::Thread {
            return Ok(None);
        }
        if cfg!(not(any(target_os = "linux", target_os = "macos", windows))) {
            let message = "isolation 'process' is offered on Linux, macOS and Windows";
            return Err(Error::new(ErrorKind::Unavailable, message));
        }
        let program = self.find_worker()?;
        Ok(Some(WorkerSettings {
            program,
            runs: runs.map_or(1, |runs| u32::try_from(runs).unwrap_or(u32::MAX)),
            idle: idle.map_or(Duration::from_mins(1), |ms| Duration::from_millis(ms as u64)),
        }))
    }

    /// The executable, by the first that names one.
    fn find_worker(&self) -> Result<PathBuf, Error> {
        let named = |name: &str, path: &Path| match file_at(path) {
            Some(path) => Ok(path),
            None => Err(type_error(format!("{name}: there is no file {}", path.display()))),
        };
        if let Some(path) = &self.worker {
            return named("worker", path);
        }
        if let Some(path) = std::env::var_os(WORKER_VARIABLE) {
            return named(WORKER_VARIABLE, Path::new(&path));
        }
        let running = || Some(std::env::current_exe().ok()?.parent()?.to_owned());
        let folder = self.worker_folder.clone().or_else(running).unwrap_or_default();
        let file = format!("{WORKER}{EXE_SUFFIX}");
        file_at(&folder.join(file)).ok_or_else(|| {
            type_error(format!(
                "isolation 'process' needs the executable {WORKER}, and there is none in {}; build or \
                 install it, or name it with the option 'worker' or the environment variable \
                 {WORKER_VARIABLE}",
                folder.display()
            ))
        })
    }

    pub(crate) fn check(&self) -> Result<RuntimeSettings, Error> {
        let default = RuntimeSettings::default();
        let count = |name, value, least| count(name, value, least, self.spelling);
        let cap = count("safety_cap_ms", self.safety_cap_ms, 1)?;
        let concurrent = count("max_concurrent_runs", self.max_concurrent_runs, 1)?;
        let max_concurrent_runs = concurrent.unwrap_or(default.max_concurrent_runs);
        let stuck = count("max_stuck_threads", self.max_stuck_threads, 1)?;
        let ready = count("ready_isolates", self.ready_isolates, 0)?;
        let cache = count("compile_cache_bytes", self.compile_cache_bytes, 0)?;
        Ok(RuntimeSettings {
            safety_cap: cap.map_or(default.safety_cap, |ms| Duration::from_millis(ms as u64)),
            max_concurrent_runs,
            max_queued_runs: count("max_queued_runs", self.max_queued_runs, 0)?,
            max_stuck_threads: stuck.unwrap_or(default.max_stuck_threads),
            ready_isolates: ready.unwrap_or(default.ready_isolates.min(max_concurrent_runs)),
            compile_cache_bytes: cache.unwrap_or(default.compile_cache_bytes),
        })
    }
}

/// The name of the executable that processes run.
const WORKER: &str = "isolane-worker";

/// Names it where it is elsewhere.
const WORKER_VARIABLE: &str = "ISOLANE_WORKER";

/// That file wherever it is looked at from, if there is one: a worker starts in another folder.
fn file_at(path: &Path) -> Option<PathBuf> {
    std::path::absolute(path).ok().filter(|path| path.is_file())
}

/// A whole number of at least that.
fn count(
    name: &str,
    value: Option<f64>,
    least: u32,
    spelling: Spelling,
) -> Result<Option<usize>, Error> {
    match value {
        None => Ok(None),
        Some(value) if value.fract() == 0.0 && (f64::from(least)..=1e9).contains(&value) =>
        {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in range")]
            Ok(Some(value as usize))
        }
        Some(value) => Err(Error::new(
            ErrorKind::Range,
            format!(
                "{} must be a whole number from {least} to 1000000000, got {value}",
                spell(name, spelling)
            ),
        )),
    }
}

/// The error for an option that does not exist, naming the nearest one that does.
#[must_use]
pub fn unknown_option(set: OptionSet, key: &str, spelling: Spelling) -> Error {
    let names: Vec<String> = set.names().iter().map(|name| spell(name, spelling)).collect();
    let place = if set == OptionSet::Execute { "execute." } else { "" };
    let nearest = nearest(key, names.iter().map(String::as_str));
    let hint = match nearest {
        Some(name) => format!("did you mean '{place}{name}'?"),
        None => format!("valid options are {}", names.join(", ")),
    };
    type_error(format!("unknown option '{place}{}'; {hint}", shown(key)))
}

/// The error for an option of the wrong type: what it must be, and what it was.
#[must_use]
pub fn wrong_type(option: &str, expected: &str, got: &str) -> Error {
    type_error(format!("{option} must be {expected}, got {got}"))
}

/// Among `names`, the one that `word` most likely meant, if any is near enough.
pub(crate) fn nearest<'a>(word: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let word: Vec<char> = word.to_lowercase().chars().take(64).collect();
    names
        .map(|name| (distance(&word, name), name))
        .filter(|(distance, name)| {
            let prefix: String = word.iter().collect();
            *distance <= name.len() / 2
                || (word.len() > 3 && name.to_lowercase().starts_with(&prefix))
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

fn distance(word: &[char], name: &str) -> usize {
    let name: Vec<char> = name.to_lowercase().chars().collect();
    let mut row: Vec<usize> = (0..=name.len()).collect();
    for (i, left) in word.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, right) in name.iter().enumerate() {
            let next = (row[j] + 1).min(row[j + 1] + 1).min(diagonal + usize::from(left != right));
            diagonal = std::mem::replace(&mut row[j + 1], next);
        }
    }
    row[name.len()]
}

fn spell(name: &str, spelling: Spelling) -> String {
    if spelling == Spelling::Snake {
        return name.to_owned();
    }
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |spelled, word| {
        let (head, tail) = word.split_at(1);
        spelled + &head.to_uppercase() + tail
    })
}

/// As much of a caller's text as an error repeats.
fn shown(text: &str) -> String {
    text.chars().take(100).collect()
}

fn type_error(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Type, message)
}

fn non_empty(value: Option<&str>, option: &str) -> Result<(), Error> {
    match value {
        Some("") => Err(type_error(format!("{option} must not be empty"))),
        _ => Ok(()),
    }
}

fn check_memory_limit(limit: f64, spelling: Spelling) -> Result<(), Error> {
    const MAX_SAFE_INTEGER: f64 = 9_007_199_254_740_991.0;
    if limit.fract() == 0.0 && (1.0..=MAX_SAFE_INTEGER).contains(&limit) {
        return Ok(());
    }
    let name = spell("memory_limit_bytes", spelling);
    Err(Error::new(
        ErrorKind::Range,
        format!("{name} must be a safe integer of at least 1, got {limit}"),
    ))
}

fn check_global_name(name: &str) -> Result<(), Error> {
    let shown = shown(name);
    if FIXED_GLOBALS.contains(&name) {
        return Err(type_error(format!(
            "globals.{shown}: this name cannot be given another value"
        )));
    }
    if RESERVED_WORDS.contains(&name) {
        return Err(type_error(format!("globals.{shown}: a reserved word cannot be a global")));
    }
    let mut chars = name.chars();
    let starts =
        chars.next().is_some_and(|c| c == '$' || c == '_' || unicode_ident::is_xid_start(c));
    if starts
        && chars.all(|c| {
            matches!(c, '$' | '_' | '\u{200C}' | '\u{200D}') || unicode_ident::is_xid_continue(c)
        })
    {
        return Ok(());
    }
    Err(type_error(format!("globals[{shown:?}]: a global must be a valid identifier")))
}

/// Names whose value is fixed on the global object, or that name the global object.
const FIXED_GLOBALS: &[&str] = &["undefined", "NaN", "Infinity", "globalThis"];

/// Words that strict module code cannot bind.
const RESERVED_WORDS: &[&str] = &[
    "arguments",
    "await",
    "break",
    "case",
    "catch",
    "class",
    "const",
    "continue",
    "debugger",
    "default",
    "delete",
    "do",
    "else",
    "enum",
    "eval",
    "export",
    "extends",
    "false",
    "finally",
    "for",
    "function",
    "if",
    "implements",
    "import",
    "in",
    "instanceof",
    "interface",
    "let",
    "new",
    "null",
    "package",
    "private",
    "protected",
    "public",
    "return",
    "static",
    "super",
    "switch",
    "this",
    "throw",
    "true",
    "try",
    "typeof",
    "var",
    "void",
    "while",
    "with",
    "yield",
];
