//! Exit codes, and the endings that have them.
//!
//! In: the status of a run, or why a command did not get that far. Out: a number of the table in `docs/cli.md`.

use std::{fmt, io};

use isolane::{Error, ErrorKind, ExecutionResult, Status};

pub(crate) const SUCCESS: u8 = 0;
pub(crate) const ERROR: u8 = 1;
pub(crate) const MISUSE: u8 = 2;
const LINK_ERROR: u8 = 3;
const MEMORY: u8 = 4;
const CAP: u8 = 5;
pub(crate) const FAILURE: u8 = 70;
pub(crate) const TIMEOUT: u8 = 124;

/// Nobody reads stdout any more. It is the code that shells report of programs which SIGPIPE ends.
pub(crate) const UNREAD: u8 = 141;

/// Why a command ends without a result.
#[derive(Debug)]
pub(crate) struct Ended {
    code: u8,
    /// `None` where the code says everything: a signal, an output that nobody reads.
    message: Option<String>,
}

impl Ended {
    /// The caller asked for something that there is not.
    pub(crate) fn misuse(message: impl Into<String>) -> Self {
        Self { code: MISUSE, message: Some(message.into()) }
    }

    /// This program, or the system, failed.
    pub(crate) fn failure(error: &dyn fmt::Display) -> Self {
        Self { code: FAILURE, message: Some(error.to_string()) }
    }

    /// The time is over.
    pub(crate) fn timeout(message: impl Into<String>) -> Self {
        Self { code: TIMEOUT, message: Some(message.into()) }
    }

    /// The end by a signal, which has that code.
    pub(crate) fn signal(code: u8) -> Self {
        Self { code, message: None }
    }

    /// The end by an output that could not be written.
    pub(crate) fn unwritten(error: &io::Error) -> Self {
        if is_unread(error) {
            Self { code: UNREAD, message: None }
        } else {
            Self::failure(&format_args!("stdout: {error}"))
        }
    }

    pub(crate) fn code(&self) -> u8 {
        self.code
    }

    /// The line for people, if there is one.
    pub(crate) fn message(&self) -> Option<&str> {
        self.message.as_deref()
    }
}

/// Whether an output could not be written because nobody reads it any more. The reader of a socket may have left it with
/// lines in it.
pub(crate) fn is_unread(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
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
        // Code cannot choose the name of such an end.
        Status::Terminated => match name {
            "Timeout" => TIMEOUT,
            "SafetyCap" => CAP,
            _ => ERROR,
        },
        Status::Error => {
            let is_failure = error.is_some_and(|error| error.is_failure);
            if is_failure { FAILURE } else { ERROR }
        }
    }
}
