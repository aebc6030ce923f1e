//! Problems: the answers to requests that fail, by RFC 9457.
//!
//! In: a problem of the service or of HTTP. Out: a response with the fields `type`, `title`, `status` and `detail`. A
//! failure of the service itself leaves as a mere mark, so that its text goes to the log and to nobody else.

use axum::{
    http::{HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use isolane_environment::{ProblemType, ProcessError};
use serde_json::json;

use crate::log::FailureLog;

/// The media type of a problem.
pub(crate) const PROBLEM_JSON: &str = "application/problem+json";

/// A problem.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    error: ProcessError,
    header: Option<(HeaderName, HeaderValue)>,
}

/// The mark of a response to a failure: the text for the log.
#[derive(Clone, Debug)]
pub(crate) struct Failure(String);

impl Problem {
    pub(crate) fn new(code: ProblemType, detail: impl Into<String>) -> Self {
        Self { error: ProcessError::new(code, detail), header: None }
    }

    pub(crate) fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(ProblemType::BadRequest, detail)
    }

    pub(crate) fn not_found(detail: impl Into<String>) -> Self {
        Self::new(ProblemType::NotFound, detail)
    }

    pub(crate) fn unauthorized(detail: impl Into<String>) -> Self {
        let scheme = (header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        Self { header: Some(scheme), ..Self::new(ProblemType::Unauthorized, detail) }
    }

    /// There are too many requests, for so many seconds more.
    pub(crate) fn rate_limited(seconds: u64) -> Self {
        let code = ProblemType::RateLimited;
        let detail = format!("there are too many requests; try again in {seconds} s");
        let retry = (header::RETRY_AFTER, HeaderValue::from(seconds));
        Self { header: Some(retry), ..Self::new(code, detail) }
    }

    /// The server is closing, and its connections end.
    pub(crate) fn closing() -> Self {
        Self::new(ProblemType::ShuttingDown, "the server is shutting down").and_close()
    }

    /// The connection ends with this answer.
    pub(crate) fn and_close(self) -> Self {
        Self { header: Some((header::CONNECTION, HeaderValue::from_static("close"))), ..self }
    }

    /// A failure, whose text is for the log alone.
    pub(crate) fn internal(text: impl Into<String>) -> Self {
        Self::new(ProblemType::Internal, text)
    }
}

impl From<ProcessError> for Problem {
    fn from(error: ProcessError) -> Self {
        // A place in the queue becomes free at any moment.
        let retry = (header::RETRY_AFTER, HeaderValue::from_static("1"));
        let header = (error.code == ProblemType::QueueFull).then_some(retry);
        Self { error, header }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let Self { error: ProcessError { code, message }, header } = self;
        if code == ProblemType::Internal {
            let mut response = StatusCode::INTERNAL_SERVER_ERROR.into_response();
            response.extensions_mut().insert(Failure(message));
            return response;
        }
        let mut response = respond(code, &message);
        if let Some((name, value)) = header {
            response.headers_mut().insert(name, value);
        }
        response
    }
}

/// Writes the failure of a marked response into the log. The client gets the id that it has there.
pub(crate) fn tell(mut response: Response, log: &FailureLog) -> Response {
    match response.extensions_mut().remove::<Failure>() {
        None => response,
        Some(Failure(text)) => {
            let id = log.failure(&text);
            respond(ProblemType::Internal, &format!("the log has this failure as {id}"))
        }
    }
}

fn respond(code: ProblemType, detail: &str) -> Response {
    let status = code.status();
    let body = json!({
        "type": format!("urn:isolane:{}", code.as_str()),
        "title": code.title(),
        "status": status,
        "detail": detail,
    });
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let media_type = [(header::CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON))];
    (status, media_type, body.to_string()).into_response()
}
