//! The client: requests of a run, each with its redirects, to the end of the answer.
//!
//! In: a [`Request`]. Out: a [`Response`], or an error of the table. Each hop is judged anew: its URL, its secrets, its
//! addresses. It speaks HTTP/1.1, which every server does; HTTP/2 would save nothing here, as a run has few requests at
//! a time.

use std::{fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use http_body_util::Full;
use hyper::{
    StatusCode,
    body::{Body as _, Incoming},
    header::{CONTENT_LENGTH, HeaderMap, LOCATION, TRANSFER_ENCODING},
};
use isolane::{Error, ErrorKind};
use tokio::time::{Instant, timeout_at};
use url::Url;

use super::{
    allow::Allow,
    body::{self, Count},
    connection::{Connection, Connector, READ_BYTES},
    dialer::Dialer,
    failure,
    options::{FetchLimits, FetchOptions},
    pool::Pool,
    progress::Progress,
    request::{Outgoing, Redirect, Request},
    run_limits::RunLimits,
    shared_room::SharedRoom,
    target,
};
use crate::{
    error::KitError,
    redaction::{Redaction, Redactor},
    room::Room,
    secrets::{Secrets, Snapshot},
};

/// The bytes that a request holds beside its own and its answer's: buffers of HTTP and TLS.
const WORK_BYTES: usize = 2 * READ_BYTES + (32 << 10);

/// The longest time limit: a year.
const LONGEST_TIMEOUT_MS: u64 = 365 * 24 * 3_600_000;

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// Its number, 200 for example.
    pub status: u16,
    /// The text beside the number.
    pub status_text: String,
    /// The URL that answered, without a fragment.
    pub url: String,
    /// Whether a redirect led there.
    pub redirected: bool,
    /// Names in lower case, and values. Values that are UTF-8 are read so, others as Latin-1.
    pub headers: Vec<(String, String)>,
    /// The body, without encodings.
    pub body: Vec<u8>,
}

/// Makes the requests of a kit. All clones are one. It keeps no thread; idle connections are closed after seconds.
#[derive(Clone)]
pub struct Fetcher(Arc<Inner>);

struct Inner {
    allow: Allow,
    limits: FetchLimits,
    connector: Connector,
    pool: Pool,
    secrets: Arc<Secrets>,
}

impl Fetcher {
    /// A client with these options, for a kit with these secrets.
    ///
    /// # Errors
    /// Misuse: `ca` has no certificates.
    pub fn new(options: FetchOptions, secrets: Arc<Secrets>) -> Result<Self, Error> {
        let FetchOptions { allow, addresses, ca, limits, resolver } = options;
        let connector = Connector::new(Dialer { addresses, resolver }, ca.as_deref())
            .map_err(|why| Error::new(ErrorKind::Type, format!("fetch.ca: {why}")))?;
        Ok(Self(Arc::new(Inner { allow, limits, connector, pool: Pool::default(), secrets })))
    }

    /// The limits of requests.
    #[must_use]
    pub fn limits(&self) -> &FetchLimits {
        &self.0.limits
    }

    /// Makes a request of the run to which the limits and the room belong. The future runs in tokio, with its clock and
    /// its sockets; dropping it closes the connection. The room is needed until the answer has been handed over.
    ///
    /// # Errors
    /// An error of the table: a TypeError, `FetchBlocked`, `FetchFailed`, `FetchTimeout` or `FetchLimit`.
    pub fn request<R: Room + Send + 'static>(
        &self,
        request: Request,
        limits: &RunLimits,
        room: R,
        progress: &Progress,
    ) -> impl Future<Output = Result<Response, KitError>> + Send + use<R> {
        let (inner, limits, progress) = (Arc::clone(&self.0), limits.clone(), progress.clone());
        let room = SharedRoom::new(room);
        async move {
            let mut exchange = inner.begin(request, limits, room, progress)?;
            // The first turn may take long. The time limit is that of the request itself.
            let _turn = exchange.limits.turn().await;
            let ms = exchange.timeout_ms();
            let deadline = Instant::now() + Duration::from_millis(ms);
            match timeout_at(deadline, exchange.run(deadline)).await {
                Ok(done) => done,
                Err(_elapsed) => Err(failure::timeout(&exchange.outgoing.url, ms)),
            }
        }
    }

    /// Closes all idle connections.
    pub fn close(&self) {
        self.0.pool.close();
    }
}

impl fmt::Debug for Fetcher {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Fetcher").field("limits", &self.0.limits).finish_non_exhaustive()
    }
}

impl Inner {
    fn begin(
        self: Arc<Self>,
        request: Request,
        limits: RunLimits,
        room: SharedRoom,
        progress: Progress,
    ) -> Result<Exchange, KitError> {
        let outgoing = Outgoing::new(request)?;
        progress.begin(outgoing.method, &outgoing.url);
        limits.call()?;
        room.need(WORK_BYTES.saturating_add(outgoing.held_bytes()))?;
        Ok(Exchange { fetcher: self, outgoing, limits, room, progress, redirects: 0 })
    }
}

/// A request under way.
struct Exchange {
    fetcher: Arc<Inner>,
    outgoing: Outgoing,
    limits: RunLimits,
    room: SharedRoom,
    progress: Progress,
    redirects: u32,
}

impl Exchange {
    fn timeout_ms(&self) -> u64 {
        let most = self.fetcher.limits.timeout_ms.min(LONGEST_TIMEOUT_MS);
        self.outgoing.timeout_ms.map_or(most, |ms| ms.min(most))
    }

    /// Makes the request, and follows redirects.
    async fn run(&mut self, deadline: Instant) -> Result<Response, KitError> {
        loop {
            let hop = self.hop(deadline).await.map_err(|error| self.on_hop(error))?;
            if let Some(response) = hop {
                return Ok(response);
            }
        }
    }

    /// Names the hop in errors that depend on it.
    fn on_hop(&self, error: KitError) -> KitError {
        let depends = matches!(error.name(), "FetchBlocked" | "FetchFailed");
        if self.redirects > 0 && depends { error.on_redirect(self.redirects) } else { error }
    }

    /// Sends one request. `None` means that it was redirected.
    async fn hop(&mut self, deadline: Instant) -> Result<Option<Response>, KitError> {
        let secrets = self.fetcher.secrets.snapshot();
        self.fetcher.allow.judge(Some(self.outgoing.method), &self.outgoing.url)?;
        let (answer, connection) = self.send(&secrets, deadline).await?;
        let (head, incoming) = answer.into_parts();
        self.progress.status(head.status);
        if head.status == StatusCode::SWITCHING_PROTOCOLS {
            return Err(failure::no_valid_answer(&self.outgoing.url));
        }
        let fetcher = Arc::clone(&self.fetcher);
        let limits = self.limits.clone();
        let mut count = Count::new(&limits, fetcher.limits.max_response_bytes);
        let head_bytes = size_of_head(&head.headers);
        self.room.need(3 * head_bytes)?;
        let result = async {
            count.came(head_bytes)?;
            if let Some(target) = self.redirect(head.status, &head.headers, &secrets)? {
                if incoming.is_end_stream() {
                    fetcher.pool.keep(&self.outgoing.url, connection).await;
                }
                self.outgoing.follow(head.status.as_u16(), target, &secrets);
                return Ok(None);
            }
            let url = &self.outgoing.url;
            let body =
                body::read(incoming, &head.headers, url, &secrets, &self.room, &mut count).await?;
            // An answer whose length is told in two ways may be the beginning of an attack on the next one.
            let is_clear = !(head.headers.contains_key(TRANSFER_ENCODING)
                && head.headers.contains_key(CONTENT_LENGTH));
            if is_clear {
                fetcher.pool.keep(url, connection).await;
            }
            Ok(Some(self.response(&head, body, &secrets)))
        }
        .await;
        self.progress.bytes(count.bytes());
        result
    }

    /// Where a redirect leads; `None` for an answer to hand over.
    fn redirect(
        &mut self,
        status: StatusCode,
        headers: &HeaderMap,
        secrets: &Snapshot,
    ) -> Result<Option<Url>, KitError> {
        let is_redirect = matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308);
        let Some(location) = headers.get(LOCATION).filter(|_| is_redirect) else { return Ok(None) };
        if self.outgoing.redirect == Redirect::Manual {
            return Ok(None);
        }
        self.redirects += 1;
        if self.outgoing.redirect == Redirect::Error {
            return Err(failure::not_followed());
        }
        let most = self.fetcher.limits.max_redirects;
        if u64::from(self.redirects) > most {
            return Err(failure::limit(format!("more than {most} redirects")));
        }
        // Sealed secrets of this host are placeholders again, so that they stay sealed and go only where they may.
        let redactor = secrets.responses_of(&self.outgoing.url);
        let location = shown(location.as_bytes(), &redactor);
        let invalid = || failure::no_valid_answer(&self.outgoing.url);
        let target = self.outgoing.url.join(&location).map_err(|_| invalid())?;
        // A URL has in UTF-8 what the header has in Latin-1.
        target::parse(&redactor.text(target.as_str())).map(Some).map_err(|_| invalid())
    }

    /// Sends the request over an idle connection or a new one, and awaits the head of the answer.
    async fn send(
        &self,
        secrets: &Snapshot,
        deadline: Instant,
    ) -> Result<(hyper::Response<Incoming>, Connection), KitError> {
        let (url, fetcher) = (&self.outgoing.url, &*self.fetcher);
        let (request, bytes) = self.outgoing.to_http(secrets, fetcher.limits.max_request_bytes)?;
        // Copies with secrets in them, and the head as it is written.
        self.room.need(usize::try_from(bytes).unwrap_or(usize::MAX))?;
        self.limits.bytes(bytes)?;
        self.progress.bytes(bytes);
        let mut request = Some(request);
        // A server may close an idle connection at any time. A request that it cannot have begun to serve is sent again.
        while let Some(mut connection) = fetcher.pool.take(url) {
            let Some(sent) = request.take() else { break };
            let again = matches!(self.outgoing.method, "GET" | "HEAD").then(|| copy(&sent));
            match connection.sender.try_send_request(sent).await {
                Ok(answer) => return Ok((answer, connection)),
                Err(mut failed) => {
                    request = failed.take_message().or(again);
                    if request.is_none() || failed.error().is_parse() {
                        return Err(failure::of_exchange(failed.error(), url));
                    }
                }
            }
        }
        let mut connection = fetcher.connector.connect(url, deadline).await?;
        let request = request.ok_or_else(|| failure::broke_connection(url))?;
        match connection.sender.send_request(request).await {
            Ok(answer) => Ok((answer, connection)),
            Err(error) => Err(failure::of_exchange(&error, url)),
        }
    }

    fn response(
        &self,
        head: &hyper::http::response::Parts,
        body: Vec<u8>,
        secrets: &Snapshot,
    ) -> Response {
        let redactor = &secrets.responses_of(&self.outgoing.url);
        let reason = head.extensions.get::<hyper::ext::ReasonPhrase>();
        let status_text = match reason {
            Some(reason) => shown(reason.as_bytes(), redactor),
            None => head.status.canonical_reason().unwrap_or_default().to_owned(),
        };
        let header = |(name, value): (&hyper::header::HeaderName, &hyper::header::HeaderValue)| {
            (redactor.text(name.as_str()).into_owned(), shown(value.as_bytes(), redactor))
        };
        Response {
            status: head.status.as_u16(),
            status_text,
            url: redactor.text(self.outgoing.url.as_str()).into_owned(),
            redirected: self.redirects > 0,
            headers: head.headers.iter().map(header).collect(),
            body,
        }
    }
}

/// The same request once more. Its body is shared.
fn copy(request: &hyper::Request<Full<Bytes>>) -> hyper::Request<Full<Bytes>> {
    let mut copy = hyper::Request::new(request.body().clone());
    *copy.uri_mut() = request.uri().clone();
    *copy.method_mut() = request.method().clone();
    *copy.headers_mut() = request.headers().clone();
    copy
}

/// The bytes of an answer's head.
fn size_of_head(headers: &HeaderMap) -> usize {
    headers.iter().map(|(name, value)| name.as_str().len() + value.len() + ": \r\n".len()).sum()
}

/// Bytes of an answer's head as a text, without values of secrets.
fn shown(bytes: &[u8], redactor: &Arc<Redactor>) -> String {
    let mut redacted = Vec::with_capacity(bytes.len());
    let mut redaction = Redaction::new(Arc::clone(redactor));
    redaction.push(bytes, &mut redacted);
    redaction.finish(&mut redacted);
    String::from_utf8(redacted)
        .unwrap_or_else(|error| error.as_bytes().iter().copied().map(char::from).collect())
}
