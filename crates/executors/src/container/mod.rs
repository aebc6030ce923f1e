//! Code in a container: each call in a fresh one, locked down, by the command line of Docker or Podman.
//!
//! In: code, files, an image. Out: what the program printed, the files that it left, its exit code.

mod engine;
mod readiness;
mod running;

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use async_trait::async_trait;
use isolane_child::{DEFAULT_LIMIT_BYTES, push_line};
use tokio_util::sync::CancellationToken;

use self::{
    engine::Engine,
    readiness::Readiness,
    running::{Container, Limits},
};
use crate::{
    CodeExecutionInput, CodeExecutionResult, CodeExecutor, ExecutorError, InvocationContext,
    checks::check_input,
    local::{in_thread, result},
    output_files::OutputFiles,
    task,
    workspace::Workspace,
};

/// The smallest part of a processor that systems allot. Engines take less for no limit, or refuse it.
const LEAST_CPUS: f64 = 0.01;

/// The bytes that engines can no longer count.
const MOST_BYTES: f64 = 9_223_372_036_854_775_808.0;

/// Runs each call in a fresh container, without network, without capabilities, as nobody, on a file system that it
/// cannot write to but for `/tmp`.
///
/// The engine is `docker` if it is on `PATH` and its daemon answers, else `podman`. All settings are public fields;
/// [`build_run_args`](Self::build_run_args) shows what follows of them. It does not protect from bugs of the kernel and
/// the engine.
#[derive(Clone, Debug)]
pub struct ContainerCodeExecutor {
    /// The image. It is pulled before the first call if it is not there.
    pub image: String,
    /// The program and its arguments. It reads the code from its standard input.
    pub argv: Vec<String>,
    /// The wall time of a call, the start of the container included; `None` has no limit.
    pub timeout: Option<Duration>,
    /// How often the loop tries in all if the program does not start. 0 counts as 1.
    pub retry_attempts: u32,
    /// The most memory, as the engine reads it: `256m`. Swap is none.
    pub memory: String,
    /// The most processors: `1.0`.
    pub cpus: String,
    /// The most processes and threads.
    pub pids_limit: u32,
    /// The user and group: `65534:65534`.
    pub user: String,
    /// Whether all capabilities are dropped, and no program may gain privileges. Without it for debugging only.
    pub drop_capabilities: bool,
    /// Arguments before the image. They can loosen everything.
    pub extra_args: Vec<String>,
    /// The engine's command line, by its path or from `PATH`; `None` looks for one.
    pub engine: Option<String>,
    /// Whether a call without input files has a working folder, too, and so output files.
    pub output_files: bool,
    /// The bytes of each stream that are kept.
    pub output_limit_bytes: usize,
    readiness: Readiness,
}

impl Default for ContainerCodeExecutor {
    fn default() -> Self {
        Self::new("python:3.12-slim")
    }
}

impl ContainerCodeExecutor {
    /// `python3 -` in containers of that image.
    #[must_use]
    pub fn new(image: impl Into<String>) -> Self {
        Self {
            image: image.into(),
            argv: ["python3", "-"].map(str::to_owned).to_vec(),
            timeout: Some(Duration::from_secs(30)),
            retry_attempts: 2,
            memory: "256m".to_owned(),
            cpus: "1.0".to_owned(),
            pids_limit: 128,
            user: "65534:65534".to_owned(),
            drop_capabilities: true,
            extra_args: Vec::new(),
            engine: None,
            output_files: false,
            output_limit_bytes: DEFAULT_LIMIT_BYTES,
            readiness: Readiness::default(),
        }
    }

    /// The wall time of a call, the start of the container included.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout: Some(timeout), ..self }
    }

    /// The program and its arguments.
    #[must_use]
    pub fn with_argv(self, argv: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { argv: argv.into_iter().map(Into::into).collect(), ..self }
    }

    /// The most memory: `1g`.
    #[must_use]
    pub fn with_memory(self, memory: impl Into<String>) -> Self {
        Self { memory: memory.into(), ..self }
    }

    /// The most processors: `0.5`.
    #[must_use]
    pub fn with_cpus(self, cpus: impl Into<String>) -> Self {
        Self { cpus: cpus.into(), ..self }
    }

    /// The most processes and threads.
    #[must_use]
    pub fn with_pids_limit(self, pids: u32) -> Self {
        Self { pids_limit: pids, ..self }
    }

    /// The user and group: `1000:1000`.
    #[must_use]
    pub fn with_user(self, user: impl Into<String>) -> Self {
        Self { user: user.into(), ..self }
    }

    /// Arguments before the image. They can loosen everything.
    #[must_use]
    pub fn with_extra_args(self, args: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { extra_args: args.into_iter().map(Into::into).collect(), ..self }
    }

    /// The engine's command line, by its path or from `PATH`.
    #[must_use]
    pub fn with_engine(self, engine: impl Into<String>) -> Self {
        Self { engine: Some(engine.into()), ..self }
    }

    /// Gives every call a working folder, whose new and changed files are its output files.
    #[must_use]
    pub fn with_output_files(self) -> Self {
        Self { output_files: true, ..self }
    }

    /// The arguments of the engine for a container of that name.
    #[must_use]
    pub fn build_run_args(&self, name: &str) -> Vec<String> {
        self.run_args(name, None)
    }

    /// The same, with that folder as the container's working folder.
    #[must_use]
    pub fn build_run_args_staged(&self, name: &str, folder: &Path) -> Vec<String> {
        self.run_args(name, Some(folder))
    }

    /// Looks for the engine, and pulls the image if it is not there, which may take 10 minutes. The first call does it
    /// otherwise, outside of its time.
    ///
    /// # Errors
    /// `engine_missing`, `engine_failed`, or `bad_input` for an option.
    pub async fn prepare(&self) -> Result<(), ExecutorError> {
        self.check()?;
        let executor = self.clone();
        let context = InvocationContext::default();
        let ready = |cancelled| async move { executor.ready(&cancelled).await.map(drop) };
        task::run(&context, ready).await
    }

    /// The engine, once it has the image.
    async fn ready(&self, cancelled: &CancellationToken) -> Result<Engine, ExecutorError> {
        tokio::select! {
            engine = self.readiness.engine(self.engine.as_deref(), &self.image) => engine,
            () = cancelled.cancelled() => Err(ExecutorError::cancelled()),
        }
    }

    fn check(&self) -> Result<(), ExecutorError> {
        let refuse = |why: &str| Err(ExecutorError::bad_input(why));
        if self.image.is_empty() || self.image.starts_with('-') {
            return refuse("image must not be empty, nor begin with '-'");
        }
        if self.user.is_empty() {
            return refuse(
                "user must not be empty: the program would be the image's, which may be root",
            );
        }
        let texts = [&self.image, &self.user].into_iter().chain(&self.engine);
        if texts.chain(&self.argv).chain(&self.extra_args).any(|text| text.contains('\0')) {
            return refuse("image, argv, user, extra_args and engine must not contain NUL");
        }
        if self.engine.as_ref().is_some_and(String::is_empty) {
            return refuse("engine must not be empty");
        }
        if self.timeout.is_some_and(|timeout| timeout.is_zero()) {
            return refuse("timeout must be positive");
        }
        if !is_size(&self.memory) {
            return refuse(
                "memory must be a positive number of bytes, or one with b, k, m or g behind it, such as '256m'",
            );
        }
        if number(&self.cpus).is_none_or(|cpus| cpus < LEAST_CPUS) {
            return refuse("cpus must be a positive number of at least 0.01, such as '0.5'");
        }
        if self.pids_limit == 0 {
            return refuse("pids_limit must be positive");
        }
        if self.output_limit_bytes == 0 {
            return refuse("output_limit_bytes must be positive");
        }
        Ok(())
    }

    fn run_args(&self, name: &str, folder: Option<&Path>) -> Vec<String> {
        let mut args: Vec<String> =
            ["run", "--rm", "-i", "--network=none", "--read-only"].map(str::to_owned).to_vec();
        args.push("--tmpfs=/tmp:rw,exec,size=64m".to_owned());
        args.push(format!("--memory={}", self.memory));
        // With more, memory beyond the limit would go to the disk.
        args.push(format!("--memory-swap={}", self.memory));
        args.push(format!("--cpus={}", self.cpus));
        args.push(format!("--pids-limit={}", self.pids_limit));
        args.push(format!("--user={}", self.user));
        if self.drop_capabilities {
            args.push("--cap-drop=ALL".to_owned());
            args.push("--security-opt=no-new-privileges".to_owned());
        }
        args.push("--name".to_owned());
        args.push(name.to_owned());
        if let Some(folder) = folder {
            let source = field(&format!("source={}", folder.display()));
            args.push(format!("--mount=type=bind,{source},target=/work"));
            args.push("--workdir=/work".to_owned());
        }
        args.extend(self.extra_args.iter().cloned());
        args.push(self.image.clone());
        args.extend(self.argv.iter().cloned());
        args
    }

    /// Runs a call in tokio.
    async fn run(
        self,
        context: InvocationContext,
        input: CodeExecutionInput,
        cancelled: CancellationToken,
    ) -> Result<CodeExecutionResult, ExecutorError> {
        let engine = self.ready(&cancelled).await?;
        let is_staged = self.output_files || !input.input_files.is_empty();
        let workspace = if is_staged {
            let (files, until) = (input.input_files, cancelled.clone());
            Some(in_thread(move || Workspace::shared(files, &until)).await??)
        } else {
            None
        };
        if cancelled.is_cancelled() {
            return Err(ExecutorError::cancelled());
        }
        let folder = workspace.as_ref().map(Workspace::path);
        let container = Container::new(&engine);
        let args = self.run_args(container.name(), folder.as_deref());
        let limits = Limits {
            timeout: self.timeout,
            cancelled: &cancelled,
            folder: folder.as_deref(),
            output_limit_bytes: self.output_limit_bytes,
        };
        let ended = container.run(args, input.code.into_bytes(), limits, &context).await;
        let mut outputs = OutputFiles::default();
        let mut warning = None;
        if let Some(mut workspace) = workspace {
            (outputs, workspace) = in_thread(move || (workspace.output_files(), workspace)).await?;
            warning = self.remove(&engine, workspace).await?;
        }
        let mut result = result(ended?, outputs, "container", self.timeout)?;
        if let Some(warning) = warning {
            push_line(&mut result.stderr, &warning);
        }
        Ok(result)
    }

    /// Removes a working folder. The caller may not delete what the program's user owns in it, but another container
    /// may. Returns a line that names the folder if something is left.
    async fn remove(
        &self,
        engine: &Engine,
        mut workspace: Workspace,
    ) -> Result<Option<String>, ExecutorError> {
        let (is_removed, kept) = in_thread(move || (workspace.remove().is_ok(), workspace)).await?;
        if is_removed {
            return Ok(None);
        }
        workspace = kept;
        let folder = workspace.path();
        let container = Container::new(engine);
        engine.run(&self.cleaner().run_args(container.name(), Some(&folder))).await;
        container.end().await;
        let left = in_thread(move || workspace.remove().is_err().then_some(folder)).await?;
        let line = |folder: PathBuf| {
            format!("isolane: the working folder '{}' could not be removed", folder.display())
        };
        Ok(left.map(line))
    }

    /// An executor whose program empties the working folder. It has the same user.
    fn cleaner(&self) -> Self {
        // The folder itself stays, as it is mounted.
        let clean = "chmod -R u+rwx /work; rm -rf /work";
        let mut cleaner = self.clone();
        // Images may have a program of their own that is put before every other.
        cleaner.extra_args.push("--entrypoint=sh".to_owned());
        cleaner.with_argv(["-c", clean])
    }
}

#[async_trait]
impl CodeExecutor for ContainerCodeExecutor {
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
        self.retry_attempts.max(1)
    }

    fn timeout(&self) -> Option<Duration> {
        self.timeout
    }

    fn keeps_time(&self) -> bool {
        true
    }
}

/// Whether that is a size as engines read it. They take the whole bytes of it, and none for no limit.
fn is_size(text: &str) -> bool {
    let unit: f64 = match text.as_bytes().last() {
        Some(b'k' | b'K') => 1024.0,
        Some(b'm' | b'M') => 1024.0 * 1024.0,
        Some(b'g' | b'G') => 1024.0 * 1024.0 * 1024.0,
        _ => 1.0,
    };
    let text = text.strip_suffix(['b', 'k', 'm', 'g', 'B', 'K', 'M', 'G']).unwrap_or(text);
    number(text).is_some_and(|number| (1.0..MOST_BYTES).contains(&(number * unit)))
}

/// A number as engines read it: digits, and a fraction.
fn number(text: &str) -> Option<f64> {
    let is_digit = |end: Option<char>| end.is_some_and(|end| end.is_ascii_digit());
    let is_number = is_digit(text.chars().next())
        && is_digit(text.chars().next_back())
        && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    text.parse().ok().filter(|_| is_number)
}

/// A field of an argument that engines read as comma-separated values.
fn field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}
