//! Servers under other executors, and without one.

use isolane_environment::{ProcessService, ProcessServiceOptions};
use isolane_http::{ListenOptions, Server};

use crate::{
    client::{Connection, get, post},
    scripted::{World, world},
};

#[test]
fn a_server_needs_no_executor() {
    let service = ProcessService::new(ProcessServiceOptions::default()).expect("a service");
    let options = ListenOptions { port: 0, ..ListenOptions::default() };
    let listening = isolane::spawn(async move { Server::listen(service, options).await });
    let server = listening.wait().expect("an answer").expect("an address");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let status =
        runtime.expect("a runtime").block_on(async { get(&server, "/healthz").await.status });
    assert_eq!(status, 200);
    isolane::spawn(async move { server.close().await }).wait().expect("closed");
}

#[tokio::test]
async fn a_server_that_is_dropped_listens_no_more() {
    let world = world().await;
    let mut connection = Connection::to(&world.server).await;
    connection.ask("GET /healthz", &[], "").await;
    assert_eq!(connection.response().await.status, 200);
    drop(world.server);
    assert_eq!(connection.rest().await, "");
}

#[tokio::test]
async fn requests_share_a_connection() {
    let world = world().await;
    let mut connection = Connection::to(&world.server).await;
    for (path, status) in [("/healthz", 200), ("/nothing", 404), ("/processes/1", 404), ("/", 200)]
    {
        connection.ask(&format!("GET {path}"), &[], "").await;
        assert_eq!(connection.response().await.status, status);
    }
}

/// A client that reads nothing of a response of 8 MiB but its head.
async fn slow_reader(world: &World) -> Connection {
    let flood = serde_json::json!({ "code": "flood\nflood\nflood\nflood" }).to_string();
    post(&world.server, "/processes?wait=60000", &flood).await;
    // More than the sockets hold, so most of it is still to be sent.
    let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
    socket.set_recv_buffer_size(256 << 10).expect("a small buffer");
    let mut connection = Connection::over(socket, &world.server).await;
    connection.ask("GET /processes/1/stdout", &[], "").await;
    let head = connection.head().await;
    assert_eq!(head.header("content-length"), Some("8388608"));
    connection
}

#[tokio::test]
async fn a_response_that_is_being_sent_comes_whole_though_the_server_closes() {
    let world = world().await;
    let mut connection = slow_reader(&world).await;
    let (body, ()) = tokio::join!(connection.rest(), world.server.close());
    assert_eq!(body.len(), 8_388_608);
}

#[tokio::test]
async fn a_server_that_closes_says_so() {
    let world = world().await;
    let _connection = slow_reader(&world).await;
    let asking = async {
        let mut late = Connection::to(&world.server).await;
        late.ask("GET /healthz", &[], "").await;
        let response = late.response().await;
        assert_eq!(late.rest().await, "");
        (response, post(&world.server, "/processes", "{}").await)
    };
    let answered = tokio::select! {
        biased;
        () = world.server.close() => None,
        answered = asking => Some(answered),
    };
    let (health, posted) = answered.expect("a response is still being sent");
    for response in [health, posted] {
        let (status, kind, _) = response.problem();
        assert_eq!((status, kind.as_str()), (503, "shutting-down"));
    }
}

#[tokio::test]
async fn a_body_that_never_ends_does_not_hold_a_server_that_closes() {
    let world = world().await;
    let mut connection = Connection::to(&world.server).await;
    let headers = [
        ("Content-Type", "application/json"),
        ("Content-Length", "1000"),
        ("Expect", "100-continue"),
    ];
    connection.ask("POST /processes", &headers, "").await;
    // The server asks for the body.
    assert_eq!(connection.head().await.status, 100);
    connection.send(b"{").await;
    let (response, ()) = tokio::join!(connection.response(), world.server.close());
    let (status, kind, _) = response.problem();
    assert_eq!((status, kind.as_str()), (503, "shutting-down"));
    assert_eq!(connection.rest().await, "");
}
