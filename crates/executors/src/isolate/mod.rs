//! The executor of JavaScript and TypeScript: each call is a cell in an isolate of Isolane.
//!
//! In: code, and files. Out: what its console printed, its value, the files that it wrote, and an exit code.
//!
//! `session` is one open isolate and `sessions` are those that stay; `host` opens them. `console` has the streams of a
//! call, `files` its module `files`, and `ending` makes an exit code and the last lines of its end.

mod console;
mod ending;
mod files;
mod host;
mod own_runtime;
mod session;
mod sessions;

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::{Duration, Instant},
};

use async_trait::async_trait;
use isolane::{Error, ErrorKind, Inputs, Isolation, Language, Report, Runtime};
use isolane_child::{DEFAULT_LIMIT_BYTES, push_line};
use isolane_door::{HostCell, SessionHost};

pub use self::own_runtime::{HostRuntime, OwnRuntime};
use self::{
    console::Console,
    files::Files,
    host::RustHost,
    session::{CallState, Opened},
    sessions::{Found, Sessions},
};
use crate::{
    CodeBlockDelimiters, CodeExecutionInput, CodeExecutionResult, CodeExecutor, ExecutorError,
    ExecutorErrorKind, InvocationContext, checks::check_input, output_files::OutputFiles,
};

/// Runs JavaScript and TypeScript in an isolate, with exactly the capabilities that it is given.
///
/// The code needs no export: `return` and top-level `await` work, and the value of the last expression is printed. It has
/// the files of the call in a module `files`. Without capabilities it can compute, and nothing else.
///
/// Under isolation by thread a bug of the engine's C code is a bug of this process. Run code of strangers with
/// [`with_isolation`](Self::with_isolation), in a process.
///
/// ```
/// use isolane_executors::{CodeExecutionInput, CodeExecutor, InvocationContext, IsolateCodeExecutor};
///
/// let executor = IsolateCodeExecutor::new();
/// let input = CodeExecutionInput::new("const rows: number[] = [1, 2, 3];\nconsole.log(rows);\nrows.length");
/// let context = InvocationContext::default();
/// let result = futures::executor::block_on(executor.execute_code(&context, input))?;
/// assert_eq!(result.stdout, "[ 1, 2, 3 ]\n3\n");
/// assert_eq!(result.exit_code, Some(0));
/// # Ok::<(), isolane_executors::ExecutorError>(())
/// ```
#[derive(Clone, Debug)]
pub struct IsolateCodeExecutor {
    rust: RustHost,
    /// The opener of a binding, in place of the Rust face's.
    foreign: Option<(Arc<dyn SessionHost>, HostRuntime)>,
    limits: Limits,
    state: Arc<State>,
}

#[derive(Clone, Copy, Debug)]
struct Limits {
    timeout: Option<Duration>,
    is_stateful: bool,
    shows_value: bool,
    attempts: u32,
    output_bytes: usize,
}

/// The sessions of an executor. Copies that are made by a builder have their own.
#[derive(Debug, Default)]
struct State {
    sessions: Mutex<Sessions>,
    /// Whether a task waits for sessions that nobody uses.
    is_swept: Mutex<bool>,
    /// The sessions of single calls.
    single: Mutex<Vec<Weak<Opened>>>,
}

impl IsolateCodeExecutor {
    /// An executor of TypeScript without capabilities: 30 seconds and 128 MiB a call, and no state between them.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An executor whose sessions a binding opens in that runtime. The options of the Rust face that concern sessions do
    /// nothing then.
    #[must_use]
    pub fn with_host(self, host: Arc<dyn SessionHost>, runtime: HostRuntime) -> Self {
        Self { foreign: Some((host, runtime)), ..self.anew() }
    }

    /// The language of code that names none; TypeScript unless told otherwise.
    #[must_use]
    pub fn with_language(mut self, language: Language) -> Self {
        self.rust.options.language = language;
        self.anew()
    }

    /// Names that all code sees.
    #[must_use]
    pub fn with_globals(mut self, globals: Inputs) -> Self {
        self.rust.options.globals = globals;
        self.anew()
    }

    /// Bridged modules, by their specifiers. One that is called `files` takes the place of the executor's.
    #[must_use]
    pub fn with_imports(mut self, imports: BTreeMap<String, Inputs>) -> Self {
        self.rust.options.imports = imports;
        self.anew()
    }

    /// Modules that code may import, by their relative specifiers.
    #[must_use]
    pub fn with_modules(mut self, modules: BTreeMap<String, String>) -> Self {
        self.rust.options.modules = modules;
        self.anew()
    }

    /// The most memory that an isolate may hold; 128 MiB unless told otherwise. Logs count until their call is over.
    #[must_use]
    pub fn with_memory_limit_bytes(mut self, bytes: u64) -> Self {
        self.rust.options.memory_limit_bytes = Some(bytes);
        self.anew()
    }

    /// The runtime of the isolates, in place of the process's own.
    #[must_use]
    pub fn with_runtime(mut self, runtime: Runtime) -> Self {
        self.rust.runtime = Some(runtime);
        self.anew()
    }

    /// Where isolates live, in a runtime of this executor.
    #[must_use]
    pub fn with_isolation(mut self, isolation: Isolation) -> Self {
        self.rust.set_isolation(isolation);
        self.anew()
    }

    /// The receiver of reported values. Reports are in no stream.
    #[must_use]
    pub fn with_report(mut self, report: impl Into<Report>) -> Self {
        self.rust.options.report = report.into();
        self.anew()
    }

    /// The time of a call; 30 seconds unless told otherwise.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.limits.timeout = Some(timeout);
        self
    }

    /// No limit of time but the runtime's cap on CPU time.
    #[must_use]
    pub fn without_timeout(mut self) -> Self {
        self.limits.timeout = None;
        self
    }

    /// Whether calls with the same `execution_id` share an isolate. At most 100 stay, each for 30 minutes without use.
    #[must_use]
    pub fn with_stateful(mut self, is_stateful: bool) -> Self {
        self.limits.is_stateful = is_stateful;
        self.anew()
    }

    /// Whether the value of the code is the last line of its output; it is unless told otherwise.
    #[must_use]
    pub fn with_show_value(mut self, shows_value: bool) -> Self {
        self.limits.shows_value = shows_value;
        self
    }

    /// How often the loop tries in all if the code does not start.
    #[must_use]
    pub fn with_retry_attempts(mut self, attempts: u32) -> Self {
        self.limits.attempts = attempts;
        self
    }

    /// The most bytes of each stream; 1 MiB unless told otherwise.
    #[must_use]
    pub fn with_output_limit(mut self, bytes: usize) -> Self {
        self.limits.output_bytes = bytes;
        self
    }

    /// Closes all sessions, ends the calls in them, and closes the runtime of [`with_isolation`](Self::with_isolation). A
    /// later call begins anew.
    pub async fn close(&self) {
        let single = std::mem::take(&mut *lock(&self.state.single));
        let stay = lock(&self.state.sessions).take_all();
        for session in single.iter().filter_map(Weak::upgrade).chain(stay) {
            session.close().await;
        }
        // Options that exclude each other have made no runtime.
        if let Ok(runtime) = self.runtime() {
            runtime.close().await;
        }
    }

    /// The same without the sessions of calls so far.
    fn anew(self) -> Self {
        Self { state: Arc::default(), ..self }
    }

    fn open(&self, has_later_cells: bool) -> Result<Opened, Error> {
        let host: &dyn SessionHost = match &self.foreign {
            Some((host, _)) => &**host,
            None => &self.rust,
        };
        Opened::new(host, &self.runtime()?.runtime()?, has_later_cells)
    }

    fn runtime(&self) -> Result<HostRuntime, Error> {
        match &self.foreign {
            Some((_, runtime)) => Ok(runtime.clone()),
            None => self.rust.runtime(),
        }
    }

    /// Runs a call in a session of its own.
    async fn execute_alone(
        &self,
        context: &InvocationContext,
        call: Call,
    ) -> Result<CodeExecutionResult, ExecutorError> {
        let session = Arc::new(self.open(false).map_err(refused)?);
        {
            let mut single = lock(&self.state.single);
            single.retain(|session| session.strong_count() > 0);
            single.push(Arc::downgrade(&session));
        }
        Ok(call.run(&session, context).await?.0)
    }

    /// Runs a call in the session with that id, after those that are there already.
    async fn execute_in(
        &self,
        id: String,
        context: &InvocationContext,
        call: Call,
    ) -> Result<CodeExecutionResult, ExecutorError> {
        let open = || self.open(true);
        let found = lock(&self.state.sessions).find(&id, Instant::now(), open).map_err(refused)?;
        self.sweep();
        let Found { session, is_anew } = found;
        let call = Call { is_anew, ..call };
        let ended = call.run(&session, context).await;
        let is_lost = ended.as_ref().is_ok_and(|(_, is_reset)| *is_reset);
        lock(&self.state.sessions).used(&id, &session, is_lost, Instant::now());
        ended.map(|(result, _)| result)
    }

    /// Has a task close the sessions that nobody uses, even if no call comes any more.
    fn sweep(&self) {
        let mut is_swept = lock(&self.state.is_swept);
        if std::mem::replace(&mut *is_swept, true) {
            return;
        }
        let state = Arc::downgrade(&self.state);
        // The task ends with the executor, or when there is no session left.
        drop(isolane::spawn(async move {
            loop {
                let Some(state) = state.upgrade() else { return };
                let mut is_swept = lock(&state.is_swept);
                let Some(next) = lock(&state.sessions).drop_idle(Instant::now()) else {
                    *is_swept = false;
                    return;
                };
                drop(is_swept);
                drop(state);
                tokio::time::sleep_until(next.into()).await;
            }
        }));
    }
}

impl Default for IsolateCodeExecutor {
    fn default() -> Self {
        let limits = Limits {
            timeout: Some(Duration::from_secs(30)),
            is_stateful: false,
            shows_value: true,
            attempts: 2,
            output_bytes: DEFAULT_LIMIT_BYTES,
        };
        Self { rust: RustHost::default(), foreign: None, limits, state: Arc::default() }
    }
}

#[async_trait]
impl CodeExecutor for IsolateCodeExecutor {
    async fn execute_code(
        &self,
        context: &InvocationContext,
        input: CodeExecutionInput,
    ) -> Result<CodeExecutionResult, ExecutorError> {
        check_input(&input)?;
        if self.limits.timeout.is_some_and(|timeout| timeout.is_zero()) {
            return Err(ExecutorError::bad_input("the time limit must not be 0"));
        }
        let language = match language(&input.language) {
            Ok(language) => language,
            Err(result) => return Ok(result),
        };
        // Before a session is opened, which costs far more than to look.
        if context.cancellation.is_cancelled() {
            return Err(ExecutorError::cancelled());
        }
        let id = input.execution_id.clone().filter(|_| self.limits.is_stateful);
        let call = Call { input, language, limits: self.limits, is_anew: false };
        match id {
            Some(id) => self.execute_in(id, context, call).await,
            None => self.execute_alone(context, call).await,
        }
    }

    fn stateful(&self) -> bool {
        self.limits.is_stateful
    }

    fn error_retry_attempts(&self) -> u32 {
        self.limits.attempts
    }

    fn timeout(&self) -> Option<Duration> {
        self.limits.timeout
    }

    fn keeps_time(&self) -> bool {
        true
    }

    fn code_block_delimiters(&self) -> Vec<CodeBlockDelimiters> {
        ["tool_code", "javascript", "js", "typescript", "ts"]
            .map(|language| (format!("```{language}\n"), "\n```".to_owned()))
            .to_vec()
    }
}

/// One call.
struct Call {
    input: CodeExecutionInput,
    language: Option<Language>,
    limits: Limits,
    /// Whether an earlier session of its id is gone.
    is_anew: bool,
}

impl Call {
    /// Runs the code, and says whether the session has lost its state.
    async fn run(
        self,
        session: &Opened,
        context: &InvocationContext,
    ) -> Result<(CodeExecutionResult, bool), ExecutorError> {
        let Self { input, language, limits, is_anew } = self;
        let CodeExecutionInput { code, input_files, execution_id, .. } = input;
        if context.cancellation.is_cancelled() {
            return Err(ExecutorError::cancelled());
        }
        let call = Arc::new(CallState {
            console: Console::new(context.clone(), limits.output_bytes),
            files: Files::new(input_files),
        });
        let (console, files) = (&call.console, &call.files);
        // The code of a call that is cancelled may log on until it is ended.
        let _closing = console.closing();
        if let Some(id) = execution_id.filter(|_| is_anew) {
            let id: String = id.chars().take(100).collect();
            console
                .err(&format!("isolane: the session {id:?} was gone; this call began a new one"));
        }
        let timeout_ms = limits
            .timeout
            .map(|timeout| u64::try_from(timeout.as_micros().div_ceil(1000)).unwrap_or(u64::MAX));
        let cell = session.run(code.clone(), HostCell { language, timeout_ms }, Arc::clone(&call));
        let ended = tokio::select! {
            biased;
            () = context.cancellation.cancelled() => return Err(ExecutorError::cancelled()),
            ended = cell => ended,
        };
        let result = ended.map_err(refused)?;
        let written = files.end();
        let shown = (limits.timeout, limits.shows_value);
        let ending = ending::end(&result, &code, console, shown);
        let mut outputs = OutputFiles::default();
        for file in written {
            outputs.add(file);
        }
        let (stdout, mut stderr) = console.take();
        outputs.tell(&mut stderr);
        if let Some(line) = &ending.last_line {
            push_line(&mut stderr, line);
        }
        let (output_files, exit_code) = (outputs.files, ending.exit_code);
        Ok((CodeExecutionResult { stdout, stderr, output_files, exit_code }, ending.is_reset))
    }
}

/// The language of an id, or the result of a program in a language that the isolate has not.
fn language(id: &str) -> Result<Option<Language>, CodeExecutionResult> {
    match id {
        "" | "tool_code" => Ok(None),
        "javascript" | "js" => Ok(Some(Language::JavaScript)),
        "typescript" | "ts" => Ok(Some(Language::TypeScript)),
        other => {
            let shown: String = other.chars().take(100).collect();
            let stderr = format!("isolate runs javascript and typescript, not '{shown}'\n");
            let exit_code = Some(ending::NO_SUCH_LANGUAGE);
            Err(CodeExecutionResult { stderr, exit_code, ..CodeExecutionResult::default() })
        }
    }
}

/// A session that did not open, or a cell that did not start.
fn refused(error: Error) -> ExecutorError {
    let kind = match error.kind() {
        ErrorKind::Type | ErrorKind::Range | ErrorKind::Serialization => {
            ExecutorErrorKind::BadInput
        }
        ErrorKind::Internal => ExecutorErrorKind::Spawn,
        _ => ExecutorErrorKind::Other,
    };
    ExecutorError::new(kind, error.message()).with_source(error)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for Opened {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Opened").finish_non_exhaustive()
    }
}
