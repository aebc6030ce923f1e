//! Servers on loopback that answer as a test says.
//!
//! In: a function from the bytes of a request to the bytes of an answer. Out: a port, and the requests that came. Bytes
//! are written as they are, so that a server may lie.

use std::{
    future::Future,
    net::{IpAddr, SocketAddr},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use isolane_kit::{
    error::KitError,
    fetch::{
        FetchLimits, FetchOptions, Fetcher, Progress, Request, Resolved, Resolver, Response,
        RunLimits,
        address::Addresses,
        allow::{Allow, AllowEntry},
    },
    room::FixedRoom,
    secrets::{SecretOptions, Secrets},
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpSocket},
};
use zeroize::Zeroizing;

/// One step of an answer.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Writes bytes.
    Write(Vec<u8>),
    /// Writes nothing until the client goes.
    Stall,
    /// Closes the connection.
    Close,
}

/// An answer: its steps. The connection stays open after it.
pub(crate) type Answer = Vec<Step>;

/// An answer of these bytes.
pub(crate) fn raw(bytes: impl Into<Vec<u8>>) -> Answer {
    vec![Step::Write(bytes.into())]
}

/// An answer with this head line, these headers, and a body with its length.
pub(crate) fn answer(head: &str, headers: &str, body: impl AsRef<[u8]>) -> Answer {
    let body = body.as_ref();
    let mut bytes =
        format!("HTTP/1.1 {head}\r\n{headers}Content-Length: {}\r\n\r\n", body.len()).into_bytes();
    bytes.extend_from_slice(body);
    raw(bytes)
}

/// `200 OK` with that body.
pub(crate) fn ok(body: impl AsRef<[u8]>) -> Answer {
    answer("200 OK", "", body)
}

/// A redirect.
pub(crate) fn to(status: u16, location: &str) -> Answer {
    answer(&format!("{status} Moved"), &format!("Location: {location}\r\n"), "")
}

/// A server. It ends with the runtime of the test.
pub(crate) struct Server {
    pub(crate) port: u16,
    /// The requests, whole.
    pub(crate) requests: Arc<Mutex<Vec<String>>>,
    /// The connections that were accepted, and those that are open.
    pub(crate) accepted: Arc<AtomicUsize>,
    pub(crate) open: Arc<AtomicUsize>,
}

impl Server {
    /// Answers each request by `answer`.
    pub(crate) async fn start(answer: impl Fn(&str) -> Answer + Send + Sync + 'static) -> Self {
        Self::over(answer, None).await
    }

    /// The same over TLS.
    pub(crate) async fn over(
        answer: impl Fn(&str) -> Answer + Send + Sync + 'static,
        tls: Option<tokio_rustls::TlsAcceptor>,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let server = Self {
            port: listener.local_addr().expect("an address").port(),
            requests: Arc::default(),
            accepted: Arc::default(),
            open: Arc::default(),
        };
        let answer = Arc::new(answer);
        let (requests, accepted, open) =
            (server.requests.clone(), server.accepted.clone(), server.open.clone());
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                accepted.fetch_add(1, Ordering::SeqCst);
                open.fetch_add(1, Ordering::SeqCst);
                let (answer, requests, open, tls) =
                    (answer.clone(), requests.clone(), open.clone(), tls.clone());
                tokio::spawn(async move {
                    match tls {
                        None => serve(socket, &*answer, &requests).await,
                        Some(tls) => {
                            if let Ok(socket) = tls.accept(socket).await {
                                serve(socket, &*answer, &requests).await;
                            }
                        }
                    }
                    open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        server
    }

    /// The number of requests so far.
    pub(crate) fn count(&self) -> usize {
        self.requests.lock().expect("the requests").len()
    }

    /// The last request.
    pub(crate) fn last(&self) -> String {
        self.requests.lock().expect("the requests").last().cloned().expect("a request")
    }

    /// A URL of the server, under that name.
    pub(crate) fn url(&self, host: &str, path: &str) -> String {
        format!("http://{host}:{}{path}", self.port)
    }
}

async fn serve(
    mut socket: impl AsyncRead + AsyncWrite + Unpin,
    answer: &(impl Fn(&str) -> Answer + ?Sized),
    requests: &Mutex<Vec<String>>,
) {
    while let Some(request) = request(&mut socket).await {
        let steps = answer(&request);
        requests.lock().expect("the requests").push(request);
        for step in steps {
            match step {
                Step::Write(bytes) => {
                    if socket.write_all(&bytes).await.is_err() || socket.flush().await.is_err() {
                        return;
                    }
                }
                Step::Stall => {
                    let _ = socket.read(&mut [0; 1]).await;
                    return;
                }
                Step::Close => {
                    let _ = socket.shutdown().await;
                    return;
                }
            }
        }
    }
}

/// A request with its body, as its Content-Length has it.
async fn request(socket: &mut (impl AsyncRead + Unpin)) -> Option<String> {
    let mut bytes = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&bytes).to_lowercase();
        if let Some(head) = text.find("\r\n\r\n") {
            let length = text.split("content-length: ").nth(1).and_then(|rest| rest.lines().next());
            let length: usize = length.map_or(0, |length| length.parse().expect("a length"));
            if bytes.len() >= head + 4 + length {
                return Some(String::from_utf8_lossy(&bytes).into_owned());
            }
        }
        match socket.read(&mut chunk).await {
            Ok(0) | Err(_) => return None,
            Ok(read) => bytes.extend_from_slice(&chunk[..read]),
        }
    }
}

/// Names all hosts as this function says.
pub(crate) struct Names<F>(pub(crate) F);

impl<F: Fn(&str) -> Vec<IpAddr> + Send + Sync + 'static> Resolver for Names<F> {
    fn resolve(&self, host: &str) -> Resolved {
        let found = (self.0)(host);
        Box::pin(async move { Ok(found) })
    }
}

pub(crate) const LOOPBACK: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

/// Options under which every name but `unknown.test` is loopback's, which may be dialled.
pub(crate) fn options() -> FetchOptions {
    let named = |host: &str| if host == "unknown.test" { vec![] } else { vec![LOOPBACK] };
    FetchOptions {
        addresses: Addresses::new(["127.0.0.1"], "fetch.allowAddresses").expect("a network"),
        resolver: Arc::new(Names(named)),
        ..FetchOptions::new(Allow::public())
    }
}

/// The same with these patterns.
pub(crate) fn allowing(patterns: &[&str]) -> FetchOptions {
    let entries = patterns.iter().map(|pattern| AllowEntry::from(*pattern));
    FetchOptions { allow: Allow::list(entries, "fetch.allow").expect("patterns"), ..options() }
}

/// The same with other limits.
pub(crate) fn limited(change: impl FnOnce(&mut FetchLimits)) -> FetchOptions {
    let mut options = options();
    change(&mut options.limits);
    options
}

/// A client and what a run of it has used.
pub(crate) struct Client {
    pub(crate) fetcher: Fetcher,
    pub(crate) limits: RunLimits,
    pub(crate) secrets: Arc<Secrets>,
    pub(crate) room_bytes: usize,
}

impl Client {
    pub(crate) fn new(options: FetchOptions) -> Self {
        let secrets = Arc::new(Secrets::new());
        let limits = RunLimits::new(&options.limits);
        let fetcher = Fetcher::new(options, secrets.clone()).expect("a client");
        Self { fetcher, limits, secrets, room_bytes: 64 << 20 }
    }

    /// Gives a sealed secret for these hosts, and returns its placeholder.
    pub(crate) fn seal(&self, name: &str, value: &str, hosts: &[&str]) -> String {
        let hosts = hosts.iter().map(|host| format!("http://{host}:*")).collect();
        let options =
            SecretOptions { value: Zeroizing::new(value.to_owned()), hosts, ..Default::default() };
        self.secrets.set(name, options).expect("a secret");
        let seen = self.secrets.seen();
        seen.iter().find(|(known, _)| known == name).expect("the secret").1.to_string()
    }

    pub(crate) fn send(
        &self,
        request: Request,
    ) -> impl Future<Output = Result<Response, KitError>> + Send + use<> {
        let room = FixedRoom::new(self.room_bytes);
        self.fetcher.request(request, &self.limits, room, &Progress::new())
    }

    pub(crate) async fn get(&self, url: &str) -> Result<Response, KitError> {
        self.send(get(url)).await
    }

    /// The body of a GET as a text, or the error as `Name: message`.
    pub(crate) async fn text(&self, url: &str) -> String {
        shown(self.get(url).await)
    }
}

pub(crate) fn get(url: &str) -> Request {
    Request { url: url.to_owned(), ..Default::default() }
}

/// The body as a text, or the error as `Name: message`.
pub(crate) fn shown(result: Result<Response, KitError>) -> String {
    match result {
        Ok(response) => String::from_utf8(response.body).expect("UTF-8"),
        Err(error) => error.to_string(),
    }
}

/// How long anything may take that is not meant to wait.
const CEILING: Duration = Duration::from_mins(2);

/// Runs a test, which must not hang.
pub(crate) fn run(test: impl Future<Output = ()>) {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let within = async { tokio::time::timeout(CEILING, test).await };
    runtime.expect("a runtime").block_on(within).expect("in time");
}

/// Waits until `check` holds.
pub(crate) async fn until(what: &str, check: impl Fn() -> bool) {
    let started = std::time::Instant::now();
    while !check() {
        assert!(started.elapsed() < CEILING, "{what}");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// A port at which nobody listens. It is the socket's for as long as that lives.
pub(crate) fn closed_port() -> (u16, TcpSocket) {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind(SocketAddr::new(LOOPBACK, 0)).expect("a port");
    (socket.local_addr().expect("an address").port(), socket)
}
