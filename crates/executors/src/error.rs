//! Errors of executors: the program did not start, or its call was cancelled.
//!
//! An event after the start is a result.

use std::{error::Error, fmt};

/// The cause that kept a program from starting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ExecutorErrorKind {
    /// The input, or an option of the executor, is not valid. Not retried.
    BadInput,
    /// There is no container engine.
    EngineMissing,
    /// The container engine failed by itself.
    EngineFailed,
    /// The process could not be started.
    Spawn,
    /// The working folder or a file in it could not be written.
    Staging,
    /// This machine cannot do it.
    Unsupported,
    /// The caller ended the call. Not retried.
    Cancelled,
    /// Anything else, such as an error of an executor of the caller's own.
    Other,
}

impl ExecutorErrorKind {
    /// The word for it, the same in all languages: `engine_missing`, for example.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::BadInput => "bad_input",
            Self::EngineMissing => "engine_missing",
            Self::EngineFailed => "engine_failed",
            Self::Spawn => "spawn",
            Self::Staging => "staging",
            Self::Unsupported => "unsupported",
            Self::Cancelled => "cancelled",
            Self::Other => "other",
        }
    }

    /// Whether the loop tries again after such an error.
    #[must_use]
    pub fn is_retried(self) -> bool {
        !matches!(self, Self::BadInput | Self::Cancelled)
    }
}

/// A program that did not start.
#[derive(Debug)]
pub struct ExecutorError {
    kind: ExecutorErrorKind,
    message: String,
    /// Whether it is about the options of an executor, not about a program.
    is_about_options: bool,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl ExecutorError {
    /// An error of that kind.
    pub fn new(kind: ExecutorErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), is_about_options: false, source: None }
    }

    /// The same, with the error that led to it.
    #[must_use]
    pub fn with_source(self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { source: Some(source.into()), ..self }
    }

    /// Its kind.
    #[must_use]
    pub fn kind(&self) -> ExecutorErrorKind {
        self.kind
    }

    /// Its message.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The message, or if there is none the kind.
    pub(crate) fn shown(&self) -> &str {
        match self.message.as_str() {
            "" => self.kind.as_str(),
            message => message,
        }
    }

    /// The text that a model is told. A message about the machine or about the options of an executor may name files of
    /// the host, and is for the host alone.
    pub(crate) fn told(&self) -> &str {
        match self.kind {
            ExecutorErrorKind::BadInput if self.is_about_options => {
                "the executor is not set up as it must be"
            }
            ExecutorErrorKind::EngineMissing | ExecutorErrorKind::EngineFailed => {
                "the container of the program could not be started"
            }
            ExecutorErrorKind::Spawn => "the program could not be started",
            ExecutorErrorKind::Staging => "the files of the program could not be prepared",
            ExecutorErrorKind::Unsupported => "this machine cannot run the program",
            ExecutorErrorKind::BadInput
            | ExecutorErrorKind::Cancelled
            | ExecutorErrorKind::Other => self.shown(),
        }
    }

    /// An option of an executor is wrong.
    pub(crate) fn bad_input(message: impl Into<String>) -> Self {
        Self { is_about_options: true, ..Self::new(ExecutorErrorKind::BadInput, message) }
    }

    pub(crate) fn cancelled() -> Self {
        Self::new(ExecutorErrorKind::Cancelled, "the call was cancelled")
    }

    /// A file or folder of a call that could not be written.
    pub(crate) fn staging(error: std::io::Error) -> Self {
        Self::new(ExecutorErrorKind::Staging, format!("cannot prepare the working folder: {error}"))
            .with_source(error)
    }
}

impl fmt::Display for ExecutorError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message)
    }
}

impl Error for ExecutorError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn Error + 'static))
    }
}
