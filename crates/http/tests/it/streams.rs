//! Streams of events.

use isolane_environment::ProcessServiceOptions;
use isolane_http::ListenOptions;
use serde_json::{Value, json};

use crate::{
    client::{Connection, ask, ended, get, post},
    scripted::{World, world, world_with},
};

async fn open(world: &World, path: &str, headers: &[(&str, &str)]) -> Connection {
    let mut connection = Connection::to(&world.server).await;
    connection.ask(&format!("GET {path}"), headers, "").await;
    let head = connection.head().await;
    assert_eq!((head.status, head.header("content-type")), (200, Some("text/event-stream")));
    connection
}

#[tokio::test]
async fn a_process_is_followed_to_its_exit() {
    let world = world().await;
    let body = json!({ "code": "out a\nhold\nerr b\njson {\"c\":[1]}" }).to_string();
    post(&world.server, "/processes", &body).await;
    let mut stream = open(&world, "/processes/1/events", &[]).await;
    let mut begun = Vec::new();
    while begun.len() < 3 {
        begun.extend(stream.events().await.expect("events"));
    }
    let expected = [
        (1, "state".to_owned(), json!({ "state": "queued" })),
        (2, "state".to_owned(), json!({ "state": "running" })),
        (3, "stdout".to_owned(), json!({ "text": "a" })),
    ];
    assert_eq!(begun, expected);
    world.scripted.go(1);
    let rest = stream.all_events().await;
    let kinds: Vec<(u64, &str)> = rest.iter().map(|(id, kind, _)| (*id, kind.as_str())).collect();
    assert_eq!(kinds[..2], [(4, "stderr"), (5, "output")]);
    assert_eq!((&rest[0].2, &rest[1].2), (&json!({ "text": "b" }), &json!({ "c": [1] })));
    let (exit, kind, record) = rest.last().expect("the exit");
    assert_eq!((kind.as_str(), &record["exitState"]), ("exit", &json!("success")));
    assert_eq!((record["pid"].as_u64(), record.get("output")), (Some(1), None));

    // Later, and from an event on.
    let all = open(&world, "/processes/1/events", &[]).await.all_events().await;
    assert_eq!(all, [begun, rest.clone()].concat());
    let after = open(&world, "/processes/1/events?after=3", &[]).await.all_events().await;
    assert_eq!(after, rest);
    // The header counts, not the address.
    let headers = [("Last-Event-ID", "4")];
    let after = open(&world, "/processes/1/events?after=1", &headers).await.all_events().await;
    assert_eq!(after, rest[1..]);
    let over = get(&world.server, &format!("/processes/1/events?after={exit}")).await;
    assert_eq!((over.status, over.body.as_str()), (204, ""));

    // The ids go on through a run.
    post(&world.server, "/processes/1/run", r#"{"force":true}"#).await;
    let headers = [("Last-Event-ID", exit.to_string())];
    let headers = headers.each_ref().map(|(name, id)| (*name, id.as_str()));
    let again = open(&world, "/processes/1/events", &headers).await.all_events().await;
    assert_eq!((again[0].0, &again[0].2), (exit + 1, &json!({ "state": "queued" })));
    assert_eq!(again.last().map(|(_, kind, _)| kind.as_str()), Some("exit"));
}

#[tokio::test]
async fn all_processes_are_followed() {
    let world = world().await;
    ended(&world.server, "out before").await;
    let mut stream = open(&world, "/events", &[]).await;
    ended(&world.server, "json {\"a\":1}").await;
    let mut seen: Vec<(u64, String, Value)> = Vec::new();
    while seen.last().is_none_or(|(_, _, record)| record["exitState"].is_null()) {
        seen.extend(stream.events().await.expect("events"));
    }
    assert!(seen.iter().all(|(_, kind, record)| {
        kind == "process" && record["pid"] == 2 && record.get("output").is_none()
    }));
    let states: Vec<&Value> = seen.iter().map(|(_, _, record)| &record["state"]).collect();
    assert_eq!(states, ["queued", "running", "idle"]);
    let headers = [("Last-Event-ID", seen[0].0.to_string())];
    let headers = headers.each_ref().map(|(name, id)| (*name, id.as_str()));
    let mut resumed = open(&world, "/events", &headers).await;
    assert_eq!(resumed.events().await.expect("events")[0], seen[1]);

    // It ends with the service, and none can follow.
    world.service.shutdown().await;
    assert_eq!(stream.all_events().await, []);
    assert_eq!(get(&world.server, "/events").await.status, 204);
}

#[tokio::test(start_paused = true)]
async fn a_comment_comes_into_silence() {
    let service = ProcessServiceOptions {
        default_timeout_ms: None,
        backstop_ms: None,
        ..ProcessServiceOptions::default()
    };
    let world = world_with(service, ListenOptions::default()).await;
    post(&world.server, "/processes", r#"{"code":"hold"}"#).await;
    let mut stream = open(&world, "/processes/1/events?after=2", &[]).await;
    let began = tokio::time::Instant::now();
    for silences in 1..4 {
        assert_eq!(stream.chunk().await.expect("a comment").as_deref(), Some(":\n\n"));
        // The clock stands but for the timers.
        assert_eq!(began.elapsed().as_secs(), silences * 15);
    }
    world.scripted.go(1);
    let rest = stream.all_events().await;
    assert_eq!(rest.last().map(|(_, kind, _)| kind.as_str()), Some("exit"));
}

#[tokio::test]
async fn a_reader_that_is_behind_is_cut_off_and_may_resume() {
    let world = world().await;
    let body = json!({ "code": "hold\nflood\nout end" }).to_string();
    post(&world.server, "/processes", &body).await;
    let mut stream = open(&world, "/processes/1/events?after=1", &[]).await;
    let running = (2, "state".to_owned(), json!({ "state": "running" }));
    assert_eq!(stream.events().await.expect("events"), [running]);
    // 4 MiB come at once, more than a reader may be behind.
    world.scripted.go(1);
    assert!(stream.events().await.is_err(), "no regular end");
    let record = get(&world.server, "/processes/1?wait=60000").await.json();
    assert_eq!(record["exitState"], "success");
    let headers = [("Last-Event-ID", "2")];
    let rest = open(&world, "/processes/1/events", &headers).await.all_events().await;
    let texts = rest.iter().filter_map(|(_, _, data)| data["text"].as_str());
    assert_eq!(texts.map(str::len).sum::<usize>(), (4 << 20) + 3);
}

#[tokio::test]
async fn streams_and_waits_end_with_the_server() {
    let world = world().await;
    post(&world.server, "/processes", r#"{"code":"hold"}"#).await;
    let mut of_one = open(&world, "/processes/1/events?after=2", &[]).await;
    let mut of_all = open(&world, "/events", &[]).await;
    let mut waiting = Connection::to(&world.server).await;
    waiting.ask("GET /processes/1?wait=60000", &[], "").await;
    let mut idle = Connection::to(&world.server).await;
    idle.ask("GET /healthz", &[], "").await;
    assert_eq!(idle.response().await.status, 200);
    let closed = async {
        // As soon as the server has the requests.
        while !get(&world.server, "/metrics")
            .await
            .body
            .contains(r#"route="/healthz",status="200"} 1"#)
        {}
        world.server.close().await;
        world.server.close().await;
    };
    tokio::join!(closed, async {
        assert_eq!(of_one.all_events().await, []);
        assert_eq!(of_all.all_events().await, []);
        assert_eq!(waiting.response().await.json()["state"], "running");
        assert_eq!(idle.rest().await, "");
    });
    assert!(tokio::net::TcpStream::connect(world.server.address()).await.is_err());
    // The service goes on.
    world.scripted.go(1);
    let record = world.service.wait(1, None).await.expect("known");
    assert_eq!(record.exit_state, Some(isolane_environment::ExecutionExitState::Success));
}

#[tokio::test]
async fn a_deleted_process_ends_its_streams() {
    let world = world().await;
    post(&world.server, "/processes", r#"{"code":"","autorun":false}"#).await;
    let mut stream = open(&world, "/processes/1/events", &[]).await;
    assert_eq!(ask(&world.server, "DELETE /processes/1", &[]).await.status, 204);
    assert_eq!(stream.all_events().await, []);
}
