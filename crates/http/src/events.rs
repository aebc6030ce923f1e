//! Streams of events.
//!
//! In: a process, or all of them, and the last event that the client has. Out: `text/event-stream`. A reader that is too
//! far behind is cut off: its connection breaks, and it may resume.

use std::time::Duration;

use axum::{
    body::{Body, Bytes},
    extract::{RawQuery, State},
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode},
    response::{IntoResponse, Response},
};
use futures_util::{FutureExt, stream::unfold};
use isolane_environment::{AllEvents, Lagged, ProcessEvent, ProcessEvents};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::{
    app::SharedApp,
    params::{self, PidParam},
    problem::Problem,
    reply::{EVENT_STREAM, Reply, typed},
};

/// A comment comes after so long without an event, so that nobody between takes the connection for dead.
const SILENCE: Duration = Duration::from_secs(15);

/// GET `/processes/{pid}/events`
pub(crate) async fn of_process(
    State(app): State<SharedApp>,
    pid: PidParam,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Reply {
    let after = after(&headers, query.as_deref())?;
    let pid = params::pid(pid)?;
    match app.service.events(pid, after.unwrap_or(0)).await? {
        Some(events) => Ok(stream(&app, Source::One(Box::new(events)))),
        None => Ok(StatusCode::NO_CONTENT.into_response()),
    }
}

/// GET `/events`
pub(crate) async fn of_all(
    State(app): State<SharedApp>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Reply {
    let after = after(&headers, query.as_deref())?;
    Ok(stream(&app, Source::All(app.service.all_events(after))))
}

/// The last event that the client has. The header wins: a browser sends it when it resumes, with the address of before.
fn after(headers: &HeaderMap, query: Option<&str>) -> Result<Option<u64>, Problem> {
    let after = params::after(query)?;
    match headers.get("last-event-id").filter(|id| !id.is_empty()) {
        None => Ok(after),
        Some(id) => {
            let id = String::from_utf8_lossy(id.as_bytes());
            params::event_id("Last-Event-ID", &id).map(Some)
        }
    }
}

/// Where events come from.
enum Source {
    One(Box<ProcessEvents>),
    All(AllEvents),
}

impl Source {
    /// Dropping the future loses no event.
    async fn next(&mut self) -> Result<Option<ProcessEvent>, Lagged> {
        match self {
            Self::One(events) => events.next().await,
            Self::All(events) => events.next().await,
        }
    }
}

/// A stream that is being sent.
struct Sending {
    source: Source,
    closing: CancellationToken,
    /// The event that was looked at to know whether any can follow.
    first: Option<Result<Option<ProcessEvent>, Lagged>>,
    is_cut_off: bool,
}

fn stream(app: &SharedApp, mut source: Source) -> Response {
    let first = source.next().now_or_never();
    if let Some(Ok(None)) = first {
        return StatusCode::NO_CONTENT.into_response();
    }
    let closing = app.closing.clone();
    let sending = Sending { source, closing, first, is_cut_off: false };
    let body = Body::from_stream(unfold(sending, Sending::step));
    let mut response = typed(EVENT_STREAM, body);
    // Or proxies would collect events.
    let name = HeaderName::from_static("x-accel-buffering");
    response.headers_mut().insert(name, HeaderValue::from_static("no"));
    response
}

impl Sending {
    /// The next piece of the stream.
    async fn step(mut self) -> Option<(Result<Bytes, Lagged>, Self)> {
        if self.is_cut_off {
            return None;
        }
        let event = match self.first.take() {
            Some(event) => event,
            None => tokio::select! {
                biased;
                () = self.closing.cancelled() => return None,
                event = self.source.next() => event,
                () = sleep(SILENCE) => return Some((Ok(Bytes::from_static(b":\n\n")), self)),
            },
        };
        match event {
            Ok(event) => Some((Ok(frame(&event?)), self)),
            Err(lagged) => {
                self.is_cut_off = true;
                // The error breaks the connection, so that the client sees no regular end.
                Some((Err(lagged), self))
            }
        }
    }
}

/// An event as text.
fn frame(event: &ProcessEvent) -> Bytes {
    let ProcessEvent { id, kind, data } = event;
    format!("id: {id}\nevent: {}\ndata: {data}\n\n", kind.as_str()).into()
}
