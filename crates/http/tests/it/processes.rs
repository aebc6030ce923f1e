//! Requests about processes that succeed.

use isolane_environment::ProcessServiceOptions;
use isolane_http::ListenOptions;
use serde_json::{Value, json};

use crate::{
    client::{ask, ended, get, post},
    scripted::world,
};

#[tokio::test]
async fn a_process_is_created_and_waited_for() {
    let world = world().await;
    let body = r#"{"code":"out hä\nerr e\njson {\"b\":1,\"a\":[2]}","timeoutMs":5000}"#;
    let response = post(&world.server, "/processes?wait=60000", body).await;
    assert_eq!((response.status, response.header("location")), (201, Some("/processes/1")));
    let record = response.json();
    let times = ["createdAt", "startedAt", "finishedAt"].map(|name| record[name].clone());
    assert!(times.iter().all(|time| time.as_str().is_some_and(|time| time.ends_with('Z'))));
    let [created, started, finished] = times;
    let expected = json!({
        "pid": 1, "state": "idle", "exitState": "success", "error": null, "errorDetails": null, "timeoutMs": 5000,
        "createdAt": created, "startedAt": started, "finishedAt": finished,
        "stdout": { "bytes": 3, "truncated": false }, "stderr": { "bytes": 1, "truncated": false },
        "output": { "b": 1, "a": [2] },
    });
    assert_eq!(record, expected);
    assert_eq!(get(&world.server, "/processes/1").await.json(), expected);
    assert_eq!(get(&world.server, "/processes/1?wait=60000").await.json(), expected);

    let text = |part: &'static str| {
        let server = &world.server;
        async move {
            let response = get(server, &format!("/processes/1/{part}")).await;
            assert_eq!(response.header("content-type"), Some("text/plain; charset=utf-8"));
            (response.status, response.body)
        }
    };
    assert_eq!(text("stdout").await, (200, "hä".to_owned()));
    assert_eq!(text("stderr").await, (200, "e".to_owned()));
    assert_eq!(text("code").await.1, "out hä\nerr e\njson {\"b\":1,\"a\":[2]}");
    let output = get(&world.server, "/processes/1/output").await;
    assert_eq!((output.body.as_str(), output.status), (r#"{"b":1,"a":[2]}"#, 200));
    output.json();
}

#[tokio::test]
async fn a_wait_ends_with_its_time() {
    let world = world().await;
    let record = post(&world.server, "/processes?wait=1", r#"{"code":"hold"}"#).await;
    assert_eq!((record.status, record.json()["exitState"].clone()), (201, Value::Null));
    let record = get(&world.server, "/processes/1?wait=0").await.json();
    assert_eq!(record["state"], "running");
    world.scripted.go(1);
    let record = get(&world.server, "/processes/1?wait=60000").await.json();
    assert_eq!((&record["state"], &record["exitState"]), (&json!("idle"), &json!("success")));
}

#[tokio::test]
async fn lists_go_from_page_to_page() {
    let world = world().await;
    for code in ["out 1", "fail no", "out 3", "out 4"] {
        ended(&world.server, code).await;
    }
    post(&world.server, "/processes", r#"{"code":"","autorun":false}"#).await;
    let page = |query: &'static str| {
        let server = &world.server;
        async move {
            let list = get(server, &format!("/processes{query}")).await.json();
            let items = list["items"].as_array().expect("items").clone();
            assert!(items.iter().all(|item| item.get("output").is_none()));
            let pids = items.iter().map(|item| item["pid"].as_u64().expect("a pid"));
            (pids.collect::<Vec<_>>(), list["next"].clone())
        }
    };
    assert_eq!(page("").await, (vec![5, 4, 3, 2, 1], Value::Null));
    let (pids, next) = page("?limit=2").await;
    assert_eq!((pids, &next), (vec![5, 4], &json!(4)));
    assert_eq!(page("?limit=2&before=4").await, (vec![3, 2], json!(2)));
    assert_eq!(page("?limit=2&before=2").await, (vec![1], Value::Null));
    assert_eq!(page("?state=idle&exitState=failed").await, (vec![2], Value::Null));
    assert_eq!(page("?state=running").await, (vec![], Value::Null));
}

#[tokio::test]
async fn processes_are_run_killed_and_deleted() {
    let world = world().await;
    let server = &world.server;
    post(server, "/processes", r#"{"code":"out a\nhold","autorun":false}"#).await;
    let record = post(server, "/processes/1/run", "").await;
    assert_eq!((record.status, record.json()["state"].clone()), (200, json!("queued")));
    assert_eq!(get(server, "/processes/1?wait=0").await.json()["state"], "running");
    let killed = post(server, "/processes/1/kill", "").await;
    assert_eq!((killed.status, killed.json()["state"].clone()), (200, json!("terminating")));
    let record = get(server, "/processes/1?wait=60000").await.json();
    assert_eq!((&record["exitState"], &record["stdout"]["bytes"]), (&json!("canceled"), &json!(1)));
    let again = post(server, "/processes/1/run", r#"{"force":true}"#).await.json();
    assert_eq!((&again["exitState"], &again["stdout"]["bytes"]), (&Value::Null, &json!(0)));
    get(server, "/processes/1?wait=60000").await;
    let deleted = ask(server, "DELETE /processes/1", &[]).await;
    assert_eq!((deleted.status, deleted.body.as_str()), (204, ""));
    assert_eq!(get(server, "/processes/1").await.status, 404);
}

#[tokio::test]
async fn a_head_has_the_headers_of_a_get() {
    let world = world().await;
    ended(&world.server, "out abc").await;
    let mut connection = crate::client::Connection::to(&world.server).await;
    connection.ask("HEAD /processes/1/stdout", &[("Connection", "close")], "").await;
    let head = connection.head().await;
    assert_eq!((head.status, head.header("content-length")), (200, Some("3")));
    assert_eq!(connection.rest().await, "");
}

#[tokio::test]
async fn typescript_runs_end_to_end() {
    let listen = ListenOptions { port: 0, ..ListenOptions::default() };
    let service = isolane_environment::ProcessService::new(ProcessServiceOptions::default());
    let service = service.expect("the default environment");
    let server = isolane_http::Server::listen(service, listen).await.expect("an address");
    let code = "const n: number = 2; console.log('hello'); export default n + 1";
    let pid = ended(&server, code).await;
    let record = get(&server, &format!("/processes/{pid}")).await.json();
    assert_eq!(
        (&record["exitState"], &record["output"]),
        (&json!("success"), &json!({ "result": 3 }))
    );
    assert_eq!(get(&server, &format!("/processes/{pid}/stdout")).await.body, "hello\n");
    server.close().await;
}
