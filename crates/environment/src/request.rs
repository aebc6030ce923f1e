//! Requests of clients to a process service, and their checks.
//!
//! In: JSON, or the pairs of a query. Out: typed requests, or a problem `bad-request` that names the field. HTTP and the
//! languages' faces read with the same functions.

use serde_json::Value;

use crate::{ExecutionExitState, ProcessError, ProcessState};

/// A process to be created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewProcess {
    /// Its code.
    pub code: String,
    /// Its time limit; by default the service's.
    pub timeout_ms: Option<u64>,
    /// Whether it is queued at once.
    pub autorun: bool,
}

impl NewProcess {
    /// A process that is queued at once, with the service's time limit.
    pub fn new(code: impl Into<String>) -> Self {
        Self { code: code.into(), timeout_ms: None, autorun: true }
    }

    /// Reads `{ code, timeoutMs?, autorun? }`.
    ///
    /// # Errors
    /// `bad-request`: a wrong type or range, an unknown field.
    pub fn from_json(body: &Value) -> Result<Self, ProcessError> {
        let _ = body;
        todo!()
    }
}

/// How a process is run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunQuery {
    /// Whether the results of an earlier execution are cleared.
    pub force: bool,
}

impl RunQuery {
    /// Reads `{ force? }`; `None` for an empty body.
    ///
    /// # Errors
    /// `bad-request`: a wrong type, an unknown field.
    pub fn from_json(body: Option<&Value>) -> Result<Self, ProcessError> {
        let _ = body;
        todo!()
    }
}

/// A selection of processes, newest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListQuery {
    /// Only those in that state.
    pub state: Option<ProcessState>,
    /// Only those with that end.
    pub exit_state: Option<ExecutionExitState>,
    /// How many: 1 to 200, 50 by default.
    pub limit: usize,
    /// Only those with a smaller pid.
    pub before: Option<u64>,
}

impl Default for ListQuery {
    fn default() -> Self {
        Self { state: None, exit_state: None, limit: 50, before: None }
    }
}

impl ListQuery {
    /// Reads the pairs of a query: `state`, `exitState`, `limit`, `before`.
    ///
    /// # Errors
    /// `bad-request`: a wrong value, an unknown name.
    pub fn from_pairs<'q>(
        pairs: impl IntoIterator<Item = (&'q str, &'q str)>,
    ) -> Result<Self, ProcessError> {
        let _ = pairs;
        todo!()
    }

    /// Reads `{ state?, exitState?, limit?, before? }`.
    ///
    /// # Errors
    /// As [`from_pairs`](Self::from_pairs).
    pub fn from_json(query: &Value) -> Result<Self, ProcessError> {
        let _ = query;
        todo!()
    }
}
