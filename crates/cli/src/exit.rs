//! Exit codes, and the endings that have them.
//!
//! In: the status of a run, or why a command did not get that far. Out: a number of the table in `docs/cli.md`.

use std::{fmt, process::ExitCode};

use isolane::{Error, ErrorKind, ExecutionResult, Status};

pub(crate) const SUCCESS: u8 = 0;
pub(crate) const ERROR: u8 = 1;
pub(crate) const MISUSE: u8 = 2;
const LINK_ERROR: u8 = 3;
const MEMORY: u8 = 4;
const CAP: u8 = 5;
pub(crate) const FAILURE: u8 = 70;
const TIMEOUT: u8 = 124;

/// Why a command ends without a result.
#[derive(Debug)]
pub(crate) struct Ended {
    code: u8,
    message: String,
}

impl Ended {
    /// The caller asked for something that there is not.
    pub(crate) fn misuse(message: impl Into<String>) -> Self {
        Self { code: MISUSE, message: message.into() }
    }

    /// This program, or the system, failed.
    pub(crate) fn failure(error: &dyn fmt::Display) -> Self {
        Self { code: FAILURE, message: error.to_string() }
    }

    pub(crate) fn code(&self) -> ExitCode {
        ExitCode::from(self.code)
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message)
    }
}

impl From<Error> for Ended {
    fn from(error: Error) -> Self {
        match error.kind() {
            ErrorKind::Type | ErrorKind::Range | ErrorKind::Serialization => {
                Self::misuse(error.message())
            }
            _ => Self::failure(&error.message()),
        }
    }
}

/// The exit code of a run.
pub(crate) fn code_of(result: &ExecutionResult) -> u8 {
    let error = result.error.as_ref();
    let name = error.map(|error| error.name.as_str()).unwrap_or_default();
    match result.status {
        Status::Success => SUCCESS,
        Status::LinkError => LINK_ERROR,
        Status::Memory => MEMORY,
        Status::Terminated => match name {
            "Timeout" => TIMEOUT,
            "SafetyCap" => CAP,
            _ => ERROR,
        },
        Status::Error => {
            // Errors that code throws have a stack.
            let is_ours = error.is_some_and(|error| error.stack.is_none())
                && matches!(name, "WorkerLost" | "InternalError");
            if is_ours { FAILURE } else { ERROR }
        }
    }
}
