//! Errors while serde walks a value, with their places.
//!
//! In: serde's messages, and each step that the walk leaves on its way out. Out: an [`Error`] whose message starts with
//! the path.

use std::fmt;

use crate::{
    error::{Error, ErrorKind},
    value::{
        Malformed,
        path::{self, Step},
    },
};

/// A failed crossing. Boxed, so that the path without failure stays small.
#[derive(Clone, Debug)]
pub(crate) struct Fault(Box<Inner>);

#[derive(Clone, Debug)]
struct Inner {
    message: String,
    /// From the innermost outward.
    steps: Vec<Step>,
}

impl Fault {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self(Box::new(Inner { message: message.into(), steps: Vec::new() }))
    }

    /// The same fault, seen from one level further out.
    #[must_use]
    pub(crate) fn at(mut self, step: Step) -> Self {
        self.0.steps.push(step);
        self
    }

    /// `root.path[0]: message`
    pub(crate) fn text(self, root: &str) -> String {
        let path = path::join(root, self.0.steps.into_iter().rev());
        format!("{path}: {}", self.0.message)
    }

    pub(crate) fn into_error(self, root: &str) -> Error {
        Error::new(ErrorKind::Serialization, self.text(root))
    }
}

impl From<Malformed> for Fault {
    fn from(malformed: Malformed) -> Self {
        Self::new(malformed.to_string())
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0.message)
    }
}

impl std::error::Error for Fault {}

impl serde::ser::Error for Fault {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(message.to_string())
    }
}

impl serde::de::Error for Fault {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(message.to_string())
    }
}
