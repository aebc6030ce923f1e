//! A server: an address, and what answers there.
//!
//! In: a service and options. Out: connections that are answered until the server is closed. Each connection has time
//! limits: for the head of a request, for its body, for a peer that takes nothing.

use std::{convert::Infallible, net::SocketAddr, sync::Arc, time::Duration};

use axum::{Router, body::Body, http::Request, middleware::from_fn_with_state};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use isolane::{Error, ErrorKind};
use isolane_environment::ProcessService;
use tokio::{
    net::{TcpListener, TcpStream},
    pin,
    runtime::Handle,
    time::sleep,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tower_service::Service;

use crate::{
    ListenOptions,
    app::{App, SharedApp},
    connections::{AnsweringBody, Connection, Connections},
    guard::{Peer, guard},
    operations,
    patient::Patient,
};

/// The time for the head of a request, and the longest that a connection stays idle.
const HEAD_TIME: Duration = Duration::from_secs(30);

/// The time that requests have to end when the server closes.
const CLOSE_TIME: Duration = Duration::from_secs(5);

/// The pause after a connection that could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The most bytes of a request's head.
const MOST_HEAD_BYTES: usize = 64 << 10;

/// A server that answers clients of a process service over HTTP/1.1. Dropping it closes it, and waits for nobody.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    url: String,
    closing: CancellationToken,
    is_closed: CancellationToken,
    connections: Arc<Connections>,
}

impl Server {
    /// Listens at an address, and answers there. Works under any executor.
    ///
    /// # Errors
    /// An option out of range; an address that is no loopback address, without a token; an address that cannot be had.
    pub async fn listen(service: ProcessService, options: ListenOptions) -> Result<Self, Error> {
        options.check()?;
        if service.is_shutting_down() {
            return Err(Error::new(ErrorKind::Unavailable, "the service is shutting down"));
        }
        let handle = match &options.handle {
            Some(handle) => handle.clone(),
            None => isolane::spawn(async { Handle::current() }).await?,
        };
        let started = handle.spawn(Self::start(service, options)).await;
        started.map_err(|error| {
            let message = "the server did not start";
            Error::new(ErrorKind::Internal, format!("{message}: {error}"))
        })?
    }

    /// The address of the server: `http://127.0.0.1:4765`.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The address of its socket.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many connections there are now.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.connections.count()
    }

    /// Ends all streams and waits, and gives requests 5 seconds to end. Requests that come meanwhile are answered 503,
    /// `shutting-down`. Each further call waits for the same. The service goes on. Works under any executor.
    pub async fn close(&self) {
        self.closing.cancel();
        self.is_closed.cancelled().await;
    }

    /// Resolves when the server is closed. Works under any executor, and holds nothing of the server.
    pub fn closed(&self) -> impl Future<Output = ()> + Send + use<> {
        self.is_closed.clone().cancelled_owned()
    }

    async fn start(service: ProcessService, options: ListenOptions) -> Result<Self, Error> {
        let listener = bind(&options).await?;
        let address = listener.local_addr().map_err(|error| unavailable(&options, &error))?;
        let (closing, is_closed) = (CancellationToken::new(), CancellationToken::new());
        let connections = Connections::new(options.max_connections);
        let app = Arc::new(App::new(service, options, closing.clone()));
        let serving = Serving {
            router: router(&app),
            app,
            connections: Arc::clone(&connections),
            tasks: TaskTracker::new(),
            abort: CancellationToken::new(),
        };
        let is_over = is_closed.clone().drop_guard();
        // The task ends when the server is closed, which `is_closed` tells.
        drop(tokio::spawn(async move {
            serving.accept_all(listener).await;
            drop(is_over);
        }));
        Ok(Self { address, url: format!("http://{address}"), closing, is_closed, connections })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.closing.cancel();
    }
}

async fn bind(options: &ListenOptions) -> Result<TcpListener, Error> {
    let host = options.host.trim_start_matches('[').trim_end_matches(']');
    let found = tokio::net::lookup_host((host, options.port)).await;
    let addresses: Vec<SocketAddr> = found.map_err(|error| unavailable(options, &error))?.collect();
    let is_open = addresses.iter().any(|address| !address.ip().to_canonical().is_loopback());
    if options.token.is_none() && is_open {
        let message = format!(
            "without a token, host must be a loopback address, got '{}'",
            options.host.chars().take(100).collect::<String>()
        );
        return Err(Error::new(ErrorKind::Type, message));
    }
    TcpListener::bind(&addresses[..]).await.map_err(|error| unavailable(options, &error))
}

fn unavailable(options: &ListenOptions, error: &std::io::Error) -> Error {
    let host: String = options.host.chars().take(100).collect();
    let message = format!("the server cannot listen at {host}, port {}: {error}", options.port);
    Error::new(ErrorKind::Unavailable, message)
}

fn router(app: &SharedApp) -> Router {
    operations::routes()
        .layer(from_fn_with_state(Arc::clone(app), guard))
        .with_state(Arc::clone(app))
}

/// The parts that all connections share.
#[derive(Clone, Debug)]
struct Serving {
    router: Router,
    app: SharedApp,
    connections: Arc<Connections>,
    tasks: TaskTracker,
    /// Cancelled when connections have had their time to end.
    abort: CancellationToken,
}

impl Serving {
    /// Takes connections until the server closes, and waits for them.
    async fn accept_all(self, listener: TcpListener) {
        loop {
            let accepted = tokio::select! {
                biased;
                () = self.app.closing.cancelled() => break,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((socket, peer)) => {
                    // Dropped, and so closed, if there are too many.
                    if let Some(connection) = self.connections.open() {
                        self.tasks.spawn(self.clone().serve(socket, peer, connection, false));
                    }
                }
                Err(error) => {
                    self.app.log.line(&format!("a connection was not accepted: {error}"));
                    // The system may have no descriptors left.
                    self.connections.end_idlest();
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
        self.tasks.close();
        tokio::select! {
            biased;
            () = self.tasks.wait() => {}
            () = sleep(CLOSE_TIME) => {}
            never = self.refuse_all(&listener) => match never {},
        }
        drop(listener);
        self.abort.cancel();
        self.tasks.wait().await;
    }

    /// Takes connections for one request each, which is told that the server closes. Nobody waits for them.
    async fn refuse_all(&self, listener: &TcpListener) -> Infallible {
        loop {
            match listener.accept().await {
                Ok((socket, peer)) => {
                    if let Some(connection) = self.connections.open() {
                        let serving = self.clone().serve(socket, peer, connection, true);
                        // It ends with `abort` at the latest.
                        drop(tokio::spawn(serving));
                    }
                }
                Err(_) => sleep(ACCEPT_PAUSE).await,
            }
        }
    }

    /// Answers the requests of a connection; one request, if the connection is late.
    async fn serve(
        self,
        socket: TcpStream,
        peer: SocketAddr,
        connection: Connection,
        is_late: bool,
    ) {
        // Without it small events wait for others. A socket that refuses it is no worse otherwise.
        let _ = socket.set_nodelay(true);
        let peer = Peer(peer.ip().to_canonical());
        let service = service_fn(|request: Request<Incoming>| {
            let answering = connection.request();
            let mut router = self.router.clone();
            async move {
                let mut request = request.map(Body::new);
                request.extensions_mut().insert(peer);
                let response = router.call(request).await?;
                let answer = |body| AnsweringBody { body, _answering: answering };
                Ok::<_, Infallible>(response.map(answer))
            }
        });
        let answers = http1::Builder::new()
            .timer(TokioTimer::new())
            .keep_alive(!is_late)
            .header_read_timeout(HEAD_TIME)
            .max_buf_size(MOST_HEAD_BYTES)
            .max_header_size(MOST_HEAD_BYTES)
            .serve_connection(TokioIo::new(Patient::new(socket, connection.sending())), service);
        pin!(answers);
        let mut is_ending = is_late;
        loop {
            tokio::select! {
                biased;
                () = self.abort.cancelled() => return,
                () = connection.ended() => return,
                () = self.app.closing.cancelled(), if !is_ending => {
                    if connection.is_idle() {
                        return;
                    }
                    is_ending = true;
                    answers.as_mut().graceful_shutdown();
                }
                // The peer caused the error, and gets no further answer.
                _ = answers.as_mut() => return,
            }
        }
    }
}
