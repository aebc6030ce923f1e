//! The bodies of requests.
//!
//! In: a request. Out: JSON, or a problem. A body that nobody wants is read all the same, up to a bound and while its sender
//! reads the answer: a connection that ends with unread bytes may lose the answer.

use std::time::Duration;

use axum::{
    body::{Body, Bytes},
    extract::Request,
    http::{HeaderMap, header},
};
use http_body_util::BodyExt;
use isolane_environment::ProblemType;
use serde_json::Value;
use tokio::time::timeout;

use crate::{app::App, problem::Problem, strict_json};

/// The bytes that are read of a body that nobody wants, and the time for it.
const MOST_DISCARDED: usize = 16 << 20;
const DISCARD_TIME: Duration = Duration::from_secs(5);

/// The time that a body may take: as much, and a second for each 64 KiB that it may have.
const LEAST_TIME: Duration = Duration::from_secs(30);

/// The JSON of a body; `None` for an empty one.
///
/// # Errors
/// `too-large`, `unsupported-media-type`, `bad-request`, `shutting-down`.
pub(crate) async fn json(app: &App, request: Request) -> Result<Option<Value>, Problem> {
    let media_type = media_type(request.headers());
    if media_type.as_deref().is_some_and(|media_type| media_type != "application/json") {
        discard(app, request);
        return Err(not_json());
    }
    let bytes = read(app, request).await?;
    if bytes.is_empty() {
        return Ok(None);
    }
    if media_type.is_none() {
        return Err(not_json());
    }
    strict_json::read(&bytes)
        .map(Some)
        .map_err(|error| Problem::bad_request(format!("the body is no valid JSON: {error}")))
}

/// Reads a body to its end, and throws it away. The answer does not wait for it.
pub(crate) fn discard(app: &App, request: Request) {
    if request.headers().contains_key(header::EXPECT) {
        // The client waits for leave to send it.
        return;
    }
    discard_rest(app, request.into_body());
}

fn discard_rest(app: &App, mut body: Body) {
    let closing = app.closing.clone();
    // The task ends by itself: nobody waits for it. It does not matter whether all of the body was read.
    drop(tokio::spawn(async move {
        tokio::select! {
            () = closing.cancelled() => {}
            _ = timeout(DISCARD_TIME, discard_frames(&mut body, MOST_DISCARDED)) => {}
        }
    }));
}

fn not_json() -> Problem {
    let detail = "the header Content-Type must be application/json";
    Problem::new(ProblemType::UnsupportedMediaType, detail)
}

/// The connection ends with this answer: the rest of the body would stand before the next request.
fn too_large(most: usize) -> Problem {
    let detail = format!("the body is larger than {most} bytes");
    Problem::new(ProblemType::TooLarge, detail).and_close()
}

/// The media type without its parameters.
fn media_type(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(header::CONTENT_TYPE)?;
    let text = value.to_str().unwrap_or_default();
    Some(text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase())
}

async fn read(app: &App, request: Request) -> Result<Bytes, Problem> {
    let most = app.max_body_bytes;
    let declared = request.headers().get(header::CONTENT_LENGTH);
    let declared = declared.and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    if declared.is_some_and(|declared| declared > most) {
        discard(app, request);
        return Err(too_large(most));
    }
    let mut body = request.into_body();
    let time = LEAST_TIME + Duration::from_secs((most >> 16) as u64);
    let read = tokio::select! {
        biased;
        read = timeout(time, frames(&mut body, most)) => read,
        // Its sender may never end it.
        () = app.closing.cancelled() => return Err(Problem::closing()),
    };
    match read {
        Ok(Ok(Some(bytes))) => Ok(bytes),
        Ok(Ok(None)) => {
            discard_rest(app, body);
            Err(too_large(most))
        }
        Ok(Err(problem)) => Err(problem),
        Err(_) => {
            let detail = format!("the body did not arrive within {} s", time.as_secs());
            Err(Problem::bad_request(detail))
        }
    }
}

/// The bytes of a body; `None` if there are too many.
async fn frames(body: &mut Body, most: usize) -> Result<Option<Bytes>, Problem> {
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame =
            frame.map_err(|error| Problem::bad_request(format!("the body is broken: {error}")))?;
        let Ok(data) = frame.into_data() else { continue };
        if bytes.len() + data.len() > most {
            return Ok(None);
        }
        bytes.extend_from_slice(&data);
    }
    Ok(Some(bytes.into()))
}

async fn discard_frames(body: &mut Body, most: usize) {
    let mut read = 0;
    while let Some(Ok(frame)) = body.frame().await {
        read += frame.data_ref().map_or(0, Bytes::len);
        if read > most {
            return;
        }
    }
}
