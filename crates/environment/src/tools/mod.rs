//! Tools: functions of the host that code of an execution may call.
//!
//! In: a description with JSON schemas, and a handler. Out: what is known of a tool, and the handler's answers. `table`
//! has the tools of a service, `set` those of runs without one; `calls` keeps to the limits of an execution, `imports`
//! are tools inside; `types` and `docs` describe tools to the author of code.

pub(crate) mod calls;
pub(crate) mod docs;
pub(crate) mod imports;
pub(crate) mod names;
pub(crate) mod set;
pub(crate) mod table;
pub(crate) mod types;

use std::{fmt, future::Future};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use self::{calls::ToolCalls, set::ToolSet};
use crate::CancellationToken;

/// The description of a tool, as its owner gives it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolDescription {
    /// The purpose of the tool, for the author of code.
    pub description: String,
    /// The JSON schema of its arguments, an object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Value>,
    /// The JSON schema of its answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
}

/// A tool that is known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolInfo {
    /// Its service, which is the specifier of its import: `github`.
    pub service: String,
    /// Its name as it was given: `list-issues`.
    pub name: String,
    /// The name that code calls it by: `listIssues`.
    pub identifier: String,
    /// The rest.
    #[serde(flatten)]
    pub description: ToolDescription,
}

/// The execution that calls a tool.
#[derive(Clone, Debug)]
pub struct ToolContext {
    /// Its number.
    pub eid: u64,
    /// Cancelled when the execution has ended. Answers that come later are dropped.
    pub signal: CancellationToken,
}

/// An error of a tool, as the code sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolError {
    /// The name of the error: `Error`, `TypeError`.
    pub name: String,
    /// Its message.
    pub message: String,
    /// Its code.
    pub code: Option<isolane::ErrorCode>,
}

impl ToolError {
    /// An error with that name and message.
    pub fn new(name: impl Into<String>, message: impl Into<String>) -> Self {
        Self { name: name.into(), message: message.into(), code: None }
    }

    /// The same with a code.
    #[must_use]
    pub fn with_code(mut self, code: impl Into<isolane::ErrorCode>) -> Self {
        self.code = Some(code.into());
        self
    }
}

impl ToolError {
    /// The error as the sandbox and other languages get it.
    #[must_use]
    pub fn to_value(&self) -> isolane::Value {
        let thrown = isolane::HostError::new(self.name.clone(), self.message.clone());
        match &self.code {
            Some(code) => thrown.with_code(code.clone()).to_value(),
            None => thrown.to_value(),
        }
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.name, self.message)
    }
}

impl std::error::Error for ToolError {}

/// Answers the calls of a tool. A closure of the arguments and the context that returns a future is one.
#[async_trait]
pub trait ToolHandler: Send + Sync + 'static {
    /// Answers one call, whose arguments fit the input schema.
    ///
    /// # Errors
    /// The error that the code catches.
    async fn call(&self, args: Value, context: ToolContext) -> Result<Value, ToolError>;
}

#[async_trait]
impl<C, F> ToolHandler for C
where
    C: Fn(Value, ToolContext) -> F + Send + Sync + 'static,
    F: Future<Output = Result<Value, ToolError>> + Send + 'static,
{
    async fn call(&self, args: Value, context: ToolContext) -> Result<Value, ToolError> {
        self(args, context).await
    }
}
