//! The responses to requests that succeed.
//!
//! In: a value, a text, a document. Out: a response with its media type.

use axum::{
    body::Body,
    http::{HeaderValue, header},
    response::{IntoResponse, Response},
};
use serde::Serialize;

use crate::problem::Problem;

/// The media types of responses.
pub(crate) const JSON: &str = "application/json";
pub(crate) const PLAIN: &str = "text/plain; charset=utf-8";
pub(crate) const MARKDOWN: &str = "text/markdown; charset=utf-8";
pub(crate) const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";
pub(crate) const HTML: &str = "text/html; charset=utf-8";
pub(crate) const EVENT_STREAM: &str = "text/event-stream";

/// The answer of a handler.
pub(crate) type Reply = Result<Response, Problem>;

/// A value as JSON.
pub(crate) fn json(value: &impl Serialize) -> Reply {
    match serde_json::to_string(value) {
        Ok(text) => Ok(typed(JSON, text)),
        Err(error) => Err(Problem::internal(format!("a response is no JSON: {error}"))),
    }
}

/// A body with its media type.
pub(crate) fn typed(media_type: &'static str, body: impl Into<Body>) -> Response {
    let media_type = [(header::CONTENT_TYPE, HeaderValue::from_static(media_type))];
    (media_type, body.into()).into_response()
}
