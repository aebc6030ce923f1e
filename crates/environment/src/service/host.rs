//! The receiver of an execution's reports.
//!
//! In: calls of its bindings, on any thread. Out: changes of its process, and calls of tools. After the end of the execution calls do nothing.

use std::sync::Arc;

use async_trait::async_trait;
use isolane::{Error, ErrorKind};
use serde_json::{Map, Value};

use super::inner::Inner;
use crate::{
    ExecutionFailure, ExecutionHost, ExecutionState, ToolCalls, ToolError, ToolInfo,
    locks::lock,
    process::{Body, Process},
    tools::calls::Count,
};

/// The host of one execution.
pub(super) struct Host {
    inner: Arc<Inner>,
    process: Arc<Process>,
    attempt: u64,
    /// Its calls of tools, which end with it.
    calls: ToolCalls,
}

impl Host {
    pub(super) fn new(inner: &Arc<Inner>, process: &Arc<Process>, attempt: u64) -> Self {
        let count: Count = {
            let inner = Arc::downgrade(inner);
            Box::new(move |name, outcome| {
                if let Some(inner) = inner.upgrade() {
                    lock(&inner.counts).tool(name, outcome);
                }
            })
        };
        let tools = Arc::clone(&lock(&inner.tools));
        let calls = ToolCalls::new(process.pid, tools, inner.handle.clone(), Some(count));
        Self { inner: Arc::clone(inner), process: Arc::clone(process), attempt, calls }
    }

    /// The execution is over.
    pub(super) fn close(&self) {
        self.calls.end();
    }

    /// Changes the process, if the execution is not over.
    fn change<T>(&self, change: impl FnOnce(&mut Body) -> T) -> Option<T> {
        let done = {
            let mut body = self.process.body();
            if self.calls.is_over() || body.attempt != self.attempt || body.live.is_none() {
                return None;
            }
            change(&mut body)
        };
        self.process.tell();
        Some(done)
    }
}

#[async_trait]
impl ExecutionHost for Host {
    fn set_state(&self, state: ExecutionState) {
        if self.calls.is_over() {
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
        self.calls.invoke(name, args).await
    }

    fn tools(&self) -> Arc<[ToolInfo]> {
        Arc::clone(self.calls.infos())
    }
}
