//! The receiver of an execution's reports.
//!
//! In: calls of its bindings, on any thread. Out: changes of its process, and calls of tools within the limits of an
//! execution. After the end of the execution calls do nothing.

use std::{
    panic::AssertUnwindSafe,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use async_trait::async_trait;
use futures_util::FutureExt;
use isolane::{Error, ErrorKind};
use serde_json::{Map, Value};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::inner::Inner;
use crate::{
    ExecutionFailure, ExecutionHost, ExecutionState, ToolContext, ToolError, ToolInfo,
    json::{is_too_deep, json_bytes},
    locks::lock,
    process::{Body, Process},
    tools::table::{Tool, ToolTable},
};

/// Calls of an execution that tools answer at once.
const CALLS_AT_ONCE: usize = 16;

/// Calls of an execution in all.
const MOST_CALLS: u32 = 1000;

/// The most bytes of arguments and of an answer, as JSON.
const MOST_BYTES: usize = 4 << 20;

/// The host of one execution.
pub(super) struct Host {
    inner: Arc<Inner>,
    process: Arc<Process>,
    attempt: u64,
    tools: Arc<ToolTable>,
    places: Semaphore,
    calls: AtomicU32,
    /// Cancelled at the end of the execution.
    ended: CancellationToken,
}

impl Host {
    pub(super) fn new(inner: &Arc<Inner>, process: &Arc<Process>, attempt: u64) -> Self {
        Self {
            inner: Arc::clone(inner),
            process: Arc::clone(process),
            attempt,
            tools: Arc::clone(&lock(&inner.tools)),
            places: Semaphore::new(CALLS_AT_ONCE),
            calls: AtomicU32::new(0),
            ended: CancellationToken::new(),
        }
    }

    /// The execution is over.
    pub(super) fn close(&self) {
        self.ended.cancel();
    }

    /// Changes the process, if the execution is not over.
    fn change<T>(&self, change: impl FnOnce(&mut Body) -> T) -> Option<T> {
        let done = {
            let mut body = self.process.body();
            if self.ended.is_cancelled() || body.attempt != self.attempt || body.live.is_none() {
                return None;
            }
            change(&mut body)
        };
        self.process.tell();
        Some(done)
    }

    fn find(&self, name: &str) -> Result<&Arc<Tool>, ToolError> {
        self.tools.get(name).ok_or_else(|| {
            let names: Vec<String> = self.tools.infos().iter().map(ToolInfo::full_name).collect();
            let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            let shown: String = name.chars().take(100).collect();
            ToolError::new("TypeError", format!("there is no tool '{shown}'; there are: {known}"))
        })
    }

    /// Checks a call.
    fn check(&self, tool: &Tool, args: &Value) -> Result<(), ToolError> {
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
        if let Some(Err(fault)) = tool.arguments.as_ref().map(|arguments| arguments.check(args)) {
            return Err(ToolError::new("TypeError", format!("{name}: {fault}")));
        }
        Ok(())
    }

    /// Has the handler answer, in the service's runtime.
    async fn answer(&self, tool: &Arc<Tool>, args: Value) -> Result<Value, ToolError> {
        let context = ToolContext { eid: self.process.pid, signal: self.ended.clone() };
        let handler = Arc::clone(&tool.handler);
        let name = tool.info.shown_name();
        let call = async move { handler.call(args, context).await };
        let task = self.inner.handle.spawn(AssertUnwindSafe(call).catch_unwind());
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

#[async_trait]
impl ExecutionHost for Host {
    fn set_state(&self, state: ExecutionState) {
        if self.ended.is_cancelled() {
            return;
        }
        match state {
            ExecutionState::Queued => Inner::waits(&self.process, self.attempt),
            ExecutionState::Running => self.inner.starts(&self.process, self.attempt),
        }
    }

    fn stdout(&self, bytes: &[u8]) {
        let bounds = self.inner.bounds();
        self.change(|body| body.write(false, bytes, bounds));
    }

    fn stderr(&self, bytes: &[u8]) {
        let bounds = self.inner.bounds();
        self.change(|body| body.write(true, bytes, bounds));
    }

    fn output(&self, fields: Map<String, Value>) -> Result<(), Error> {
        let bounds = self.inner.bounds();
        match self.change(|body| body.merge(fields, bounds)) {
            Some(Err(_)) => {
                let most = bounds.output_bytes;
                let message = format!("the output would be larger than {most} bytes of JSON");
                Err(Error::new(ErrorKind::Range, message))
            }
            Some(Ok(())) | None => Ok(()),
        }
    }

    fn error(&self, failure: ExecutionFailure) {
        self.change(|body| {
            if let Some(live) = &mut body.live {
                live.failure = Some(failure);
            }
        });
    }

    async fn invoke_tool(&self, name: &str, args: Value) -> Result<Value, ToolError> {
        let over = || ToolError::new("Error", "the execution has ended");
        if self.ended.is_cancelled() {
            return Err(over());
        }
        let tool = self.find(name)?;
        let count = |outcome| lock(&self.inner.counts).tool(&tool.info.full_name(), outcome);
        if let Err(error) = self.check(tool, &args) {
            count("refused");
            return Err(error);
        }
        let answer = async {
            // The semaphore is never closed.
            let _place = self.places.acquire().await;
            self.answer(tool, args).await
        };
        tokio::select! {
            biased;
            () = self.ended.cancelled() => {
                count("dropped");
                Err(over())
            }
            answer = answer => {
                count(if answer.is_ok() { "ok" } else { "error" });
                answer
            }
        }
    }

    fn tools(&self) -> Arc<[ToolInfo]> {
        Arc::clone(self.tools.infos())
    }
}
