//! The connections of a proxy.
//!
//! In: sockets of the browser. Out: for each request an answer, or a tunnel. Everything ends with the proxy.

use std::{convert::Infallible, sync::Arc, time::Duration};

use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::{
    Method, Request, Response, StatusCode,
    body::Incoming,
    header::{HeaderValue, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    time::{Instant, sleep},
};
use url::Url;

use super::{ProxyRules, forward::forward};
use crate::{
    error::KitError,
    fetch::{HEAD_BYTES, MOST_HEADERS, READ_BYTES},
};

/// Connections at a time; others wait.
const MOST_CONNECTIONS: usize = 256;

/// The time that a request's head may take.
const HEAD_TIME: Duration = Duration::from_secs(30);

/// The time that a connection to a host may take.
const DIAL_TIME: Duration = Duration::from_secs(30);

/// The pause after a socket that could not be accepted.
const PAUSE: Duration = Duration::from_millis(50);

/// The body of an answer: the host's, or a message of the proxy's.
pub(super) type Body = Either<Full<Bytes>, Incoming>;

/// A proxy as its connections see it.
pub(super) struct Gate {
    pub(super) rules: ProxyRules,
    /// The value of the header that a browser with the password sends.
    authorization: String,
    /// Ends with the proxy.
    ended: watch::Receiver<bool>,
}

/// A connection of the browser, or the tunnel that it became.
type Turn = Arc<OwnedSemaphorePermit>;

/// Serves until the proxy ends.
pub(super) async fn serve(
    listener: TcpListener,
    rules: ProxyRules,
    authorization: String,
    ended: watch::Receiver<bool>,
) {
    let gate = Arc::new(Gate { rules, authorization, ended });
    let turns = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let accepting = async {
        loop {
            let Ok(turn) = Arc::clone(&turns).acquire_owned().await else { return };
            match listener.accept().await {
                Ok((socket, _)) => {
                    tokio::spawn(connection(socket, Arc::clone(&gate), Arc::new(turn)));
                }
                // A socket that is gone already, or none is left.
                Err(_) => sleep(PAUSE).await,
            }
        }
    };
    gate.until_end(accepting).await;
}

async fn connection(socket: TcpStream, gate: Arc<Gate>, turn: Turn) {
    let service = {
        let gate = Arc::clone(&gate);
        service_fn(move |request| {
            let (gate, turn) = (Arc::clone(&gate), Arc::clone(&turn));
            async move { Ok::<_, Infallible>(gate.answer(request, turn).await) }
        })
    };
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME);
    builder.max_buf_size(READ_BYTES).max_headers(MOST_HEADERS);
    let serving = builder.serve_connection(TokioIo::new(socket), service).with_upgrades();
    // A browser that breaks off needs no answer.
    gate.until_end(async { drop(serving.await) }).await;
}

impl Gate {
    /// Does something until it is done, or the proxy ends.
    pub(super) async fn until_end(&self, work: impl Future<Output = ()>) {
        let mut ended = self.ended.clone();
        tokio::select! {
            () = work => {}
            // Either way there is no proxy any more.
            _ = ended.wait_for(|ended| *ended) => {}
        }
    }

    async fn answer(self: Arc<Self>, request: Request<Incoming>, turn: Turn) -> Response<Body> {
        let given = request.headers().get(PROXY_AUTHORIZATION);
        if !given.is_some_and(|given| is_same(given.as_bytes(), self.authorization.as_bytes())) {
            let mut answer =
                refusal(StatusCode::PROXY_AUTHENTICATION_REQUIRED, "a password is needed");
            let basic = HeaderValue::from_static("Basic realm=\"isolane\"");
            answer.headers_mut().insert(PROXY_AUTHENTICATE, basic);
            return answer;
        }
        let answered = if request.method() == Method::CONNECT {
            self.tunnel(request, turn).await
        } else {
            forward(&self, request).await
        };
        answered.unwrap_or_else(|error| refusal_of(&error))
    }

    /// Opens a tunnel to an origin. Nobody reads what goes through it, so only https has tunnels.
    async fn tunnel(
        self: Arc<Self>,
        request: Request<Incoming>,
        turn: Turn,
    ) -> Result<Response<Body>, KitError> {
        let wrong = || KitError::wrong_arguments("CONNECT takes a host and a port");
        let authority = request.uri().authority().ok_or_else(wrong)?;
        authority.port().ok_or_else(wrong)?;
        let url = Url::parse(&format!("https://{authority}/")).map_err(|_| wrong())?;
        if url.path() != "/" || !url.username().is_empty() || url.password().is_some() {
            return Err(wrong());
        }
        self.rules.allow.judge_origin(&url)?;
        let mut socket = self.dial(&url).await?;
        tokio::spawn(async move {
            let _turn = turn;
            let copying = async {
                if let Ok(browser) = hyper::upgrade::on(request).await {
                    // Either side may break it off.
                    let _ = copy_bidirectional(&mut TokioIo::new(browser), &mut socket).await;
                }
            };
            self.until_end(copying).await;
        });
        Ok(Response::new(Either::Left(Full::default())))
    }

    /// Dials the host of a URL that is allowed.
    pub(super) async fn dial(&self, url: &Url) -> Result<TcpStream, KitError> {
        self.rules.dialer.dial(url, Instant::now() + DIAL_TIME).await
    }
}

/// The answer to a request that is not let through, or has no answer.
fn refusal_of(error: &KitError) -> Response<Body> {
    let status = match error.name() {
        "FetchBlocked" => StatusCode::FORBIDDEN,
        "TypeError" => StatusCode::BAD_REQUEST,
        _ => StatusCode::BAD_GATEWAY,
    };
    refusal(status, error.message())
}

fn refusal(status: StatusCode, message: &str) -> Response<Body> {
    let mut answer = Response::new(Either::Left(Full::from(message.to_owned())));
    *answer.status_mut() = status;
    answer
}

/// Whether the bytes are the same, in a time that does not tell where they differ.
fn is_same(given: &[u8], wanted: &[u8]) -> bool {
    let differ = given.iter().zip(wanted).fold(0, |all, (one, other)| all | (one ^ other));
    given.len() == wanted.len() && differ == 0
}

/// Bounds of the heads of answers are those of requests by `fetch`.
pub(super) fn client() -> hyper::client::conn::http1::Builder {
    let mut builder = hyper::client::conn::http1::Builder::new();
    builder.max_buf_size(READ_BYTES).max_header_size(HEAD_BYTES).max_headers(MOST_HEADERS);
    builder
}
