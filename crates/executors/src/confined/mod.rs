//! Code in a subprocess that has next to nothing: an interpreter in the confinement of Isolane's own workers.
//!
//! In: code, files. Out: the text that it printed, the files that it left, its exit code. `options` are checked before
//! anything starts, and `program` starts the interpreter. It works on Linux.

mod memory;
#[cfg(target_os = "linux")]
mod program;

use std::{collections::BTreeMap, num::NonZeroU32, path::PathBuf, time::Duration};

use async_trait::async_trait;
use isolane_child::DEFAULT_LIMIT_BYTES;
use isolane_confine::program::Required;
pub use isolane_confine::program::{MemoryLimit, ProgramConfinement};

use self::memory::parse_memory;
use crate::{
    CodeExecutionInput, CodeExecutionResult, CodeExecutor, ExecutorError, InvocationContext,
    checks::check_input, task,
};

/// Runs each call in a subprocess that is confined as Isolane's workers are: `python3 -`, unless told otherwise.
///
/// The program reads the system's folders, its interpreter and the paths that it was given, and nothing else of this
/// machine. It may write to `/work`, where it starts, and to `/tmp`. It has no network, no process but its own, and bounds
/// for memory, processes and time. It works on Linux; elsewhere each call is an error of the kind `unsupported`. It needs
/// the executable `isolane-worker`, as isolation by process does.
///
/// It does not protect from bugs of the kernel in the calls that interpreters need, nor from side channels, and it lets
/// the program read the system's own files. Where the machine delegates no control group, each of its processes may fill
/// the memory that it was given.
///
/// If the caller is root, the program is nobody: paths of [`with_readable`](Self::with_readable) must be readable by all.
///
/// ```no_run
/// use isolane_executors::{CodeExecutionInput, CodeExecutor, ConfinedCodeExecutor};
///
/// # futures::executor::block_on(async {
/// let python = ConfinedCodeExecutor::new().with_memory("512m");
/// let result = python.execute_code(&Default::default(), CodeExecutionInput::new("print(6 * 7)")).await?;
/// assert_eq!(result.stdout, "42\n");
/// # Ok::<(), isolane_executors::ExecutorError>(())
/// # });
/// ```
#[derive(Clone, Debug)]
pub struct ConfinedCodeExecutor {
    interpreter: String,
    args: Vec<String>,
    timeout: Option<Duration>,
    retry_attempts: u32,
    memory: String,
    pids_limit: u32,
    env: BTreeMap<String, String>,
    readable: Vec<PathBuf>,
    required: Vec<String>,
    output_limit_bytes: usize,
    #[cfg_attr(
        not(target_os = "linux"),
        expect(dead_code, reason = "programs are confined on Linux alone")
    )]
    worker: Option<PathBuf>,
}

impl Default for ConfinedCodeExecutor {
    fn default() -> Self {
        Self::new()
    }
}

impl ConfinedCodeExecutor {
    /// `python3 -`, 30 seconds, 2 attempts, 256 MiB of memory, 128 processes, 1 MiB of each stream.
    #[must_use]
    pub fn new() -> Self {
        Self {
            interpreter: "python3".to_owned(),
            args: vec!["-".to_owned()],
            timeout: Some(Duration::from_secs(30)),
            retry_attempts: 2,
            memory: "256m".to_owned(),
            pids_limit: 128,
            env: BTreeMap::new(),
            readable: Vec::new(),
            required: Required::ITEMS.map(str::to_owned).to_vec(),
            output_limit_bytes: DEFAULT_LIMIT_BYTES,
            worker: None,
        }
    }

    /// Runs that program, by its path or from `PATH`.
    #[must_use]
    pub fn with_interpreter(self, interpreter: impl Into<String>) -> Self {
        Self { interpreter: interpreter.into(), ..self }
    }

    /// Gives it these arguments. One of them usually says that the code comes from the standard input.
    #[must_use]
    pub fn with_args(self, args: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { args: args.into_iter().map(Into::into).collect(), ..self }
    }

    /// The wall time of a call, from the start of the program. The CPU time of each process is that and a second more.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout: Some(timeout), ..self }
    }

    /// Calls may take any time.
    #[must_use]
    pub fn without_timeout(self) -> Self {
        Self { timeout: None, ..self }
    }

    /// How often the loop tries in all if the program does not start. 0 counts as 1.
    #[must_use]
    pub fn with_retry_attempts(self, attempts: u32) -> Self {
        Self { retry_attempts: attempts, ..self }
    }

    /// Memory, as container engines write it: a number of bytes, or one with `k`, `m` or `g`. At least `1m`, with which few
    /// interpreters do anything.
    #[must_use]
    pub fn with_memory(self, memory: impl Into<String>) -> Self {
        Self { memory: memory.into(), ..self }
    }

    /// The most processes and threads of a program at a time.
    #[must_use]
    pub fn with_pids_limit(self, pids: u32) -> Self {
        Self { pids_limit: pids, ..self }
    }

    /// Gives the program a variable beside `PATH`, `HOME`, `TMPDIR` and `LANG`, or in their place.
    #[must_use]
    pub fn with_env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    /// Lets the program read a file, or a folder and everything in it, at its own path. An absolute one, and not in
    /// `/work`, `/proc` or `/dev`, which the program has for itself.
    #[must_use]
    pub fn with_readable(mut self, path: impl Into<PathBuf>) -> Self {
        self.readable.push(path.into());
        self
    }

    /// The items without which no program runs, of `privileges`, `network`, `file_system`, `system_calls`, `processes` and
    /// `resources`. Without a file system and processes of its own none ever does.
    #[must_use]
    pub fn with_required(self, items: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { required: items.into_iter().map(Into::into).collect(), ..self }
    }

    /// The bytes of each stream that are kept.
    #[must_use]
    pub fn with_output_limit(self, bytes: usize) -> Self {
        Self { output_limit_bytes: bytes, ..self }
    }

    /// The executable `isolane-worker`. By default the file that the environment variable `ISOLANE_WORKER` names, or the
    /// one beside the running program.
    #[must_use]
    pub fn with_worker(self, path: impl Into<PathBuf>) -> Self {
        Self { worker: Some(path.into()), ..self }
    }

    /// The confinement that a program has on this machine. It starts a trial, and no program.
    ///
    /// # Errors
    /// `bad_input`: an option is not valid. `unsupported`: this is not Linux. `spawn`: there is no `isolane-worker`.
    pub async fn confinement(&self) -> Result<ProgramConfinement, ExecutorError> {
        let options = self.check()?;
        task::run(&InvocationContext::default(), |cancelled| async move {
            #[cfg(target_os = "linux")]
            return program::trial(options, cancelled).await;
            #[cfg(not(target_os = "linux"))]
            {
                drop(cancelled);
                Err(unsupported(options))
            }
        })
        .await
    }

    /// The checked options.
    fn check(&self) -> Result<Options, ExecutorError> {
        let bad = |message: &str| Err(ExecutorError::bad_input(message));
        if self.interpreter.is_empty() {
            return bad("interpreter must not be empty");
        }
        if self.timeout.is_some_and(|timeout| timeout.is_zero()) {
            return bad("timeout must be positive");
        }
        if self.output_limit_bytes == 0 {
            return bad("output_limit_bytes must be positive");
        }
        if self.pids_limit == 0 {
            return bad("pids_limit must be positive");
        }
        if let Some(name) =
            self.env.keys().find(|name| name.is_empty() || name.contains(['=', '\0']))
        {
            return bad(&format!("{name:?} is not a valid name of a variable"));
        }
        let texts = self.args.iter().chain(self.env.values()).chain([&self.interpreter]);
        if texts.into_iter().any(|text| text.contains('\0')) {
            return bad("arguments and variables must not contain NUL");
        }
        if let Some(path) = self.readable.iter().find(|path| !may_be_shown(path)) {
            return bad(&format!(
                "{} cannot be shown to a program: an absolute path outside of /work, /proc and /dev can",
                path.display()
            ));
        }
        Ok(Options {
            memory_bytes: parse_memory(&self.memory)?,
            required: required(&self.required)?,
            executor: self.clone(),
        })
    }
}

fn required(names: &[String]) -> Result<Required, ExecutorError> {
    Required::parse(names).map_err(|at| {
        let items = Required::ITEMS.join(", ");
        let message = format!("required has no item {:?}; it has {items}", names[at]);
        ExecutorError::bad_input(message)
    })
}

/// Whether that path may lie in a program's root.
fn may_be_shown(path: &std::path::Path) -> bool {
    use std::path::Component;
    let is_plain =
        path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    let own = ["/work", "/proc", "/dev"].into_iter().any(|own| path.starts_with(own));
    path.is_absolute()
        && is_plain
        && path.parent().is_some()
        && path != std::path::Path::new("/tmp")
        && !own
}

/// Checked options.
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "read on Linux"))]
struct Options {
    executor: ConfinedCodeExecutor,
    memory_bytes: u64,
    required: Required,
}

#[cfg(not(target_os = "linux"))]
fn unsupported(_: Options) -> ExecutorError {
    let message = "programs are confined on Linux alone";
    ExecutorError::new(crate::ExecutorErrorKind::Unsupported, message)
}

#[async_trait]
impl CodeExecutor for ConfinedCodeExecutor {
    async fn execute_code(
        &self,
        context: &InvocationContext,
        input: CodeExecutionInput,
    ) -> Result<CodeExecutionResult, ExecutorError> {
        let options = self.check()?;
        check_input(&input)?;
        let inner = context.clone();
        task::run(context, |cancelled| async move {
            #[cfg(target_os = "linux")]
            return program::run(options, inner, input, cancelled).await;
            #[cfg(not(target_os = "linux"))]
            {
                drop((inner, input, cancelled));
                Err(unsupported(options))
            }
        })
        .await
    }

    fn error_retry_attempts(&self) -> u32 {
        NonZeroU32::new(self.retry_attempts).map_or(1, NonZeroU32::get)
    }

    fn timeout(&self) -> Option<Duration> {
        self.timeout
    }

    fn keeps_time(&self) -> bool {
        true
    }
}
