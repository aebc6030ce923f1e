//! The call of an executor for one program, with retries and a deadline.
//!
//! In: a program and its files. Out: the outcome and the result, whatever the executor does; nothing if the run was
//! cancelled.

use std::{
    any::Any,
    mem,
    panic::AssertUnwindSafe,
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::FutureExt as _;
use isolane_child::Output;

use super::{
    builder::Settings,
    event::LoopEvent,
    events::{Events, Live},
    files::Files,
    reply::Program,
};
use crate::{
    CancellationToken, CodeExecutionInput, CodeExecutionResult, ExecutorError, ExecutorErrorKind,
    InvocationContext, Outcome, local::shown_time,
};

/// How much longer than its time limit a call of an executor may take that does not keep its time by itself.
const GRACE: Duration = Duration::from_secs(5);

/// A call that is about to be made.
pub(super) struct Call<'c> {
    pub(super) settings: &'c Settings,
    pub(super) events: &'c Events,
    pub(super) cancellation: &'c CancellationToken,
    pub(super) run_id: &'c str,
    pub(super) execution_id: Option<&'c String>,
    pub(super) turn: u32,
    pub(super) index: usize,
}

/// A program that is done.
pub(super) struct Done {
    pub(super) outcome: Outcome,
    pub(super) output: String,
}

/// The end of a program, before it is told.
struct End {
    outcome: Outcome,
    result: CodeExecutionResult,
    /// The text for the model in place of the result's output.
    told: Option<String>,
}

/// How an attempt ended.
enum Attempt {
    Returned(Result<CodeExecutionResult, ExecutorError>, Duration),
    Overdue(Duration),
    Cancelled,
}

impl Call<'_> {
    /// Runs a program. `None`: the run was cancelled.
    pub(super) async fn run(&self, program: &Program, files: &mut Files<'_>) -> Option<Done> {
        let (turn, index) = (self.turn, self.index);
        self.begin(program);
        let executor = &self.settings.executor;
        let most = executor.error_retry_attempts().max(1);
        let started = Instant::now();
        let mut attempt = 1;
        let mut end = loop {
            let error = match self.attempt(attempt, program, files).await {
                Attempt::Cancelled => return None,
                Attempt::Overdue(time) => {
                    let text = format!("the executor did not return within {}", shown_time(time));
                    break End::told(Outcome::OutcomeDeadlineExceeded, text.clone(), text);
                }
                Attempt::Returned(Ok(result), took) => {
                    let outcome = outcome(&result, took, executor.timeout());
                    break End { outcome, result, told: None };
                }
                Attempt::Returned(Err(error), _) => error,
            };
            if !error.kind().is_retried() || attempt >= most {
                let (text, told) = (error.shown().to_owned(), error.told().to_owned());
                break End::told(Outcome::OutcomeFailed, text, told);
            }
            let error = error.message().to_owned();
            self.events.push(LoopEvent::Retry { turn, index, attempt, error });
            attempt += 1;
        };
        let left = if self.events.is_read() {
            end.result.output_files.clone()
        } else {
            mem::take(&mut end.result.output_files)
        };
        files.add(left, &mut end.result.stderr);
        Some(self.end(end, attempt, started.elapsed()))
    }

    /// Tells of a program that is not run, and why.
    pub(super) fn refuse(&self, program: &Program, why: &str) -> Done {
        self.begin(program);
        let end = End::told(Outcome::OutcomeFailed, why.to_owned(), why.to_owned());
        self.end(end, 0, Duration::ZERO)
    }

    fn begin(&self, program: &Program) {
        if self.events.is_read() {
            let Program { language, code } = program.clone();
            let (turn, index) = (self.turn, self.index);
            self.events.push(LoopEvent::Code { turn, index, language, code });
        }
    }

    fn end(&self, end: End, attempts: u32, took: Duration) -> Done {
        let End { outcome, result, told } = end;
        let output = told.unwrap_or_else(|| result.combined_output());
        let output = cut(output, self.settings.max_output_bytes);
        self.events.push(LoopEvent::Result {
            turn: self.turn,
            index: self.index,
            outcome,
            output: output.clone(),
            result,
            attempts,
            duration_ms: took.as_secs_f64() * 1e3,
        });
        Done { outcome, output }
    }

    async fn attempt(&self, attempt: u32, program: &Program, files: &Files<'_>) -> Attempt {
        let executor = Arc::clone(&self.settings.executor);
        // An executor that does not notice that its future is dropped has the token.
        let cancellation = self.cancellation.child_token();
        let _guard = cancellation.clone().drop_guard();
        let live = self.events.output(self.turn, self.index);
        let sink = |live: &Arc<Live>| {
            let live = Arc::clone(live);
            move |bytes: &[u8]| live.push(bytes)
        };
        let mut context = InvocationContext::default()
            .with_stdout(sink(&live.stdout))
            .with_stderr(sink(&live.stderr));
        self.run_id.clone_into(&mut context.invocation_id);
        (context.turn, context.attempt) = (self.turn, attempt);
        context.cancellation = cancellation;
        let input = CodeExecutionInput {
            code: program.code.clone(),
            language: program.language.clone(),
            input_files: files.all(),
            execution_id: self.execution_id.cloned(),
        };
        let watched = executor.timeout().filter(|_| !executor.keeps_time());
        let limit = watched.map(|timeout| timeout.saturating_add(GRACE));
        let started = Instant::now();
        // An executor that panics has failed like any other.
        let call = AssertUnwindSafe(executor.execute_code(&context, input)).catch_unwind();
        let ended = tokio::select! {
            biased;
            () = self.cancellation.cancelled() => Attempt::Cancelled,
            returned = call => {
                let returned = returned.unwrap_or_else(|panic| Err(panicked(&*panic)));
                Attempt::Returned(returned, started.elapsed())
            }
            time = overdue(limit) => Attempt::Overdue(time),
        };
        live.end();
        ended
    }
}

/// Cuts a text to a bound in bytes as output is cut.
fn cut(text: String, limit_bytes: usize) -> String {
    if text.len() <= limit_bytes {
        return text;
    }
    let mut output = Output::new(limit_bytes);
    output.push(text.as_bytes());
    output.into_text()
}

/// Waits for that time, in any executor of futures, or for ever.
async fn overdue(limit: Option<Duration>) -> Duration {
    let Some(limit) = limit else { return std::future::pending().await };
    let token = CancellationToken::new();
    // The timer ends with this future.
    let _guard = token.clone().drop_guard();
    let timer = isolane::spawn(async move {
        tokio::select! {
            () = tokio::time::sleep(limit) => {}
            () = token.cancelled() => {}
        }
    });
    match timer.await {
        Ok(()) => limit,
        // Without a thread for timers there is no deadline but the executor's own.
        Err(_) => std::future::pending().await,
    }
}

fn outcome(result: &CodeExecutionResult, took: Duration, limit: Option<Duration>) -> Outcome {
    if result.is_success() {
        Outcome::OutcomeOk
    } else if result.exit_code.is_none() && limit.is_some_and(|limit| took >= limit) {
        Outcome::OutcomeDeadlineExceeded
    } else {
        Outcome::OutcomeFailed
    }
}

impl End {
    /// The end of a program of which nothing is known but one text for the host, and one for the model.
    fn told(outcome: Outcome, text: String, told: String) -> Self {
        let result = CodeExecutionResult { stderr: text, ..CodeExecutionResult::default() };
        Self { outcome, result, told: Some(told) }
    }
}

fn panicked(panic: &(dyn Any + Send)) -> ExecutorError {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked");
    ExecutorError::new(ExecutorErrorKind::Other, format!("the executor failed: {text}"))
}
