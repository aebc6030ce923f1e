//! Bodies that are too large, clients that are too fast, too slow or too many.

use std::{net::Ipv4Addr, time::Duration};

use isolane_environment::ProcessServiceOptions;
use isolane_http::{ListenOptions, RateLimit};
use serde_json::json;

use crate::{
    client::{Connection, get, post},
    scripted::{world, world_with},
};

#[tokio::test]
async fn large_bodies_are_refused_and_the_server_goes_on() {
    let world = world().await;
    let large = json!({ "code": "x".repeat(2 << 20) }).to_string();
    let response = post(&world.server, "/processes", &large).await;
    let expected =
        (413, "too-large".to_owned(), "the body is larger than 1048576 bytes".to_owned());
    assert_eq!(response.problem(), expected);
    // The same in chunks, which declare no length.
    let mut connection = Connection::to(&world.server).await;
    let head = "POST /processes HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
    connection.send(head.as_bytes()).await;
    let chunk = format!("10000\r\n{}\r\n", " ".repeat(0x10000));
    for _ in 0..32 {
        connection.send(chunk.as_bytes()).await;
    }
    connection.send(b"0\r\n\r\n").await;
    assert_eq!(connection.response().await.problem(), expected);
    // One that waits for leave does not get it.
    let mut connection = Connection::to(&world.server).await;
    let head = "POST /processes HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2000000\r\nExpect: 100-continue\r\n\r\n";
    connection.send(head.as_bytes()).await;
    assert_eq!(connection.response().await.problem(), expected);

    let fits = json!({ "code": "", "autorun": false }).to_string();
    let padded = format!("{fits}{}", " ".repeat((1 << 20) - fits.len()));
    assert_eq!(post(&world.server, "/processes", &padded).await.status, 201);
    assert_eq!(post(&world.server, "/processes", &format!("{padded} ")).await.status, 413);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_declares_too_much_is_refused_before_it_comes() {
    let world = world().await;
    let mut connections = Vec::new();
    let begun = tokio::time::Instant::now();
    for media_type in ["application/json", "text/plain"] {
        let mut connection = Connection::to(&world.server).await;
        let head = format!(
            "POST /processes HTTP/1.1\r\nHost: localhost\r\nContent-Type: {media_type}\r\nContent-Length: 2000000\r\n\r\n{{"
        );
        connection.send(head.as_bytes()).await;
        let response = connection.response().await;
        let is_large = media_type == "application/json";
        assert_eq!(response.status, if is_large { 413 } else { 415 });
        assert_eq!(response.header("connection"), is_large.then_some("close"));
        connections.push(connection);
    }
    // Nobody has waited for the rest, by the clock of the test; nor does the end of the server.
    assert_eq!(begun.elapsed(), Duration::ZERO);
    world.server.close().await;
    assert_eq!(begun.elapsed(), Duration::ZERO);
}

#[tokio::test]
async fn large_bodies_of_other_requests_are_refused_too() {
    let listen = ListenOptions { max_body_bytes: 10, ..ListenOptions::default() };
    let world = world_with(ProcessServiceOptions::default(), listen).await;
    for path in ["/processes/1/run", "/processes/1/kill"] {
        let response = post(&world.server, path, r#"{"force": true}"#).await;
        assert_eq!(response.problem().1, "too-large");
    }
}

#[tokio::test]
async fn posts_beyond_the_rate_are_refused_with_the_time_to_wait() {
    let rate_limit = Some(RateLimit { per_second: 0.001, burst: 2 });
    let listen = ListenOptions { rate_limit, ..ListenOptions::default() };
    let world = world_with(ProcessServiceOptions::default(), listen).await;
    let body = r#"{"code":"","autorun":false}"#;
    assert_eq!(post(&world.server, "/processes", body).await.status, 201);
    // One that fails counts, too.
    assert_eq!(post(&world.server, "/processes/7/kill", "").await.status, 404);
    let response = post(&world.server, "/processes", body).await;
    let (status, code, detail) = response.problem();
    assert_eq!((status, code.as_str()), (429, "rate-limited"));
    let seconds = response.header("retry-after").expect("a time");
    assert!((1..=1000).contains(&seconds.parse().unwrap_or(0)), "{seconds}");
    assert_eq!(detail, format!("there are too many requests; try again in {seconds} s"));
    // Other methods have no limit, and another address has its own.
    for _ in 0..5 {
        assert_eq!(get(&world.server, "/processes").await.status, 200);
    }
    let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
    if socket.bind((Ipv4Addr::new(127, 0, 0, 2), 0).into()).is_ok() {
        let mut other = Connection::over(socket, &world.server).await;
        other.ask("POST /processes/7/kill", &[], "").await;
        assert_eq!(other.response().await.status, 404);
    }
}

#[tokio::test]
async fn without_a_rate_all_posts_come_in() {
    let listen = ListenOptions { rate_limit: None, ..ListenOptions::default() };
    let world = world_with(ProcessServiceOptions::default(), listen).await;
    let mut connection = Connection::to(&world.server).await;
    for _ in 0..300 {
        connection.ask("POST /processes/7/kill", &[], "").await;
        assert_eq!(connection.response().await.status, 404);
    }
}

#[tokio::test(start_paused = true)]
async fn slow_clients_are_sent_away() {
    let world = world().await;
    let silent = Connection::to(&world.server).await;
    let mut slow_head = Connection::to(&world.server).await;
    slow_head.send(b"GET /processes HTTP/1.1\r\nHost: loc").await;
    let mut slow_body = Connection::to(&world.server).await;
    let head = "POST /processes HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n{";
    slow_body.send(head.as_bytes()).await;
    let mut idle = Connection::to(&world.server).await;
    idle.ask("GET /healthz", &[], "").await;
    assert_eq!(idle.response().await.status, 200);
    // The clock goes on to the next timer whenever all wait.
    let detail = "the body did not arrive within 46 s";
    assert_eq!(slow_body.response().await.problem().2, detail);
    for mut connection in [silent, slow_head, idle] {
        let rest = connection.rest().await;
        assert!(rest.is_empty() || rest.starts_with("HTTP/1.1 408"), "{rest}");
    }
    assert_eq!(get(&world.server, "/healthz").await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_takes_nothing_is_sent_away() {
    let world = world().await;
    let body = json!({ "code": "flood\nflood\nflood\nflood" }).to_string();
    post(&world.server, "/processes?wait=60000", &body).await;
    let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
    socket.set_recv_buffer_size(4096).expect("a small buffer");
    let mut connection = Connection::over(socket, &world.server).await;
    connection.ask("GET /processes/1/stdout", &[], "").await;
    // When the server has no connection left, it closes at once.
    let began = tokio::time::Instant::now();
    while world.server.connections() > 0 {
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    }
    assert!((30..40).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
}

#[tokio::test]
async fn idle_connections_make_room_for_others() {
    let listen = ListenOptions { max_connections: 4, ..ListenOptions::default() };
    let world = world_with(ProcessServiceOptions::default(), listen).await;
    post(&world.server, "/processes", r#"{"code":"hold"}"#).await;
    let mut stream = Connection::to(&world.server).await;
    stream.ask("GET /processes/1/events?after=2", &[], "").await;
    assert_eq!(stream.head().await.status, 200);
    let mut idle = Vec::new();
    for _ in 0..40 {
        let mut connection = Connection::to(&world.server).await;
        connection.send(b"GET / HTTP/1.1\r\n").await;
        idle.push(connection);
    }
    assert_eq!(get(&world.server, "/healthz").await.status, 200);
    for connection in &mut idle[..30] {
        assert_eq!(connection.rest().await, "");
    }
    world.scripted.go(1);
    let rest = stream.all_events().await;
    assert_eq!(rest.last().map(|(_, kind, _)| kind.as_str()), Some("exit"));
}

#[tokio::test]
async fn what_is_no_http_harms_nobody() {
    let world = world().await;
    let many = format!("GET / HTTP/1.1\r\nHost: localhost\r\n{}\r\n", "X: x\r\n".repeat(1000));
    let lengths = "POST /processes HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}";
    for (bytes, expected) in [
        (&b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"[..], "400"),
        (b"GET /\r\n\r\n", "400"),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", ""),
        (many.as_bytes(), "431"),
        (lengths.as_bytes(), "400"),
    ] {
        let mut connection = Connection::to(&world.server).await;
        connection.send(bytes).await;
        let rest = connection.rest().await;
        let status = rest.split(' ').nth(1).unwrap_or_default();
        assert_eq!(status, expected, "{:.60}", String::from_utf8_lossy(bytes));
    }
    // The server ends the connection before it has read all, so the answer may be lost.
    let large = format!("GET / HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n", "x".repeat(1 << 20));
    let mut connection = Connection::to(&world.server).await;
    connection.offer(large.as_bytes()).await;
    let rest = connection.rest().await;
    assert!(rest.is_empty() || rest.starts_with("HTTP/1.1 431 "), "{rest}");
    assert_eq!(get(&world.server, "/healthz").await.status, 200);
}
