//! What the core refused, for JavaScript to throw.
//!
//! The exception itself is made in JavaScript, where its class and its stack belong.

use isolane::{Error, ErrorKind};
use napi_derive::napi;

/// A refusal: its kind and the core's words.
#[napi(object)]
#[derive(Debug)]
pub struct Misuse {
    /// Which class of exception it becomes.
    pub kind: String,
    /// What the exception says.
    pub message: String,
}

impl From<Error> for Misuse {
    fn from(error: Error) -> Self {
        let kind = match error.kind() {
            ErrorKind::Type => "type",
            ErrorKind::Range => "range",
            ErrorKind::Serialization => "serialization",
            ErrorKind::Unavailable => "unavailable",
            _ => "internal",
        };
        Self { kind: kind.to_owned(), message: error.message().to_owned() }
    }
}

/// The error for a frame that our own JavaScript never writes.
pub(crate) fn broken_frame() -> napi::Error {
    napi::Error::from_reason("isolane: the two halves of the package do not fit together")
}
