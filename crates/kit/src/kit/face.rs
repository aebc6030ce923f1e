//! The Rust face of a kit: tools, modules and sessions with Rust values, closures and serde.
//!
//! In: sources and options. Out: handles, whose results have what the kit adds to them.

use std::{
    fmt,
    future::Future,
    ops::Deref,
    pin::Pin,
    task::{Context, Poll},
};

use isolane::{
    Answer, CallOptions, CellOptions, Error, Execute, Execution, ExecutionOptions, ExecutionResult,
    Input, Inputs, Language, Report, Reports, Request, Session, SessionOptions, Terminator, Value,
};

use super::{CallRecord, Kit, KitOutcome, KitRun, amend::number};

/// The options of a tool.
#[derive(Clone, Debug, Default)]
pub struct ToolOptions {
    /// The tool's `args`: a plain object, which is there only if it is given.
    pub args: Option<Input>,
    /// Further names that the tool sees.
    pub globals: Inputs,
    /// Whether it has a `report`, and the function that receives the reported values.
    pub report: Report,
    /// The language.
    pub language: Language,
    /// The name in stacks, by default `<tool>`.
    pub filename: Option<String>,
    /// The most memory, in place of the kit's limit.
    pub memory_limit_bytes: Option<u64>,
    /// The milliseconds after which it is terminated, in place of the kit's limit.
    pub timeout_ms: Option<u64>,
}

/// The options of a module: those of any run, and a time limit.
#[derive(Clone, Debug, Default)]
pub struct CodeOptions {
    /// Those of any run.
    pub run: ExecutionOptions,
    /// The milliseconds after which it is terminated, in place of the kit's limit.
    pub timeout_ms: Option<u64>,
}

impl From<ExecutionOptions> for CodeOptions {
    fn from(run: ExecutionOptions) -> Self {
        Self { run, timeout_ms: None }
    }
}

/// The result of a run, a tool or a cell of a kit. It is an [`ExecutionResult`], with more.
#[derive(Clone, Debug, PartialEq)]
pub struct KitResult {
    /// The result as of any run. Of a tool the value is in JSON form.
    pub run: ExecutionResult,
    /// The JSON text of the value of a tool that succeeded.
    pub json: Option<String>,
    /// The calls of capabilities, in order.
    pub calls: Vec<CallRecord>,
    /// How many further calls have no record.
    pub calls_dropped: u64,
}

impl Deref for KitResult {
    type Target = ExecutionResult;

    fn deref(&self) -> &ExecutionResult {
        &self.run
    }
}

impl Kit {
    /// Runs a tool: TypeScript with top-level `await` and `return`, whose value is that of `resolve(value)`, of `return`,
    /// or of its last expression. Returns at once; the handle yields misuse of an option, and a kit that is closed.
    ///
    /// ```
    /// use isolane::Input;
    /// use isolane_kit::{Kit, KitOptions, ToolOptions, store::StateLimits};
    ///
    /// let kit = Kit::new(KitOptions { state: Some(StateLimits::default()), ..Default::default() })?;
    /// let source = "
    ///     const count = (await state.get('count') ?? 0) + args.by;
    ///     await state.set('count', count);
    ///     return { count };
    /// ";
    /// let args = Some(Input::object([("by", Input::from(3))]));
    /// let result = kit.run_tool(source, ToolOptions { args, ..Default::default() }).wait()?;
    /// assert_eq!(result.json.as_deref(), Some(r#"{"count":3}"#));
    /// assert_eq!(result.calls[1].name, "state.set");
    /// # Ok::<(), isolane::Error>(())
    /// ```
    pub fn run_tool(&self, source: impl Into<String>, options: ToolOptions) -> KitExecution {
        let ToolOptions { args, globals, report, language, filename, .. } = options;
        let run = ExecutionOptions {
            execute: Execute { function: None, args: args.into_iter().collect() },
            globals,
            report,
            language,
            filename,
            memory_limit_bytes: options.memory_limit_bytes,
            ..ExecutionOptions::default()
        };
        let amend = |request| self.tool(with_timeout(request, options.timeout_ms));
        let execution = self
            .runtime()
            .run_code_with(source, run, |request| amend(request).map(|(request, _)| request));
        KitExecution::new(execution, self)
    }

    /// Runs a module, as [`isolane::run_code`] does it, with the kit's capabilities.
    pub fn run_code(
        &self,
        source: impl Into<String>,
        options: impl Into<CodeOptions>,
    ) -> KitExecution {
        let CodeOptions { run, timeout_ms } = options.into();
        let amend = |request| self.code(with_timeout(request, timeout_ms));
        let execution = self
            .runtime()
            .run_code_with(source, run, |request| amend(request).map(|(request, _)| request));
        KitExecution::new(execution, self)
    }

    /// Opens a session with the kit's capabilities. Each cell has limits of its own.
    ///
    /// # Errors
    /// Misuse of an option; a kit or a runtime that is closed.
    pub fn session(&self, options: SessionOptions) -> Result<KitSession, Error> {
        let session =
            self.runtime().session_with(options, |request| self.session_request(request))?;
        Ok(KitSession { session, kit: self.clone() })
    }
}

fn with_timeout(request: Request, timeout_ms: Option<u64>) -> Request {
    Request { timeout_ms: timeout_ms.map(number), ..request }
}

/// A handle on a run of a kit. Awaiting it, in any executor, yields the result; dropping it terminates the run.
#[must_use = "dropping it ends the run"]
pub struct KitExecution {
    execution: Execution,
    run: Option<KitRun>,
    /// Keeps the kit open.
    _kit: Kit,
}

impl KitExecution {
    fn new(execution: Execution, kit: &Kit) -> Self {
        let run = execution.interception().as_ref().and_then(KitRun::of);
        Self { execution, run, _kit: kit.clone() }
    }

    /// As [`Execution::terminate`].
    pub fn terminate(&self, reason: Option<&str>) {
        self.execution.terminate(reason);
    }

    /// As [`Execution::terminator`].
    #[must_use]
    pub fn terminator(&self) -> Terminator {
        self.execution.terminator()
    }

    /// As [`Execution::running`].
    #[must_use]
    pub fn running(&self) -> bool {
        self.execution.running()
    }

    /// As [`Execution::reports`], without secrets.
    #[must_use]
    pub fn reports(&self) -> Vec<Value> {
        self.execution.reports()
    }

    /// As [`Execution::report_stream`], without secrets.
    pub fn report_stream(&self) -> Reports {
        self.execution.report_stream()
    }

    /// Blocks this thread until the run has settled, as [`Execution::wait`].
    ///
    /// # Errors
    /// Misuse of an option, a kit that is closed, and as [`Execution::wait`].
    pub fn wait(self) -> Result<KitResult, Error> {
        let Self { execution, run, _kit } = self;
        execution.wait().map(|result| complete(result, run.as_ref()))
    }
}

fn complete(result: ExecutionResult, run: Option<&KitRun>) -> KitResult {
    let KitOutcome { json, calls, calls_dropped } = run.map(KitRun::outcome).unwrap_or_default();
    KitResult { run: result, json, calls, calls_dropped }
}

impl Future for KitExecution {
    type Output = Result<KitResult, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let polled = Pin::new(&mut self.execution).poll(context);
        polled.map(|done| done.map(|result| complete(result, self.run.as_ref())))
    }
}

impl fmt::Debug for KitExecution {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("KitExecution").field("running", &self.running()).finish_non_exhaustive()
    }
}

/// A session of a kit. It is a [`Session`], whose cells give a [`KitResult`].
pub struct KitSession {
    session: Session,
    kit: Kit,
}

impl KitSession {
    /// As [`Session::run`].
    pub fn run(&self, source: impl Into<String>, options: CellOptions) -> KitExecution {
        KitExecution::new(self.session.run(source, options), &self.kit)
    }

    /// As [`Session::call_with`].
    pub fn call(
        &self,
        name: impl Into<String>,
        args: impl serde::Serialize,
        options: CallOptions,
    ) -> KitExecution {
        KitExecution::new(self.session.call_with(name, args, options), &self.kit)
    }

    /// The session, to update it, to reset it and to ask for its names.
    #[must_use]
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// As [`Session::fork`].
    ///
    /// # Errors
    /// As [`Session::fork`].
    pub fn fork(&self) -> impl Future<Output = Result<Self, Error>> + use<> {
        let (forked, kit) = (self.session.fork(), self.kit.clone());
        async move { Ok(Self { session: forked.await?, kit }) }
    }

    /// As [`Session::close`].
    pub fn close(&self) -> Answer<()> {
        self.session.close()
    }
}

impl fmt::Debug for KitSession {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("KitSession").field("session", &self.session).finish_non_exhaustive()
    }
}
