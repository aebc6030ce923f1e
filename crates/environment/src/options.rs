//! The options of a process service.

use std::{fmt, path::PathBuf, sync::Arc};

use isolane::{Error, ErrorKind, OptionDeclaration, OptionKind, Spelling};

use crate::Environment;

/// The longest time: a year.
pub(crate) const MOST_MS: u64 = 366 * 24 * 60 * 60 * 1000;

/// The most bytes of a stream or an output: 1 GiB.
const MOST_BYTES: u64 = 1 << 30;

/// Receives a line.
pub type Log = Arc<dyn Fn(&str) + Send + Sync>;

/// The options of a [`ProcessService`](crate::ProcessService). Times are in milliseconds.
#[derive(Clone)]
pub struct ProcessServiceOptions {
    /// Runs the code; a [`TypeScriptEnvironment`](crate::TypeScriptEnvironment) by default.
    pub environment: Option<Arc<dyn Environment>>,
    /// Executions at once; 4 per core, at least 8, by default.
    pub concurrency: usize,
    /// Processes that wait for a place; 1,000 by default.
    pub max_queued: usize,
    /// The time limit of processes that ask for none; 30,000 by default.
    pub default_timeout_ms: Option<u64>,
    /// The longest time limit that a client may ask for; 3,600,000 by default.
    pub max_timeout_ms: u64,
    /// The time that a kill may take; 10,000 by default.
    pub kill_grace_ms: u64,
    /// The time that an environment may take beyond the time limit; 60,000 by default. `None`: any.
    pub backstop_ms: Option<u64>,
    /// The bytes that are kept of each stream; 8 MiB by default. The rest is dropped.
    pub max_stream_bytes: usize,
    /// The bytes of an output's JSON; 8 MiB by default.
    pub max_output_bytes: usize,
    /// Finished processes that are kept; 10,000 by default.
    pub retain_count: usize,
    /// How long finished processes are kept; 7 days by default.
    pub retain_ms: u64,
    /// A file of SQLite that keeps the processes, so that they outlive the service; it is made if there is none. `None`:
    /// they are in memory. One service has it at a time. The file is opened, and what an earlier service has not finished
    /// is ended there, on the thread that makes the service; everything else is done by a thread of its own.
    pub database: Option<PathBuf>,
    /// Receives lines about failures that no client is told of, such as a `kill` that throws; by default they go to the
    /// standard error.
    pub log: Option<Log>,
    /// How to spell options in errors.
    pub spelling: Spelling,
    /// The tokio runtime of the service; by default the library's own thread for futures. With a runtime whose clock is
    /// paused, a test sets the service's clock.
    pub handle: Option<tokio::runtime::Handle>,
}

impl Default for ProcessServiceOptions {
    fn default() -> Self {
        Self {
            environment: None,
            concurrency: default_concurrency(),
            max_queued: 1000,
            default_timeout_ms: Some(30_000),
            max_timeout_ms: 3_600_000,
            kill_grace_ms: 10_000,
            backstop_ms: Some(60_000),
            max_stream_bytes: 8 << 20,
            max_output_bytes: 8 << 20,
            retain_count: 10_000,
            retain_ms: 7 * 24 * 60 * 60 * 1000,
            database: None,
            log: None,
            spelling: Spelling::default(),
            handle: None,
        }
    }
}

impl ProcessServiceOptions {
    /// The names of the options that are values, in the order in which errors list them.
    pub const NAMES: &[&str] = &[
        "concurrency",
        "max_queued",
        "default_timeout_ms",
        "max_timeout_ms",
        "kill_grace_ms",
        "backstop_ms",
        "max_stream_bytes",
        "max_output_bytes",
        "retain_count",
        "retain_ms",
        "database",
    ];

    /// Reads an object of the options in [`NAMES`](Self::NAMES), as a language spells them. A field that is `null` is as if
    /// not given, but `defaultTimeoutMs` and `backstopMs` mean that there is no limit.
    ///
    /// # Errors
    /// An unknown option, with the nearest one that exists; a wrong type; a number that is not whole.
    pub fn from_json(options: &serde_json::Value, spelling: Spelling) -> Result<Self, Error> {
        crate::door::service_options(options, spelling)
    }

    /// Receives lines.
    pub(crate) fn log(&self) -> Log {
        self.log.clone().unwrap_or_else(|| Arc::new(|line| eprintln!("isolane: {line}")))
    }

    /// # Errors
    /// A range error for a count that is out of range.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let whole = [
            ("concurrency", self.concurrency as u64, 1, 1_000_000),
            ("max_queued", self.max_queued as u64, 0, 1_000_000_000),
            ("max_timeout_ms", self.max_timeout_ms, 1, MOST_MS),
            ("default_timeout_ms", self.default_timeout_ms.unwrap_or(1), 1, MOST_MS),
            ("kill_grace_ms", self.kill_grace_ms, 0, MOST_MS),
            ("backstop_ms", self.backstop_ms.unwrap_or(0), 0, MOST_MS),
            ("max_stream_bytes", self.max_stream_bytes as u64, 0, MOST_BYTES),
            ("max_output_bytes", self.max_output_bytes as u64, 2, MOST_BYTES),
            ("retain_count", self.retain_count as u64, 0, 1_000_000_000),
            ("retain_ms", self.retain_ms, 0, 100 * MOST_MS),
        ];
        for (name, value, least, most) in whole {
            if !(least..=most).contains(&value) {
                let name = spelled(name, self.spelling);
                let message =
                    format!("{name} must be a whole number from {least} to {most}, got {value}");
                return Err(Error::new(ErrorKind::Range, message));
            }
        }
        Ok(())
    }
}

/// Executions at once, without an option.
pub(crate) fn default_concurrency() -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    (4 * cores).max(8)
}

/// The name of an option as a language spells it.
pub(crate) fn spelled(name: &'static str, spelling: Spelling) -> String {
    OptionDeclaration { name, kind: OptionKind::Other }.spelled(spelling)
}

impl fmt::Debug for ProcessServiceOptions {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ProcessServiceOptions")
            .field("concurrency", &self.concurrency)
            .field("max_queued", &self.max_queued)
            .field("default_timeout_ms", &self.default_timeout_ms)
            .finish_non_exhaustive()
    }
}
