//! Errors of misuse, and failures of the library.
//!
//! Events in the sandbox are never errors: they are results with a status.

use std::{fmt, sync::Arc};

/// The error that caused another one.
pub(crate) type Source = Arc<dyn std::error::Error + Send + Sync>;

/// The kind of an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An option of the wrong type or shape; a `TypeError` in JavaScript and Python.
    Type,
    /// A number out of range; a `RangeError` in JavaScript, a `ValueError` in Python.
    Range,
    /// A value that cannot be cloned, with its path in the message.
    Serialization,
    /// As many runs are queued as the runtime allows: the same call may succeed later.
    QueueFull,
    /// The runtime is closed, and starts nothing any more.
    RuntimeClosed,
    /// A session was reset before it had answered. Functions of that session reject with the same name, `SessionReset`.
    SessionReset,
    /// A session was closed before it had answered. Functions of that session reject with the same name, `SessionClosed`.
    SessionClosed,
    /// Something else that is needed is not there: a session is closed, or a runtime belongs to the process that this
    /// one was forked from.
    Unavailable,
    /// The system refused something that the library needs, such as a thread.
    Internal,
}

impl ErrorKind {
    /// The code of a kind that callers tell apart, as the errors of JavaScript and Python have it: `QUEUE_FULL` or
    /// `RUNTIME_CLOSED`.
    #[must_use]
    pub fn code(self) -> Option<&'static str> {
        match self {
            Self::QueueFull => Some("QUEUE_FULL"),
            Self::RuntimeClosed => Some("RUNTIME_CLOSED"),
            _ => None,
        }
    }

    /// The name of a kind that has the name of an end of its session in JavaScript and Python: `SessionReset` or
    /// `SessionClosed`.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        match self {
            Self::SessionReset => Some("SessionReset"),
            Self::SessionClosed => Some("SessionClosed"),
            _ => None,
        }
    }
}

/// Misuse of the library, or a failure of the library. Only its kind, its message and its source are public.
///
/// Its [`source`](std::error::Error::source) is the error that caused it, such as one of the system. Serde passes on
/// the errors of a type only as text, so those have no source. Two errors are equal when their kinds and their messages
/// are equal.
#[derive(Clone, Debug)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    source: Option<Source>,
}

impl Error {
    /// An error of that kind; the message says what to do.
    #[must_use]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    /// The same error with that source.
    #[must_use]
    pub(crate) fn with_source(self, source: Option<Source>) -> Self {
        Self { source, ..self }
    }

    /// The kind of the error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The message, which names the mistake and its place. The exceptions of the other languages carry the same text.
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

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|source| &**source as _)
    }
}

impl PartialEq for Error {
    fn eq(&self, other: &Self) -> bool {
        (self.kind, &self.message) == (other.kind, &other.message)
    }
}

impl Eq for Error {}
