//! What can go wrong before a run, or in the library itself.
//!
//! Never something that happened in the sandbox: that is a result with a status.

use std::fmt;

/// What kind of mistake an [`Error`] reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An option of the wrong type or shape; a `TypeError` in JavaScript and Python.
    Type,
    /// A number out of range; a `RangeError` in JavaScript, a `ValueError` in Python.
    Range,
    /// A value that cannot be cloned, with its path in the message.
    Serialization,
    /// The runtime is closed, its queue is full, or it belongs to the process that this one was
    /// forked from.
    Unavailable,
    /// The machine refused something that the library needs, such as a thread.
    Internal,
}

/// Misuse of the library, or a failure of its own. Opaque but for its kind and its message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    message: String,
}

impl Error {
    /// An error of that kind; the message says what to do.
    #[must_use]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// What kind of mistake this is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// What is wrong, and where: the text that the other languages' exceptions carry.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
