//! The data of an execution: its input, its states and the end of it.
//!
//! In: a process that has its turn. Out: the exit state that its environment gives. The names are those of the API.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The work of an environment: one piece of code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExecutionInput {
    /// The number of the execution, which is the pid of its process.
    pub eid: u64,
    /// The code as it was posted.
    pub code: String,
    /// `None` where no default is configured; the environment's own default counts then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub options: Option<ExecutionOptions>,
}

/// The options of an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExecutionOptions {
    /// The milliseconds after which the environment ends the execution, as `timeout`.
    pub timeout_ms: u64,
}

/// The states that an environment reports, in their order.
pub const EXECUTION_STATES: [&str; 2] = ["queued", "running"];

/// A state that an environment reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ExecutionState {
    /// The environment has the code, and the code waits for its turn there.
    Queued,
    /// The code runs.
    Running,
}

impl ExecutionState {
    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
        }
    }

    /// The state with that word.
    #[must_use]
    pub fn named(word: &str) -> Option<Self> {
        [Self::Queued, Self::Running].into_iter().find(|state| state.as_str() == word)
    }
}

/// The ends of an execution, in their order.
pub const EXECUTION_EXIT_STATES: [&str; 4] = ["failed", "success", "timeout", "canceled"];

/// The end of an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ExecutionExitState {
    /// The code threw, or the environment could not run it.
    Failed,
    /// The code completed.
    Success,
    /// The environment ended the code at its time limit.
    Timeout,
    /// The execution was killed, or the environment shut down.
    Canceled,
}

impl ExecutionExitState {
    /// All of them, in the order of [`EXECUTION_EXIT_STATES`].
    pub const ALL: [Self; 4] = [Self::Failed, Self::Success, Self::Timeout, Self::Canceled];

    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Success => "success",
            Self::Timeout => "timeout",
            Self::Canceled => "canceled",
        }
    }

    /// The exit state with that word.
    #[must_use]
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == word)
    }
}

impl fmt::Display for ExecutionExitState {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

/// The reason why an execution failed, as an environment reports it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ErrorDetails {
    /// The name of the error, such as `TypeError`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The message.
    pub message: String,
    /// The frames.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stack: Option<String>,
    /// The file of `line` and `column`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filename: Option<String>,
    /// The line, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The column, from 1, in UTF-16 code units.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
}

/// An environment's report of a failure: a text, or the fields of an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExecutionFailure {
    /// A text.
    Text(String),
    /// The fields of an error.
    Details(ErrorDetails),
}

impl ExecutionFailure {
    /// The line for a record: `TypeError: x is not a function (process-5.ts:3:7)`.
    #[must_use]
    pub fn line(&self) -> String {
        let details = match self {
            Self::Text(text) => return text.clone(),
            Self::Details(details) => details,
        };
        let mut line = match details.name.as_deref().filter(|name| !name.is_empty()) {
            Some(name) if details.message.is_empty() => name.to_owned(),
            Some(name) => format!("{name}: {}", details.message),
            None => details.message.clone(),
        };
        if let (Some(file), Some(at), Some(column)) =
            (&details.filename, details.line, details.column)
        {
            line.push_str(&format!(" ({file}:{at}:{column})"));
        }
        line
    }

    /// The fields of an error, if it has some.
    #[must_use]
    pub fn details(&self) -> Option<&ErrorDetails> {
        match self {
            Self::Text(_) => None,
            Self::Details(details) => Some(details),
        }
    }
}
