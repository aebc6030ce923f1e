//! The document of OpenAPI against the server.

use isolane_environment::ProcessServiceOptions;
use isolane_http::ListenOptions;
use serde_json::{Map, Value};

use crate::{
    client::{Connection, ask, ended, get, post},
    scripted::{world, world_with},
};

fn operations(document: &Value) -> Vec<(String, String, Map<String, Value>)> {
    let paths = document["paths"].as_object().expect("paths");
    let of_path = |(path, methods): (&String, &Value)| {
        let methods = methods.as_object().expect("methods").clone();
        let path = path.clone();
        methods.into_iter().map(move |(method, operation)| {
            let responses = operation["responses"].as_object().expect("responses").clone();
            (method.to_uppercase(), path.clone(), responses)
        })
    };
    paths.iter().flat_map(of_path).collect()
}

#[tokio::test]
async fn each_operation_answers_as_the_document_says() {
    let world = world().await;
    let description = isolane_environment::ToolDescription::default();
    let answer = |args: Value, _| async move { Ok(args) };
    world.service.tool("service", "tool", description, answer).expect("a tool");
    let document = get(&world.server, "/openapi.json").await.json();
    assert_eq!(document["openapi"], "3.1.0");
    assert_eq!(document["security"], serde_json::json!([]));
    let operations = operations(&document);
    assert_eq!(operations.len(), 20);
    for (method, path, responses) in operations {
        // A process for each, in the state that the operation is for.
        let pid = match path.as_str() {
            "/processes/{pid}/kill" | "/processes/{pid}/run" => {
                let autorun = path.ends_with("kill");
                let body = serde_json::json!({ "code": "hold", "autorun": autorun }).to_string();
                post(&world.server, "/processes", &body).await.json()["pid"].as_u64()
            }
            _ => Some(ended(&world.server, "out a").await),
        };
        let pid = pid.expect("a pid").to_string();
        let real = path.replace("{pid}", &pid).replace("{service}", "service");
        let real = real.replace("{tool}", "tool");
        if real == "/environment/docs" {
            // The environment of these tests describes itself before it has held anything.
            continue;
        }
        let mut connection = Connection::to(&world.server).await;
        let (headers, body): (&[_], _) = match path.as_str() {
            "/processes" if method == "POST" => {
                (&[("Content-Type", "application/json")], r#"{"code":""}"#)
            }
            _ => (&[], ""),
        };
        connection.ask(&format!("{method} {real}"), headers, body).await;
        let head = connection.head().await;
        let documented = responses.get(&head.status.to_string());
        assert!(
            (200..300).contains(&head.status) && documented.is_some(),
            "{method} {real}: {head:?}"
        );
        let content = documented.and_then(|response| response["content"].as_object());
        let media_type = content.and_then(|content| content.keys().next());
        assert_eq!(head.header("content-type"), media_type.map(String::as_str), "{method} {real}");
        assert!(responses.contains_key("403") && responses.contains_key("500"));
    }
}

#[tokio::test]
async fn what_the_document_has_not_the_server_has_not() {
    let world = world().await;
    let document = get(&world.server, "/openapi.json").await.json();
    let documented = operations(&document);
    let paths: Vec<String> =
        document["paths"].as_object().expect("paths").keys().cloned().collect();
    for path in paths {
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"] {
            if documented.iter().any(|(given, at, _)| given == method && *at == path) {
                continue;
            }
            let response = ask(&world.server, &format!("{method} {path}"), &[]).await;
            assert_eq!(response.problem().1, "method-not-allowed", "{method} {path}");
        }
    }
}

#[tokio::test]
async fn the_document_has_the_longest_time_limit_of_the_service() {
    let options = ProcessServiceOptions {
        default_timeout_ms: Some(1000),
        max_timeout_ms: 2000,
        ..Default::default()
    };
    let world = world_with(options, ListenOptions::default()).await;
    let document = get(&world.server, "/openapi.json").await.json();
    let schema = &document["components"]["schemas"]["NewProcess"]["properties"]["timeoutMs"];
    assert_eq!(schema["maximum"], 2000);
}

#[tokio::test]
async fn with_a_token_the_document_says_so() {
    let listen = ListenOptions { token: Some("0123456789abcdef".to_owned()), ..Default::default() };
    let world = world_with(ProcessServiceOptions::default(), listen).await;
    let document = get(&world.server, "/openapi.json").await.json();
    assert_eq!(document["security"], serde_json::json!([{ "token": [] }]));
    for (method, path, responses) in operations(&document) {
        let is_open = ["/", "/healthz", "/openapi.json"].contains(&path.as_str());
        assert_eq!(responses.contains_key("401"), !is_open, "{method} {path}");
        let response = ask(&world.server, &format!("{method} {path}"), &[]).await;
        assert_eq!(response.status == 401, !is_open, "{method} {path}");
    }
}

#[tokio::test]
async fn metrics_count_processes_and_requests() {
    let world = world().await;
    ended(&world.server, "out a").await;
    ended(&world.server, "fail no").await;
    get(&world.server, "/processes/1").await;
    get(&world.server, "/processes/9").await;
    get(&world.server, "/nothing").await;
    let metrics = get(&world.server, "/metrics").await;
    let media_type = "text/plain; version=0.0.4; charset=utf-8";
    assert_eq!(metrics.header("content-type"), Some(media_type));
    for line in [
        r#"isolane_processes{state="idle"} 2"#,
        r#"isolane_processes{state="running"} 0"#,
        r#"isolane_exits_total{exit_state="failed"} 1"#,
        r#"isolane_exits_total{exit_state="success"} 1"#,
        r#"isolane_exits_total{exit_state="timeout"} 0"#,
        "isolane_duration_seconds_count 2",
        "isolane_queue_seconds_count 2",
        r#"isolane_http_requests_total{route="/processes",status="201"} 2"#,
        r#"isolane_http_requests_total{route="/processes/{pid}",status="200"} 1"#,
        r#"isolane_http_requests_total{route="/processes/{pid}",status="404"} 1"#,
        r#"isolane_http_requests_total{route="unknown",status="404"} 1"#,
        "isolane_given_up_total 0",
    ] {
        assert!(metrics.body.lines().any(|given| given == line), "{line}\n{}", metrics.body);
    }
}
