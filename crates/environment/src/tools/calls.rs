//! The calls of tools of one execution.
//!
//! In: names and arguments. Out: answers of handlers, within the limits of an execution: 16 calls at once, 1,000 in all,
//! 4 MiB of JSON each way. At the end of the execution the signal of its calls is cancelled, and late answers are dropped.

use std::{
    fmt,
    panic::AssertUnwindSafe,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use futures_util::FutureExt;
use serde_json::Value;
use tokio::{runtime::Handle, sync::Semaphore};
use tokio_util::sync::CancellationToken;

use super::{
    ToolContext, ToolError, ToolInfo,
    table::{Tool, ToolTable},
};
use crate::json::{is_too_deep, json_bytes};

/// Calls of an execution that tools answer at once.
const CALLS_AT_ONCE: usize = 16;

/// Calls of an execution in all.
const MOST_CALLS: u32 = 1000;

/// The most bytes of arguments and of an answer, as JSON.
const MOST_BYTES: usize = 4 << 20;

/// Arguments with more bytes of JSON are checked on a thread of their own: the time grows with their size.
const MOST_BYTES_AT_ONCE: usize = 4 << 10;

/// Is told of the outcome of each call of a tool that there is: its full name, and `ok`, `error`, `refused` or `dropped`.
pub(crate) type Count = Box<dyn Fn(&str, &'static str) + Send + Sync>;

/// The calls of tools of one execution, within its limits: 16 at once, further ones wait; 1,000 in all; 4 MiB of JSON each
/// way.
pub struct ToolCalls {
    eid: u64,
    tools: Arc<ToolTable>,
    /// The runtime of the handlers.
    handle: Handle,
    count: Option<Count>,
    places: Semaphore,
    calls: AtomicU32,
    ended: CancellationToken,
}

impl ToolCalls {
    pub(crate) fn new(
        eid: u64,
        tools: Arc<ToolTable>,
        handle: Handle,
        count: Option<Count>,
    ) -> Self {
        Self {
            eid,
            tools,
            handle,
            count,
            places: Semaphore::new(CALLS_AT_ONCE),
            calls: AtomicU32::new(0),
            ended: CancellationToken::new(),
        }
    }

    /// The execution is over: the signal of its calls is cancelled, and their answers are dropped.
    pub fn end(&self) {
        self.ended.cancel();
    }

    /// Whether the execution is over.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.ended.is_cancelled()
    }

    /// The tools that the execution may call.
    pub(crate) fn infos(&self) -> &Arc<[ToolInfo]> {
        self.tools.infos()
    }

    /// Calls a tool by its full name, `service.tool`, and waits for its answer.
    ///
    /// # Errors
    /// The execution is over; there is no such tool; arguments that do not fit; a limit; whatever the tool throws.
    pub async fn invoke(&self, name: &str, args: Value) -> Result<Value, ToolError> {
        let over = || ToolError::new("Error", "the execution has ended");
        if self.is_over() {
            return Err(over());
        }
        let tool = self.find(name)?;
        let mut counted = CountedCall { calls: self, tool, outcome: "dropped" };
        if let Err(error) = self.admit(tool, &args) {
            counted.outcome = "refused";
            return Err(error);
        }
        let answer = async {
            // The semaphore is never closed.
            let _place = self.places.acquire().await;
            match self.checked(tool, args).await {
                Ok(args) => {
                    let answer = self.answer(tool, args).await;
                    (if answer.is_ok() { "ok" } else { "error" }, answer)
                }
                Err(error) => ("refused", Err(error)),
            }
        };
        tokio::select! {
            biased;
            () = self.ended.cancelled() => Err(over()),
            (outcome, answer) = answer => {
                counted.outcome = outcome;
                answer
            }
        }
    }

    fn find(&self, name: &str) -> Result<&Arc<Tool>, ToolError> {
        self.tools.get(name).ok_or_else(|| {
            let names: Vec<String> = self.infos().iter().map(ToolInfo::full_name).collect();
            let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            let shown: String = name.chars().take(100).collect();
            ToolError::new("TypeError", format!("there is no tool '{shown}'; there are: {known}"))
        })
    }

    /// Counts a call, and refuses one beyond the limits.
    fn admit(&self, tool: &Tool, args: &Value) -> Result<(), ToolError> {
        let name = tool.info.shown_name();
        let number = self.calls.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |calls| {
            (calls < MOST_CALLS).then_some(calls + 1)
        });
        let too_much = |message: String| Err(ToolError::new("RangeError", message));
        if number.is_err() {
            return too_much(format!("{name}: an execution may call tools {MOST_CALLS} times"));
        }
        if is_too_deep(args) || json_bytes(args) > MOST_BYTES {
            return too_much(format!("{name}: args are larger than {MOST_BYTES} bytes of JSON"));
        }
        Ok(())
    }

    /// The arguments, if they fit the schema.
    async fn checked(&self, tool: &Arc<Tool>, args: Value) -> Result<Value, ToolError> {
        let name = tool.info.shown_name();
        let Some(schema) = &tool.schema else { return Ok(args) };
        let (args, outcome) = if json_bytes(&args) <= MOST_BYTES_AT_ONCE {
            let outcome = schema.check(&args);
            (args, outcome)
        } else {
            let schema = Arc::clone(schema);
            let checking = self.handle.spawn_blocking(move || {
                let outcome = schema.check(&args);
                (args, outcome)
            });
            checking.await.map_err(|_| {
                ToolError::new("Error", format!("{name}: the arguments cannot be checked"))
            })?
        };
        match outcome {
            Ok(()) => Ok(args),
            Err(refusal) => {
                let fault = refusal.sentences("args", |_| None);
                Err(ToolError::new("TypeError", format!("{name}: {fault}")))
            }
        }
    }

    /// Has the handler answer, in the runtime of the handlers.
    async fn answer(&self, tool: &Arc<Tool>, args: Value) -> Result<Value, ToolError> {
        let context = ToolContext { eid: self.eid, signal: self.ended.clone() };
        let handler = Arc::clone(&tool.handler);
        let name = tool.info.shown_name();
        let call = async move { handler.call(args, context).await };
        let task = self.handle.spawn(AssertUnwindSafe(call).catch_unwind());
        let answer = match task.await {
            Ok(Ok(answer)) => answer?,
            Ok(Err(_)) | Err(_) => {
                return Err(ToolError::new("Error", format!("{name}: the tool panicked")));
            }
        };
        if is_too_deep(&answer) || json_bytes(&answer) > MOST_BYTES {
            let message = format!("{name}: the answer is larger than {MOST_BYTES} bytes of JSON");
            return Err(ToolError::new("RangeError", message));
        }
        Ok(answer)
    }
}

/// A call that is counted at its end. A caller that waits no more drops it.
struct CountedCall<'c> {
    calls: &'c ToolCalls,
    tool: &'c Tool,
    outcome: &'static str,
}

impl Drop for CountedCall<'_> {
    fn drop(&mut self) {
        if let Some(count) = &self.calls.count {
            count(&self.tool.info.full_name(), self.outcome);
        }
    }
}

impl fmt::Debug for ToolCalls {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ToolCalls").field("eid", &self.eid).finish_non_exhaustive()
    }
}
