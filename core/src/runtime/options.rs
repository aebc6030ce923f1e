//! The options of a runtime, and every check on them.
//!
//! In: options as a binding read them from its caller. Out: settings, or the [`Error`] that the caller deserves,
//! before anything starts.

use std::{
    env::consts::EXE_SUFFIX,
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{
    data::options::{Spelling, count, type_error},
    error::{Error, ErrorKind},
};

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
