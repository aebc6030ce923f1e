//! Errors while serde walks a value, with their places.
//!
//! In: serde's messages, and each step that the walk leaves on its way out. Out: an [`Error`] whose message starts with
//! the path.

use std::{fmt, sync::Arc};

use crate::{
    error::{Error, ErrorKind, Source},
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
    /// The error that caused it. Serde passes on the errors of other types only as text.
    source: Option<Source>,
}

impl Fault {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self(Box::new(Inner { message: message.into(), steps: Vec::new(), source: None }))
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

    /// The error that caused it.
    pub(crate) fn source(&self) -> Option<&Source> {
        self.0.source.as_ref()
    }

    pub(crate) fn into_error(self, root: &str) -> Error {
        let source = self.0.source.clone();
        Error::new(ErrorKind::Serialization, self.text(root)).with_source(source)
    }
}

impl From<Malformed> for Fault {
    fn from(malformed: Malformed) -> Self {
        let mut fault = Self::new(malformed.to_string());
        fault.0.source = Some(Arc::new(malformed));
        fault
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
