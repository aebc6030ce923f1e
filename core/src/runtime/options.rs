//! The settings of a runtime, from its options (`data/runtime_options.rs`).
//!
//! In: options as a binding read them from its caller. Out: settings, or an [`Error`] for the caller, before anything
//! starts.

use std::{
    env::consts::EXE_SUFFIX,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use isolane_confine::program::{NAME, VARIABLE, no_executable};

use crate::{
    data::{
        options::type_error,
        runtime_options::{Isolation, RuntimeCounts, RuntimeOptions, concurrency},
    },
    error::{Error, ErrorKind, Source},
};

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
        Self::from(RuntimeCounts::default())
    }
}

impl From<RuntimeCounts> for RuntimeSettings {
    fn from(counts: RuntimeCounts) -> Self {
        let ready = counts.max_concurrent_runs.min(concurrency());
        Self {
            safety_cap: Duration::from_millis(counts.safety_cap_ms as u64),
            max_concurrent_runs: counts.max_concurrent_runs,
            max_queued_runs: counts.max_queued_runs,
            max_stuck_threads: counts.max_stuck_threads,
            ready_isolates: counts.ready_isolates.unwrap_or(ready),
            compile_cache_bytes: counts.compile_cache_bytes,
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
    /// The settings of its processes, if isolates run in processes.
    pub(crate) fn check_workers(&self) -> Result<Option<WorkerSettings>, Error> {
        let counts = self.counts()?;
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
            runs: u32::try_from(counts.runs_per_worker).unwrap_or(u32::MAX),
            idle: Duration::from_millis(counts.worker_idle_ms as u64),
        }))
    }

    /// The executable, from the first source that names one.
    fn find_worker(&self) -> Result<PathBuf, Error> {
        let named = |name: &str, path: &Path| match file_at(path) {
            Some(path) => Ok(path),
            None => {
                let misuse = type_error(format!("{name}: there is no file {}", path.display()));
                // There is none if the path is something else, such as a folder.
                let source = path.metadata().err().map(|error| Arc::new(error) as Source);
                Err(misuse.with_source(source))
            }
        };
        if let Some(path) = &self.worker {
            return named("worker", path);
        }
        if let Some(path) = std::env::var_os(VARIABLE) {
            return named(VARIABLE, Path::new(&path));
        }
        let running = || Some(std::env::current_exe().ok()?.parent()?.to_owned());
        let folder = self.worker_folder.clone().or_else(running).unwrap_or_default();
        let file = format!("{NAME}{EXE_SUFFIX}");
        file_at(&folder.join(file)).ok_or_else(|| {
            // The packages for Windows have no such file, so nothing that a user installed wrongly is missing.
            let (remedy, kind) = if cfg!(windows) {
                ("the packages for Windows come without it. Build it from a clone", ErrorKind::Unavailable)
            } else {
                ("install isolane again, or build it in a clone", ErrorKind::Type)
            };
            let remedy =
                format!("{remedy}, or name it with the option 'worker' or the environment variable {VARIABLE}");
            let place = format!("in {}", folder.display());
            Error::new(kind, no_executable("isolation 'process' needs", &place, &remedy))
        })
    }

    pub(crate) fn check(&self) -> Result<RuntimeSettings, Error> {
        self.counts().map(RuntimeSettings::from)
    }
}

/// The absolute path of that file, if there is one: a worker starts in another folder.
fn file_at(path: &Path) -> Option<PathBuf> {
    std::path::absolute(path).ok().filter(|path| path.is_file())
}
