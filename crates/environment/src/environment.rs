//! The interface of an environment: a module that runs code of clients.
//!
//! In: an execution and its bindings. Out: an exit state. A module of a caller implements [`Environment`], as
//! [`TypeScriptEnvironment`](crate::TypeScriptEnvironment) does.

use std::fmt;

use async_trait::async_trait;

use crate::{EnvironmentBindings, ExecutionExitState, ExecutionInput, ToolInfo};

/// Runs code.
#[async_trait]
pub trait Environment: Send + Sync + 'static {
    /// Runs code to its end. Says `running` when the code starts, keeps to the time limit of the input, and settles
    /// promptly as `canceled` after [`kill`](Self::kill).
    ///
    /// # Errors
    /// The environment failed; the service makes the error the reason of a `failed` process.
    async fn execute(
        &self,
        input: ExecutionInput,
        bindings: EnvironmentBindings,
    ) -> Result<ExecutionExitState, EnvironmentError>;

    /// Ends an execution. One that it does not know is no mistake.
    ///
    /// # Errors
    /// The environment failed. The service logs it.
    async fn kill(&self, eid: u64) -> Result<(), EnvironmentError>;

    /// A description of the environment in Markdown, for a model that writes code for it.
    async fn generate_docs(&self) -> Option<String> {
        None
    }

    /// The description of a tool in Markdown, with how the code calls it.
    async fn generate_tool_docs(&self, tool: &ToolInfo) -> Option<String> {
        let _ = tool;
        None
    }

    /// Ends everything. From then on each execution settles as `canceled`.
    async fn shutdown(&self) {}
}

/// A failure of an environment itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnvironmentError {
    message: String,
    is_no_exit_state: bool,
}

impl EnvironmentError {
    /// A failure with that text.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), is_no_exit_state: false }
    }

    /// The environment answered with something else than an exit state, which is shown like `'done'` or `a number`.
    #[must_use]
    pub fn no_exit_state(shown: &str) -> Self {
        let message = format!("the environment returned {shown}, which is no exit state");
        Self { message, is_no_exit_state: true }
    }

    /// Its text.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Whether the environment answered, but with no exit state.
    #[must_use]
    pub fn is_no_exit_state(&self) -> bool {
        self.is_no_exit_state
    }
}

impl fmt::Display for EnvironmentError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message)
    }
}

impl std::error::Error for EnvironmentError {}
