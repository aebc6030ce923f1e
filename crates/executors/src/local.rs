//! Code in a subprocess: an interpreter that reads it from its standard input.
//!
//! In: code, files. Out: what it printed, the files that it left, its exit code. It protects from nothing: the program has
//! the rights of its caller. It is for code that the caller would run by hand.

use std::{
    collections::BTreeMap,
    env,
    ffi::OsString,
    io,
    num::NonZeroU32,
    path::{Path, PathBuf, absolute},
    time::Duration,
};

use async_trait::async_trait;
use isolane_child::{self as child, Bounds, DEFAULT_LIMIT_BYTES, Ended, Ending, push_line};
use tokio::{process::Command, task::spawn_blocking, time::timeout};
use tokio_util::sync::CancellationToken;

use crate::{
    CodeExecutionInput, CodeExecutionResult, CodeExecutor, ExecutorError, ExecutorErrorKind,
    InvocationContext,
    checks::check_input,
    output_files::OutputFiles,
    task,
    workspace::{MOST_FOLDER_BYTES, Workspace},
};

/// The variables of the caller's environment that a program has. Those that begin with `LC_` come to them.
const KEPT_VARIABLES: [&str; 7] = ["PATH", "HOME", "USER", "LANG", "TZ", "TMPDIR", "VIRTUAL_ENV"];

/// Runs each call in a subprocess: `python3 -`, unless told otherwise.
///
/// The program has a fresh working folder, a group of processes, which is killed at the end of the call, and a short
/// environment. It is not kept from anything that its caller may do.
///
/// ```
/// use isolane_executors::{CodeExecutionInput, CodeExecutor, LocalCodeExecutor};
///
/// # futures::executor::block_on(async {
/// let shell = LocalCodeExecutor::new().with_interpreter("sh").with_args(["-s"]);
/// let result = shell.execute_code(&Default::default(), CodeExecutionInput::new("echo $((6 * 7))")).await?;
/// assert_eq!((result.stdout.as_str(), result.exit_code), ("42\n", Some(0)));
/// # Ok::<(), isolane_executors::ExecutorError>(())
/// # });
/// ```
#[derive(Clone, Debug)]
pub struct LocalCodeExecutor {
    interpreter: String,
    args: Vec<String>,
    timeout: Option<Duration>,
    retry_attempts: u32,
    env: BTreeMap<String, String>,
    inherits_env: bool,
    output_limit_bytes: usize,
}

impl Default for LocalCodeExecutor {
    fn default() -> Self {
        Self::new()
    }
}

impl LocalCodeExecutor {
    /// `python3 -`, 30 seconds, 2 attempts, 1 MiB of each stream.
    #[must_use]
    pub fn new() -> Self {
        Self {
            interpreter: "python3".to_owned(),
            args: vec!["-".to_owned()],
            timeout: Some(Duration::from_secs(30)),
            retry_attempts: 2,
            env: BTreeMap::new(),
            inherits_env: false,
            output_limit_bytes: DEFAULT_LIMIT_BYTES,
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

    /// The wall time of a call, from the start of the program.
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

    /// Gives the program a variable, in place of the caller's of that name.
    #[must_use]
    pub fn with_env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    /// Gives the program the caller's whole environment, with all keys that are in it.
    #[must_use]
    pub fn with_inherited_env(self) -> Self {
        Self { inherits_env: true, ..self }
    }

    /// The bytes of each stream that are kept.
    #[must_use]
    pub fn with_output_limit(self, bytes: usize) -> Self {
        Self { output_limit_bytes: bytes, ..self }
    }

    fn check(&self) -> Result<(), ExecutorError> {
        if self.interpreter.is_empty() {
            return Err(ExecutorError::bad_input("interpreter must not be empty"));
        }
        if self.timeout.is_some_and(|timeout| timeout.is_zero()) {
            return Err(ExecutorError::bad_input("timeout must be positive"));
        }
        if self.output_limit_bytes == 0 {
            return Err(ExecutorError::bad_input("output_limit_bytes must be positive"));
        }
        let is_bad = |name: &&String| name.is_empty() || name.contains(['=', '\0']);
        if let Some(name) = self.env.keys().find(is_bad) {
            let message = format!("{name:?} is not a valid name of a variable");
            return Err(ExecutorError::bad_input(message));
        }
        let mut texts = self.args.iter().chain(self.env.values()).chain([&self.interpreter]);
        if texts.any(|text| text.contains('\0')) {
            let message = "interpreter, args and env must not contain NUL";
            return Err(ExecutorError::bad_input(message));
        }
        Ok(())
    }

    /// The program to start. A relative path begins at the caller's folder; the system would let it begin at the working
    /// folder.
    fn program(&self) -> PathBuf {
        let path = Path::new(&self.interpreter);
        if path.components().count() == 1 {
            // It is looked for in `PATH`.
            return path.to_owned();
        }
        absolute(path).unwrap_or_else(|_| path.to_owned())
    }

    fn command(&self, workspace: &Workspace) -> Command {
        let mut command = Command::new(self.program());
        command.args(&self.args).current_dir(workspace.path());
        if !self.inherits_env {
            command.env_clear().envs(kept_variables());
        }
        command.envs(&self.env);
        command
    }

    /// Runs a call in tokio.
    async fn run(
        self,
        context: InvocationContext,
        input: CodeExecutionInput,
        cancelled: CancellationToken,
    ) -> Result<CodeExecutionResult, ExecutorError> {
        let (files, until) = (input.input_files, cancelled.clone());
        let workspace = in_thread(move || Workspace::new(files, &until)).await??;
        if cancelled.is_cancelled() {
            return Err(ExecutorError::cancelled());
        }
        let bounds = Bounds { timeout: self.timeout, output_limit_bytes: self.output_limit_bytes };
        let command = self.command(&workspace);
        let stop = async {
            cancelled.cancelled().await;
            Ending::Cancelled
        };
        let ended = child::run(command, input.code.into_bytes(), bounds, &context, stop)
            .await
            .map_err(|error| self.not_started(error))?;
        let (outputs, workspace) = in_thread(move || (workspace.output_files(), workspace)).await?;
        // A file of another user in it stays in the system's folder for temporary files. A program may leave more folders
        // than can be removed in this time: their removal goes on behind the call.
        let removal = in_thread(move || drop(workspace));
        if let Ok(removed) = timeout(MOST_REMOVAL, removal).await {
            removed?;
        }
        result(ended, outputs, &self.interpreter, self.timeout)
    }

    fn not_started(&self, error: io::Error) -> ExecutorError {
        let message = format!("cannot start {:?}: {error}", self.interpreter);
        ExecutorError::new(ExecutorErrorKind::Spawn, message).with_source(error)
    }
}

#[async_trait]
impl CodeExecutor for LocalCodeExecutor {
    async fn execute_code(
        &self,
        context: &InvocationContext,
        input: CodeExecutionInput,
    ) -> Result<CodeExecutionResult, ExecutorError> {
        self.check()?;
        check_input(&input)?;
        let (executor, inner) = (self.clone(), context.clone());
        task::run(context, |cancelled| executor.run(inner, input, cancelled)).await
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

/// How long a call waits for the removal of its working folder.
const MOST_REMOVAL: Duration = Duration::from_secs(3);

/// The exit code of a program that was killed as its working folder was full: that of `SIGXFSZ` in a shell.
const OVERFULL: i32 = 153;

/// The result of a process that has ended; an error if it was cancelled. `name` is for the line about a timeout.
pub(crate) fn result(
    ended: Ended,
    outputs: OutputFiles,
    name: &str,
    timeout: Option<Duration>,
) -> Result<CodeExecutionResult, ExecutorError> {
    let mut stderr = ended.stderr.into_text();
    outputs.tell(&mut stderr);
    let exit_code = match ended.ending {
        Ending::Exited(code) => code,
        Ending::Signalled(signal) => Some(128 + signal),
        Ending::Cancelled => return Err(ExecutorError::cancelled()),
        Ending::Overfull => {
            let line =
                format!("isolane: the working folder holds more than {MOST_FOLDER_BYTES} bytes");
            push_line(&mut stderr, &line);
            Some(OVERFULL)
        }
        Ending::TimedOut => {
            let time = shown_time(timeout.unwrap_or_default());
            push_line(&mut stderr, &format!("{name} execution timed out after {time}"));
            None
        }
    };
    let stdout = ended.stdout.into_text();
    Ok(CodeExecutionResult { stdout, stderr, output_files: outputs.files, exit_code })
}

/// A time in seconds if it is a whole number of them, else in milliseconds.
pub(crate) fn shown_time(time: Duration) -> String {
    if time.subsec_nanos() == 0 {
        return format!("{}s", time.as_secs());
    }
    format!("{}ms", time.as_micros().div_ceil(1000))
}

/// Does what blocks on a thread that may.
pub(crate) async fn in_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ExecutorError> {
    spawn_blocking(work).await.map_err(|error| {
        ExecutorError::new(ExecutorErrorKind::Other, "the library failed").with_source(error)
    })
}

fn kept_variables() -> impl Iterator<Item = (OsString, OsString)> {
    env::vars_os().filter(|(name, _)| {
        name.to_str().is_some_and(|name| KEPT_VARIABLES.contains(&name) || name.starts_with("LC_"))
    })
}
