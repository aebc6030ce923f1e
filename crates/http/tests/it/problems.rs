//! Requests that fail: each type of problem.

use isolane_environment::{ProcessServiceOptions, ToolDescription};
use isolane_http::ListenOptions;
use serde_json::{Value, json};

use crate::{
    client::{Connection, Response, ask, ended, get, post},
    scripted::{world, world_with},
};

fn told(status: u16, code: &str, detail: &str) -> (u16, String, String) {
    (status, code.to_owned(), detail.to_owned())
}

#[tokio::test]
async fn bad_bodies_are_bad_requests() {
    let world = world().await;
    let nested = format!("{}{}", "[".repeat(200), "]".repeat(200));
    for (body, detail) in [
        ("{", "the body is no valid JSON: EOF while parsing an object at line 1 column 1"),
        ("[]", "the request must be an object, got an array"),
        ("{}", "code is missing"),
        (r#"{"code":1}"#, "code must be a string, got a number"),
        (r#"{"code":"","timeoutms":1}"#, "unknown option 'timeoutms'; did you mean 'timeoutMs'?"),
        (
            r#"{"code":"","timeoutMs":0}"#,
            "timeoutMs must be a whole number from 1 to 3600000, got 0",
        ),
        (r#"{"code":"","autorun":1}"#, "autorun must be a boolean, got a number"),
        (&nested, "the body is no valid JSON: recursion limit exceeded at line 1 column 128"),
        (
            r#"{"code":"\ud800"}"#,
            "the body is no valid JSON: unexpected end of hex escape at line 1 column 16",
        ),
        (
            r#"{"code":"1","code":"2"}"#,
            "the body is no valid JSON: 'code' is given twice at line 1 column 18",
        ),
        ("", "the body is empty"),
    ] {
        let response = post(&world.server, "/processes", body).await;
        assert_eq!(response.problem(), told(400, "bad-request", detail));
    }
    let mut connection = Connection::to(&world.server).await;
    let head = "POST /processes HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 13\r\n\r\n";
    connection.send(head.as_bytes()).await;
    connection.send(b"{\"code\":\"\xff\xfe\"}").await;
    let detail = "the body is no valid JSON: invalid unicode code point at line 1 column 10";
    assert_eq!(connection.response().await.problem(), told(400, "bad-request", detail));

    let response = post(&world.server, "/processes/1/run", r#"{"Force":true}"#).await;
    let detail = "unknown option 'Force'; did you mean 'force'?";
    assert_eq!(response.problem(), told(400, "bad-request", detail));
    let response = post(&world.server, "/processes/1/kill", r#"{"force":true}"#).await;
    let detail = "this request has no body, or an empty object";
    assert_eq!(response.problem(), told(400, "bad-request", detail));
    assert!(get(&world.server, "/processes").await.json()["items"] == json!([]));
}

#[tokio::test]
async fn bad_parameters_are_bad_requests() {
    let world = world().await;
    for (path, detail) in [
        ("/processes?limit=0", "limit must be a whole number from 1 to 200, got 0"),
        ("/processes?limit=201", "limit must be a whole number from 1 to 200, got 201"),
        ("/processes?befor=1", "unknown option 'befor'; did you mean 'before'?"),
        ("/processes?limit=1&limit=2", "limit is given twice"),
        (
            "/processes?state=done",
            "state must be one of 'idle', 'queued', 'running', 'terminating', got 'done'",
        ),
        ("/processes/1?wait=60001", "wait must be a whole number from 0 to 60000, got '60001'"),
        ("/processes/1?wait=-1", "wait must be a whole number from 0 to 60000, got '-1'"),
        ("/processes/1?wait=1&wait=2", "wait is given twice"),
        ("/processes/1?Wait=1", "unknown option 'Wait'; did you mean 'wait'?"),
        ("/processes/1/events?after=x", "after must be a whole number, got 'x'"),
        ("/processes/1/code?x=1", "unknown option 'x'; this request has no options"),
        ("/tools?x", "unknown option 'x'; this request has no options"),
    ] {
        assert_eq!(get(&world.server, path).await.problem(), told(400, "bad-request", detail));
    }
    let headers = [("Last-Event-ID", "one")];
    let response = ask(&world.server, "GET /processes/1/events", &headers).await;
    let detail = "Last-Event-ID must be a whole number, got 'one'";
    assert_eq!(response.problem(), told(400, "bad-request", detail));
}

#[tokio::test]
async fn unknown_things_are_not_found() {
    let world = world().await;
    for part in ["", "/code", "/stdout", "/stderr", "/output", "/events"] {
        let response = get(&world.server, &format!("/processes/7{part}")).await;
        assert_eq!((response.status, response.problem().1.as_str()), (404, "not-found"), "{part}");
    }
    for line in ["POST /processes/7/run", "POST /processes/7/kill", "DELETE /processes/7"] {
        assert_eq!(ask(&world.server, line, &[]).await.problem().1, "not-found", "{line}");
    }
    for pid in ["x", "0", "01", "+1", "-1", "1.0", "99999999999999999999", "%31x", "%ff"] {
        let response = get(&world.server, &format!("/processes/{pid}")).await;
        assert_eq!(response.problem().1, "not-found", "{pid}");
    }
    let response = get(&world.server, "/nothing").await;
    assert_eq!(response.problem(), told(404, "not-found", "there is nothing at '/nothing'"));
    let response = get(&world.server, "/tools/a/b/docs").await;
    assert_eq!(response.problem(), told(404, "not-found", "there is no tool a.b"));
}

#[tokio::test]
async fn other_methods_are_not_allowed() {
    let world = world().await;
    let response = ask(&world.server, "PUT /processes", &[]).await;
    let problem = told(405, "method-not-allowed", "'/processes' has no PUT");
    assert_eq!(response.problem(), problem);
    let mut allowed: Vec<&str> = response.header("allow").unwrap_or_default().split(',').collect();
    allowed.sort_unstable();
    assert_eq!(allowed, ["GET", "HEAD", "POST"]);
    assert_eq!(ask(&world.server, "OPTIONS /", &[]).await.problem().0, 405);
}

#[tokio::test]
async fn conflicts_say_what_the_process_does() {
    let world = world().await;
    let server = &world.server;
    post(server, "/processes", r#"{"code":"hold"}"#).await;
    let problem = |response: Response| response.problem();
    let running = told(409, "not-idle", "process 1 is running");
    assert_eq!(get(server, "/processes/1").await.json()["state"], "running");
    assert_eq!(problem(post(server, "/processes/1/run", "").await), running);
    assert_eq!(problem(ask(server, "DELETE /processes/1", &[]).await), running);
    world.scripted.go(1);
    get(server, "/processes/1?wait=60000").await;
    let killed = problem(post(server, "/processes/1/kill", "{}").await);
    assert_eq!((killed.0, killed.1.as_str()), (409, "already-idle"));
    let run = problem(post(server, "/processes/1/run", r#"{"force":false}"#).await);
    assert_eq!((run.0, run.1.as_str()), (409, "has-results"));
}

#[tokio::test]
async fn other_media_types_are_unsupported() {
    let world = world().await;
    let expected =
        told(415, "unsupported-media-type", "the header Content-Type must be application/json");
    for headers in [
        &[("Content-Type", "text/plain")][..],
        &[("Content-Type", "application/x-www-form-urlencoded")],
        &[("Content-Type", "")],
        &[],
    ] {
        let mut connection = Connection::to(&world.server).await;
        connection.ask("POST /processes", headers, r#"{"code":""}"#).await;
        assert_eq!(connection.response().await.problem(), expected, "{headers:?}");
    }
    let mut connection = Connection::to(&world.server).await;
    let headers = [("Content-Type", "Application/JSON; charset=utf-8")];
    connection.ask("POST /processes", &headers, r#"{"code":""}"#).await;
    assert_eq!(connection.response().await.status, 201);
}

#[tokio::test]
async fn a_full_queue_says_when_to_try_again() {
    let service = ProcessServiceOptions { concurrency: 1, max_queued: 1, ..Default::default() };
    let world = world_with(service, ListenOptions::default()).await;
    for _ in 0..2 {
        assert_eq!(post(&world.server, "/processes", r#"{"code":"hold"}"#).await.status, 201);
    }
    let response = post(&world.server, "/processes", r#"{"code":"hold"}"#).await;
    let (status, code, _) = response.problem();
    assert_eq!(
        (status, code.as_str(), response.header("retry-after")),
        (503, "queue-full", Some("1"))
    );
}

#[tokio::test]
async fn a_service_that_shuts_down_takes_no_work() {
    let world = world().await;
    assert_eq!(get(&world.server, "/healthz").await.json(), json!({ "status": "ok" }));
    ended(&world.server, "out a").await;
    world.service.shutdown().await;
    let expected = told(503, "shutting-down", "the service is shutting down");
    assert_eq!(get(&world.server, "/healthz").await.problem(), expected);
    let response = post(&world.server, "/processes", r#"{"code":""}"#).await;
    assert_eq!((response.status, response.problem().1.as_str()), (503, "shutting-down"));
    assert_eq!(get(&world.server, "/processes/1/stdout").await.body, "a");
}

#[tokio::test]
async fn a_failure_is_told_to_the_log_alone() {
    let world = world().await;
    assert_eq!(get(&world.server, "/environment/docs").await.body, "# Lines");
    post(&world.server, "/processes", r#"{"code":"hold"}"#).await;
    assert_eq!(get(&world.server, "/processes/1").await.json()["state"], "running");
    // Now the environment of the test panics.
    let (status, code, detail) = get(&world.server, "/environment/docs").await.problem();
    assert_eq!((status, code.as_str()), (500, "internal"));
    let id = detail.strip_prefix("the log has this failure as ").expect("an id");
    let log = world.log.lock().expect("whole").clone();
    assert_eq!(log, [format!("failure {id}: a handler panicked")]);
    assert_eq!(get(&world.server, "/processes/1").await.status, 200);
}

#[tokio::test]
async fn tools_are_listed_and_described() {
    let world = world().await;
    let description = ToolDescription {
        description: "Adds.".to_owned(),
        input_schema: Some(
            json!({ "type": "object", "properties": { "a": { "type": "number" } } }),
        ),
        output_schema: None,
    };
    let answer = |args: Value, _| async move { Ok(args) };
    world.service.tool("math", "add-up", description, answer).expect("a tool");
    let tools = get(&world.server, "/tools").await.json();
    let expected = json!({ "items": [{
        "service": "math", "name": "add-up", "identifier": "addUp", "description": "Adds.",
        "inputSchema": { "type": "object", "properties": { "a": { "type": "number" } } },
    }] });
    assert_eq!(tools, expected);
    let types = get(&world.server, "/tools.d.ts").await;
    assert_eq!(types.header("content-type"), Some("text/plain; charset=utf-8"));
    assert!(types.body.contains("addUp"), "{}", types.body);
    let docs = get(&world.server, "/tools/math/add-up/docs").await;
    assert_eq!(docs.header("content-type"), Some("text/markdown; charset=utf-8"));
    assert_eq!(docs.body, "# add-up");
}
