//! What the core refused, for JavaScript to throw.
//!
//! The exception itself is made in JavaScript, where its class and its stack belong.

use std::{error::Error as _, io};

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
    /// What it was made out of.
    pub cause: Option<NativeCause>,
}

/// An error of Rust, for JavaScript to make an error of.
#[napi(object)]
#[derive(Debug, Default)]
pub struct NativeCause {
    /// What it says.
    pub message: String,
    /// The system's number of it, 0 where it is none of the system's.
    pub number: i32,
}

impl NativeCause {
    pub(crate) fn of(error: &(dyn std::error::Error + 'static)) -> Self {
        let system = error.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error);
        Self { message: error.to_string(), number: system.unwrap_or(0) }
    }
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
        let cause = error.source().map(NativeCause::of);
        Self { kind: kind.to_owned(), message: error.message().to_owned(), cause }
    }
}

/// The error for a frame that our own JavaScript never writes.
pub(crate) fn broken_frame() -> napi::Error {
    napi::Error::from_reason("isolane: the two halves of the package do not fit together")
}
