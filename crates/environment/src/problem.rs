//! Problems: why a call of the process service was refused.
//!
//! In: a type of problem and a sentence. Out: a [`ProcessError`], which HTTP sends as a problem of RFC 9457.

use std::fmt;

/// A type of problem. Those that only HTTP has are here, too, so that there is one list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ProblemType {
    /// No JSON, a wrong type or range, an unknown field.
    BadRequest,
    /// HTTP: no token, or a wrong one.
    Unauthorized,
    /// HTTP: a request of a foreign web page.
    ForbiddenOrigin,
    /// There is no such process or tool.
    NotFound,
    /// HTTP: the address has not that method.
    MethodNotAllowed,
    /// The process runs or waits.
    NotIdle,
    /// The process runs no more.
    AlreadyIdle,
    /// The process has results, and `force` was not asked for.
    HasResults,
    /// Something is larger than it may be.
    TooLarge,
    /// HTTP: a body that is no JSON.
    UnsupportedMediaType,
    /// HTTP: more requests than allowed.
    RateLimited,
    /// As many processes wait as may.
    QueueFull,
    /// The service ends.
    ShuttingDown,
    /// A failure of the service itself.
    Internal,
}

impl ProblemType {
    /// The word for it: `not-idle`. HTTP writes `urn:isolane:` before it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.entry().0
    }

    /// The status of HTTP.
    #[must_use]
    pub fn status(self) -> u16 {
        self.entry().1
    }

    /// A sentence about all problems of this type.
    #[must_use]
    pub fn title(self) -> &'static str {
        self.entry().2
    }

    fn entry(self) -> (&'static str, u16, &'static str) {
        match self {
            Self::BadRequest => ("bad-request", 400, "The request is not valid"),
            Self::Unauthorized => ("unauthorized", 401, "A valid token is needed"),
            Self::ForbiddenOrigin => ("forbidden-origin", 403, "Requests from there are refused"),
            Self::NotFound => ("not-found", 404, "There is no such thing"),
            Self::MethodNotAllowed => ("method-not-allowed", 405, "The method is not allowed"),
            Self::NotIdle => ("not-idle", 409, "The process is not idle"),
            Self::AlreadyIdle => ("already-idle", 409, "The process is idle already"),
            Self::HasResults => ("has-results", 409, "The process has results"),
            Self::TooLarge => ("too-large", 413, "The request is too large"),
            Self::UnsupportedMediaType => ("unsupported-media-type", 415, "The body must be JSON"),
            Self::RateLimited => ("rate-limited", 429, "There are too many requests"),
            Self::QueueFull => ("queue-full", 503, "The queue is full"),
            Self::ShuttingDown => ("shutting-down", 503, "The service is shutting down"),
            Self::Internal => ("internal", 500, "The service failed"),
        }
    }
}

/// A call that the process service refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessError {
    /// The type of the problem.
    pub code: ProblemType,
    /// A sentence about this one: `process 5 is running`.
    pub message: String,
}

impl ProcessError {
    /// A problem of that type.
    pub fn new(code: ProblemType, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// The process is idle.
    pub(crate) fn already_idle(pid: u64) -> Self {
        Self::new(ProblemType::AlreadyIdle, format!("process {pid} is idle already"))
    }

    /// The process has results, which `force` would clear.
    pub(crate) fn has_results(pid: u64) -> Self {
        let message = format!("process {pid} has results: force clears them");
        Self::new(ProblemType::HasResults, message)
    }

    /// The request is not valid.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(ProblemType::BadRequest, message)
    }
}

impl fmt::Display for ProcessError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message)
    }
}

impl std::error::Error for ProcessError {}
