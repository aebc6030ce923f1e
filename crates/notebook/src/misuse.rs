//! Misuse: a mistake of the caller, refused before anything starts.
//!
//! In: the path of a wrong option or argument, and what is wrong with it. Out: an error whose message begins with the
//! path. Faces throw it as a TypeError, or as a RangeError (Python: ValueError) for a number.

use std::fmt;

use isolane::{Error, ErrorKind};

/// A mistake in options or arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misuse {
    kind: ErrorKind,
    path: String,
    message: String,
}

impl Misuse {
    /// A wrong type, a wrong shape, or a call at a wrong time. `rest` follows the path in the message.
    pub(crate) fn new(path: impl Into<String>, rest: &str) -> Self {
        Self::of(ErrorKind::Type, path.into(), rest)
    }

    /// A number out of its range.
    pub(crate) fn range(path: impl Into<String>, rest: &str) -> Self {
        Self::of(ErrorKind::Range, path.into(), rest)
    }

    fn of(kind: ErrorKind, path: String, rest: &str) -> Self {
        let message = format!("{path}{rest}");
        Self { kind, path, message }
    }

    /// `ErrorKind::Type` or `ErrorKind::Range`.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The place of the mistake: `cells[1].timeout`.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The path, and what is wrong.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for Misuse {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message)
    }
}

impl std::error::Error for Misuse {}

impl From<Misuse> for Error {
    fn from(misuse: Misuse) -> Self {
        Self::new(misuse.kind, misuse.message)
    }
}
