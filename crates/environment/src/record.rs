//! Records of processes, and the states of a process.
//!
//! In: what the service knows. Out: JSON with the fields of HTTP.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{ErrorDetails, ExecutionExitState};

/// The state of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProcessState {
    /// Not executing: before a run or after one.
    Idle,
    /// It waits for its place, or in the environment.
    Queued,
    /// The environment runs its code.
    Running,
    /// A kill is under way.
    Terminating,
}

impl ProcessState {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Idle, Self::Queued, Self::Running, Self::Terminating];

    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Terminating => "terminating",
        }
    }

    /// The state with that word.
    #[must_use]
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == word)
    }
}

/// The length of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamInfo {
    /// The bytes of the text that is kept, in UTF-8.
    pub bytes: u64,
    /// Whether more came than is kept.
    pub truncated: bool,
}

/// The record of a process. A field that is not known is `null`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProcessRecord {
    /// The number of the process, from 1 on, never used again.
    pub pid: u64,
    /// Its state.
    pub state: ProcessState,
    /// The end of its last execution; `None` before that.
    pub exit_state: Option<ExecutionExitState>,
    /// Why it failed, or was given up.
    pub error: Option<String>,
    /// The fields of the error.
    pub error_details: Option<ErrorDetails>,
    /// The time limit of its executions.
    pub timeout_ms: Option<u64>,
    /// When it was created: RFC 3339 in UTC, to the millisecond.
    pub created_at: String,
    /// When its code started.
    pub started_at: Option<String>,
    /// When its execution settled.
    pub finished_at: Option<String>,
    /// The standard output.
    pub stdout: StreamInfo,
    /// The standard error.
    pub stderr: StreamInfo,
    /// The output so far; `None`, and no field in JSON, in lists and events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Map<String, Value>>,
}

/// A page of a list: newest first, each without its output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProcessList {
    /// The records.
    pub items: Vec<ProcessRecord>,
    /// For [`ListQuery::before`](crate::ListQuery::before): where the next page begins; `None` after the last one.
    pub next: Option<u64>,
}
