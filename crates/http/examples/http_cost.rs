//! Costs of a process service over HTTP, beside bare servers of axum in the same process.
//!
//! In: `--quick` for few samples. Out: two tables. All contenders take turns, so that a busy machine is unfair to all alike;
//! each figure is a median. The clients are sockets that wait for each answer.

use std::{
    convert::Infallible,
    env,
    net::SocketAddr,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use async_trait::async_trait;
use axum::{
    Router,
    body::{Body, Bytes},
    http::header::CONTENT_TYPE,
    routing::{get, post},
};
use futures_util::stream::unfold;
use isolane_environment::{
    Environment, EnvironmentBindings, EnvironmentError, ExecutionExitState, ExecutionInput,
    ExecutionState, NewProcess, ProcessService, ProcessServiceOptions,
};
use isolane_http::{ListenOptions, Server};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    sync::broadcast,
    time::sleep,
};

/// Connections at once.
const LANES: usize = 16;

/// The time between two events.
const PAUSE: Duration = Duration::from_millis(2);

const CODE: &str = r#"{"code":"1 + 1"}"#;

#[tokio::main]
async fn main() {
    let is_quick = env::args().any(|argument| argument == "--quick");
    let (rounds, time) =
        if is_quick { (3, Duration::from_millis(60)) } else { (9, Duration::from_millis(600)) };
    let folder = tempfile::TempDir::new().expect("a folder");
    requests(rounds, time, folder.path()).await;
    events(rounds * 100).await;
}

/// Requests that execute a program, beside requests that come back as they are.
async fn requests(rounds: usize, time: Duration, folder: &Path) {
    let echo = bare(Router::new().route("/echo", post(async |body: Bytes| body))).await;
    let memory = served(ProcessServiceOptions::default()).await;
    let file = Some(folder.join("processes.db"));
    let file = served(ProcessServiceOptions { database: file, ..Default::default() }).await;
    let contenders = [
        ("POST to an echo of axum", echo, "/echo"),
        ("POST of `1 + 1`, executed in a thread", memory.1.address(), "/processes?wait=60000"),
        ("the same with a database", file.1.address(), "/processes?wait=60000"),
    ];
    let mut rates = [(); 3].map(|()| Vec::new());
    // The first round warms up.
    for round in 0..=rounds {
        for ((_, address, path), rates) in contenders.iter().zip(&mut rates) {
            let rate = rate(*address, path, time).await;
            if round > 0 {
                rates.push(rate);
            }
        }
    }
    let medians = rates.map(|mut rates| {
        rates.sort_by(f64::total_cmp);
        rates[rates.len() / 2]
    });
    println!("### Processes over HTTP: {LANES} clients at once\n");
    println!("| request | a second | ratio |\n|---|--:|--:|");
    for ((name, ..), median) in contenders.iter().zip(medians) {
        println!("| {name} | {median:.0} | {:.2} |", median / medians[0]);
    }
    println!();
    for (service, server) in [memory, file] {
        server.close().await;
        service.shutdown().await;
    }
}

/// The time from a text on stdout to the event in a client, beside that of a text in a stream of axum.
async fn events(count: usize) {
    let (sender, _) = broadcast::channel::<Instant>(16);
    let stream = sender.clone();
    let routes = Router::new().route(
        "/events",
        get(async move || {
            let events = unfold(stream.subscribe(), async |mut events| {
                events.recv().await.ok()?;
                Some((Ok::<_, Infallible>(Bytes::from_static(b"event: tick\ndata: x\n\n")), events))
            });
            ([(CONTENT_TYPE, "text/event-stream")], Body::from_stream(events))
        }),
    );
    let bare = bare(routes).await;
    let mut reader = opened(bare, "/events").await;
    while sender.receiver_count() == 0 {
        sleep(PAUSE).await;
    }
    let mut plain = Vec::new();
    for _ in 0..count {
        let sent = Instant::now();
        sender.send(sent).expect("a reader");
        next(&mut reader, "event: tick").await;
        plain.push(sent.elapsed());
        sleep(PAUSE).await;
    }
    let (told, mut times) = tokio::sync::mpsc::unbounded_channel();
    let environment: Arc<dyn Environment> = Arc::new(Ticking { count, told });
    let options = ProcessServiceOptions {
        environment: Some(environment),
        ..ProcessServiceOptions::default()
    };
    let (service, server) = served(options).await;
    let idle = NewProcess { autorun: false, ..NewProcess::new("") };
    let pid = service.create(idle).await.expect("created").pid;
    let mut reader = opened(server.address(), &format!("/processes/{pid}/events")).await;
    service.run(pid, isolane_environment::RunQuery::default()).await.expect("it runs");
    let mut ours = Vec::new();
    for _ in 0..count {
        next(&mut reader, "event: stdout").await;
        ours.push(times.recv().await.expect("a time").elapsed());
    }
    server.close().await;
    service.shutdown().await;
    let medians = [plain, ours].map(|mut times| {
        times.sort_unstable();
        times[times.len() / 2].as_secs_f64() * 1e6
    });
    println!("### Events over HTTP: from the text to its client\n");
    println!("| event | median | ratio |\n|---|--:|--:|");
    let names = ["in a stream of axum", "of `stdout`"];
    for (name, median) in names.iter().zip(medians) {
        println!("| {name} | {median:.0} µs | {:.2} |", median / medians[0]);
    }
}

/// Prints a text now and then, and tells when.
struct Ticking {
    count: usize,
    told: tokio::sync::mpsc::UnboundedSender<Instant>,
}

#[async_trait]
impl Environment for Ticking {
    async fn execute(
        &self,
        input: ExecutionInput,
        bindings: EnvironmentBindings,
    ) -> Result<ExecutionExitState, EnvironmentError> {
        bindings.set_state(input.eid, ExecutionState::Running).expect("its number");
        for _ in 0..self.count {
            sleep(PAUSE).await;
            self.told.send(Instant::now()).expect("a reader");
            bindings.stdout(input.eid, "x").expect("small");
        }
        Ok(ExecutionExitState::Success)
    }

    async fn kill(&self, _: u64) -> Result<(), EnvironmentError> {
        Ok(())
    }
}

async fn served(options: ProcessServiceOptions) -> (ProcessService, Server) {
    let service = ProcessService::new(options).expect("options");
    let listen = ListenOptions { port: 0, rate_limit: None, ..ListenOptions::default() };
    let server = Server::listen(service.clone(), listen).await.expect("a port");
    (service, server)
}

/// A bare server of axum.
async fn bare(routes: Router) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move { axum::serve(listener, routes).await });
    address
}

/// The answered requests a second.
async fn rate(address: SocketAddr, path: &str, time: Duration) -> f64 {
    let began = Instant::now();
    let lanes = (0..LANES).map(|_| {
        let path = path.to_owned();
        tokio::spawn(async move {
            let mut stream = BufReader::new(connected(address).await);
            let request = format!(
                "POST {path} HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{CODE}",
                CODE.len()
            );
            let mut answered = 0_u32;
            while began.elapsed() < time {
                stream.write_all(request.as_bytes()).await.expect("it reads");
                answer(&mut stream).await;
                answered += 1;
            }
            answered
        })
    });
    let mut answered = 0;
    for lane in lanes.collect::<Vec<_>>() {
        answered += lane.await.expect("it ends");
    }
    f64::from(answered) / began.elapsed().as_secs_f64()
}

/// Reads an answer that is a success.
async fn answer(stream: &mut BufReader<TcpStream>) {
    let (mut line, mut length, mut is_first) = (String::new(), 0, true);
    loop {
        line.clear();
        stream.read_line(&mut line).await.expect("a line");
        if is_first {
            assert!(line.starts_with("HTTP/1.1 20"), "{line}");
            is_first = false;
        }
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length: ") {
            length = value.parse().expect("a number");
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.expect("a body");
}

/// A stream of events that is open.
async fn opened(address: SocketAddr, path: &str) -> BufReader<TcpStream> {
    let mut stream = connected(address).await;
    let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("it reads");
    BufReader::new(stream)
}

/// Reads up to the line.
async fn next(reader: &mut BufReader<TcpStream>, line: &str) {
    let mut read = String::new();
    while read.trim_end() != line {
        read.clear();
        assert!(reader.read_line(&mut read).await.expect("a line") > 0, "the stream ended");
    }
}

async fn connected(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).await.expect("it listens");
    stream.set_nodelay(true).expect("a socket");
    stream
}
