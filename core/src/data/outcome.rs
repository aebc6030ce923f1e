//! The result of a run: plain data, with the same fields and words in every language.
//!
//! Nothing here decides a status. `isolate/` and `runtime/` decide it, by structure.

use std::time::{SystemTime, UNIX_EPOCH};

use super::{
    cause::Cause,
    cell::CellOutcome,
    text::{STACK_LIMIT, bounded},
};
use crate::value::Value;

/// The end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// The module evaluated and the selected export resolved.
    Success,
    /// Sandbox code threw, or its result cannot be cloned.
    Error,
    /// The memory limit was hit.
    Memory,
    /// The caller, or a cap of the runtime, ended the run.
    Terminated,
    /// The module graph could not be linked, or the selected export is missing.
    LinkError,
}

impl Status {
    /// The contract's word for this status.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Error => "error",
            Self::Memory => "memory",
            Self::Terminated => "terminated",
            Self::LinkError => "link_error",
        }
    }
}

/// A place in a source text as its author wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Position {
    /// Line, from 1.
    pub(crate) line: u32,
    /// Column, from 1, in UTF-16 code units.
    pub(crate) column: u32,
}

/// The reason why a run did not succeed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExecutionError {
    /// The error's name, at most 16 KiB of UTF-8.
    pub name: String,
    /// The error's message, at most 16 KiB of UTF-8.
    pub message: String,
    /// `Name: message`, below it the frames of the sandbox, one `    at name (file:line:col)` a line, and below them the
    /// errors that it was made from (`cause`, `errors`); at most 64 KiB of UTF-8.
    pub stack: Option<String>,
    /// The specifier that failed to link, at most 16 KiB of UTF-8.
    pub specifier: Option<String>,
    /// The file that `line` and `column` belong to.
    pub filename: Option<String>,
    /// Line in the original text, from 1.
    pub line: Option<u32>,
    /// Column in the original text, from 1, in UTF-16 code units.
    pub column: Option<u32>,
    /// The cause, if it is known: for example a throw of a host function. With the Rust face it is the host's own
    /// error, which [`StatusError`](crate::StatusError) has as its source.
    pub cause: Option<Cause>,
    /// Whether the library or a worker failed, and the code did not: the error has the name `InternalError` or
    /// `WorkerLost`, which code may choose too.
    pub is_failure: bool,
}

impl ExecutionError {
    /// The error with the place of another, of which the stack has the frames alone.
    pub(crate) fn at(self, place: Self) -> Self {
        let Self { stack, filename, line, column, .. } = place;
        let stack = stack.map(|frames| {
            bounded(format!("{}: {}\n{frames}", self.name, self.message), STACK_LIMIT)
        });
        Self { stack, filename, line, column, ..self }
    }
}

/// The level of a captured console call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "named like the console's methods")]
pub enum LogLevel {
    Log,
    Info,
    Warn,
    Error,
    Debug,
}

impl LogLevel {
    /// The contract's word for this level.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Log => "log",
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
            Self::Debug => "debug",
        }
    }
}

/// One captured console call.
#[derive(Clone, Debug, PartialEq)]
pub struct ExecutionLog {
    /// The called method, or its level.
    pub level: LogLevel,
    /// The arguments, one message that is an array. A value that cannot be cloned is a text.
    pub args: Value,
    /// Epoch milliseconds.
    pub timestamp: f64,
}

impl ExecutionLog {
    /// A call at the current time. `args` is an array, one message.
    #[must_use]
    pub fn now(level: LogLevel, args: Value) -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { level, args, timestamp: (since.as_secs_f64() * 1e3).floor() }
    }
}

/// The whole result of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct ExecutionResult {
    /// The status of the run.
    pub status: Status,
    /// The resolved export; present exactly on success, except for a cell whose value cannot cross.
    pub result: Option<Value>,
    /// The values that went through the built-in `report`, in call order.
    pub reports: Vec<Value>,
    /// The calls of the built-in console, in call order.
    pub logs: Vec<ExecutionLog>,
    /// The reason why the run did not succeed; absent exactly on success.
    pub error: Option<ExecutionError>,
    /// Milliseconds from the call of `run_code` to settlement.
    pub duration_ms: f64,
    /// The peak of all bytes that count against the limit.
    pub memory_used_bytes: Option<u64>,
    /// The rest of the result of a cell; present exactly if this is one.
    pub cell: Option<Box<CellOutcome>>,
}
