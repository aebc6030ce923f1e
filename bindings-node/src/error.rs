//! Refusals of the core, for JavaScript to throw.
//!
//! JavaScript makes the exception itself, because its class and its stack are those of JavaScript.

use std::{error::Error as _, io};

use isolane::{Error, ErrorKind};
use napi_derive::napi;

/// A refusal: its kind and the core's message.
#[napi(object)]
#[derive(Debug)]
pub struct Misuse {
    /// The kind, which decides the class of the exception.
    pub kind: String,
    /// The message of the exception.
    pub message: String,
    /// The cause of the exception.
    pub cause: Option<NativeCause>,
}

/// A Rust error, as the parts of a JavaScript error.
#[napi(object)]
#[derive(Debug, Default)]
pub struct NativeCause {
    /// The error as text.
    pub message: String,
    /// The number of a system error; 0 for any other error.
    pub number: i32,
}

impl NativeCause {
    pub(crate) fn of(error: &(dyn std::error::Error + 'static)) -> Self {
        let system = error.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error);
        Self { message: error.to_string(), number: system.unwrap_or(0) }
    }
}

impl Misuse {
    /// The refusal of a session whose handle has been dropped: it was closed.
    pub(crate) fn closed_session() -> Self {
        let (kind, message) = ("unavailable".to_owned(), "the session is closed".to_owned());
        Self { kind, message, cause: None }
    }
}

impl From<Error> for Misuse {
    fn from(error: Error) -> Self {
        let kind = match error.kind() {
            ErrorKind::Type => "type",
            ErrorKind::Range => "range",
            ErrorKind::Serialization => "serialization",
            ErrorKind::QueueFull => "queueFull",
            ErrorKind::RuntimeClosed => "runtimeClosed",
            ErrorKind::SessionReset => "sessionReset",
            ErrorKind::SessionClosed => "sessionClosed",
            ErrorKind::Unavailable => "unavailable",
            _ => "internal",
        };
        let cause = error.source().map(NativeCause::of);
        Self { kind: kind.to_owned(), message: error.message().to_owned(), cause }
    }
}

/// The error for a frame that this package's JavaScript never writes.
pub(crate) fn broken_frame() -> napi::Error {
    napi::Error::from_reason("isolane: the two halves of the package do not fit together")
}
