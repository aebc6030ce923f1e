//! The table of states: who changes a state, when, and what is refused.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use isolane_environment::{
    EnvironmentError, ErrorDetails,
    ExecutionExitState::{Canceled, Failed, Success, Timeout},
    ExecutionFailure,
    ExecutionState::{Queued as EnvironmentQueued, Running as EnvironmentRunning},
    ListQuery, NewProcess, ProblemType, ProcessError, ProcessServiceOptions,
    ProcessState::{self, Idle, Queued, Running, Terminating},
    RunQuery,
};
use serde_json::{Map, Value, json};

use crate::support::{create, end, narrow, service, settle, state};

fn code<T: std::fmt::Debug>(refused: Result<T, ProcessError>) -> (ProblemType, String) {
    let ProcessError { code, message } = refused.expect_err("refused");
    (code, message)
}

fn fields(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn a_process_goes_through_its_states() {
    let (service, driven) = narrow();
    let record = create(&service, "1").await;
    assert_eq!((record.pid, record.state, record.exit_state), (1, Queued, None));
    assert_eq!((record.timeout_ms, record.started_at), (Some(30_000), None));
    let input = &driven.inputs()[0];
    assert_eq!((input.eid, input.code.as_str()), (1, "1"));
    assert_eq!(input.options.map(|options| options.timeout_ms), Some(30_000));
    let bindings = driven.bindings(1);
    bindings.set_state(1, EnvironmentQueued).expect("its own number");
    assert_eq!(state(&service, 1).await, Queued);
    bindings.set_state(1, EnvironmentRunning).expect("its own number");
    let record = service.get(1).await.expect("known");
    assert_eq!(record.state, Running);
    assert!(record.started_at.is_some_and(|at| at.ends_with('Z') && at.len() == 24));
    // The table has no way back.
    bindings.set_state(1, EnvironmentQueued).expect("its own number");
    assert_eq!(state(&service, 1).await, Running);
    driven.end(1, Ok(Success));
    assert_eq!(end(&service, 1).await, ("success", None));
    // Late reports are dropped.
    bindings.set_state(1, EnvironmentRunning).expect("its own number");
    bindings.stdout(1, "late").expect("its own number");
    bindings.output(1, fields(&json!({ "late": 1 }))).expect("its own number");
    assert_eq!(state(&service, 1).await, Idle);
    assert_eq!(service.stdout(1).await.as_deref(), Ok(""));
    assert_eq!(service.output(1).await, Ok(Map::new()));
}

#[tokio::test(start_paused = true)]
async fn a_record_has_the_fields_of_http() {
    let (service, driven) = narrow();
    create(&service, "x").await;
    let bindings = driven.bindings(1);
    bindings.set_state(1, EnvironmentRunning).expect("its own number");
    bindings.stdout(1, "a\u{e4}".as_bytes()).expect("small");
    bindings.output(1, fields(&json!({ "n": 1 }))).expect("small");
    let details = ErrorDetails {
        name: Some("TypeError".to_owned()),
        message: "x is not a function".to_owned(),
        filename: Some("process-1.ts".to_owned()),
        line: Some(3),
        column: Some(7),
        ..ErrorDetails::default()
    };
    bindings.error(1, ExecutionFailure::Text("first".to_owned())).expect("its own number");
    bindings.error(1, ExecutionFailure::Details(details)).expect("its own number");
    driven.end(1, Ok(Failed));
    settle().await;
    let mut record = serde_json::to_value(service.get(1).await.expect("known")).expect("JSON");
    for name in ["createdAt", "startedAt", "finishedAt"] {
        let at = record[name].take();
        assert!(at.as_str().is_some_and(|at| at.ends_with('Z')), "{name}: {at}");
    }
    let expected = json!({
        "pid": 1, "state": "idle", "exitState": "failed",
        "error": "TypeError: x is not a function (process-1.ts:3:7)",
        "errorDetails": {
            "name": "TypeError", "message": "x is not a function",
            "filename": "process-1.ts", "line": 3, "column": 7,
        },
        "timeoutMs": 30_000, "createdAt": null, "startedAt": null, "finishedAt": null,
        "stdout": { "bytes": 3, "truncated": false }, "stderr": { "bytes": 0, "truncated": false },
        "output": { "n": 1 },
    });
    assert_eq!(record, expected);
    let listed = service.list(ListQuery::default()).await.expect("valid");
    let listed = serde_json::to_value(&listed).expect("JSON");
    assert_eq!(listed["next"], Value::Null);
    assert!(listed["items"][0].get("output").is_none());
}

#[tokio::test(start_paused = true)]
async fn the_service_believes_the_environment() {
    let (service, driven) = narrow();
    let thrown = |message: &str| Err(EnvironmentError::new(message));
    let none = EnvironmentError::no_exit_state("'done'");
    for (pid, (outcome, expected)) in (1..).zip([
        (Ok(Success), ("success", None)),
        (Ok(Timeout), ("timeout", None)),
        (Ok(Canceled), ("canceled", None)),
        (Ok(Failed), ("failed", Some("the environment gave no reason"))),
        (thrown("no memory"), ("failed", Some("no memory"))),
        (Err(none), ("failed", Some("the environment returned 'done', which is no exit state"))),
    ]) {
        create(&service, "").await;
        driven.end(pid, outcome);
        let (exit, error) = end(&service, pid).await;
        assert_eq!((exit, error.as_deref()), expected);
    }
    // While terminating, an error is no failure.
    create(&service, "").await;
    driven.bindings(7).error(7, ExecutionFailure::Text("dropped".to_owned())).expect("its number");
    service.kill(7).await.expect("killed");
    driven.end(7, thrown("interrupted"));
    assert_eq!(end(&service, 7).await, ("canceled", None));
    create(&service, "").await;
    service.kill(8).await.expect("killed");
    driven.end(8, Ok(Success));
    assert_eq!(end(&service, 8).await, ("success", None));
}

#[tokio::test(start_paused = true)]
async fn killed_in_the_queue_it_is_never_executed() {
    let (service, driven) = narrow();
    create(&service, "first").await;
    create(&service, "second").await;
    create(&service, "third").await;
    let record = service.kill(2).await.expect("killed");
    assert_eq!((record.state, record.exit_state), (Idle, Some(Canceled)));
    assert_eq!((record.error, record.started_at), (None, None));
    driven.end(1, Ok(Success));
    settle().await;
    let codes: Vec<String> = driven.inputs().into_iter().map(|input| input.code).collect();
    assert_eq!(codes, ["first", "third"]);
    assert_eq!(driven.kills(), Vec::<u64>::new());
}

#[tokio::test(start_paused = true)]
async fn killed_before_the_environment_has_it_it_is_never_executed() {
    let (service, driven) = narrow();
    let record = service.create(NewProcess::new("x")).await.expect("created");
    assert_eq!(record.state, Queued);
    service.kill(1).await.expect("killed");
    assert_eq!(end(&service, 1).await, ("canceled", None));
    assert!(driven.inputs().is_empty() && driven.kills().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_kill_calls_the_environment_once() {
    let (service, driven) = narrow();
    create(&service, "queued in the environment").await;
    assert_eq!(service.kill(1).await.expect("killed").state, Terminating);
    assert_eq!(service.kill(1).await.expect("no change").state, Terminating);
    settle().await;
    assert_eq!(driven.kills(), [1]);
    // The table has no running after that.
    driven.bindings(1).set_state(1, EnvironmentRunning).expect("its number");
    assert_eq!(state(&service, 1).await, Terminating);
    driven.end(1, Ok(Canceled));
    assert_eq!(end(&service, 1).await, ("canceled", None));
    let refused = code(service.kill(1).await);
    assert_eq!(refused, (ProblemType::AlreadyIdle, "process 1 is idle already".to_owned()));
    assert_eq!(
        code(service.kill(9).await),
        (ProblemType::NotFound, "there is no process 9".to_owned())
    );
}

#[tokio::test(start_paused = true)]
async fn what_does_not_stop_is_given_up_after_the_grace() {
    let (service, driven) = narrow();
    create(&service, "stubborn").await;
    create(&service, "next").await;
    let bindings = driven.bindings(1);
    bindings.set_state(1, EnvironmentRunning).expect("its number");
    service.kill(1).await.expect("killed");
    tokio::time::sleep(Duration::from_millis(9_999)).await;
    assert_eq!(state(&service, 1).await, Terminating);
    assert_eq!(driven.inputs().len(), 1);
    tokio::time::sleep(Duration::from_millis(2)).await;
    let error = "the environment did not stop within 10000 ms";
    assert_eq!(end(&service, 1).await, ("canceled", Some(error.to_owned())));
    // The place is free, and late reports are dropped.
    assert_eq!(driven.inputs().len(), 2);
    bindings.stdout(1, "late").expect("its number");
    assert_eq!(service.stdout(1).await.as_deref(), Ok(""));
    assert_eq!(service.stats().given_up, 1);
}

#[tokio::test(start_paused = true)]
async fn without_a_grace_a_kill_gives_up_at_once() {
    let options = ProcessServiceOptions {
        concurrency: 1,
        kill_grace_ms: 0,
        ..ProcessServiceOptions::default()
    };
    let (service, driven) = service(options);
    create(&service, "stubborn").await;
    create(&service, "next").await;
    driven.begun(1).await.set_state(1, EnvironmentRunning).expect("its number");
    assert_eq!(service.kill(1).await.expect("killed").state, Terminating);
    service.wait(1, None).await.expect("known");
    let error = "the environment did not stop within 0 ms";
    assert_eq!(end(&service, 1).await, ("canceled", Some(error.to_owned())));
    // The environment was told all the same.
    driven.begun(2).await;
    assert_eq!((driven.kills(), service.stats().given_up), (vec![1], 1));
    service.shutdown().await;
    assert_eq!((end(&service, 2).await.0, driven.shutdowns()), ("canceled", 1));
}

#[tokio::test(start_paused = true)]
async fn what_does_not_answer_is_given_up_after_the_backstop() {
    let (service, driven) = narrow();
    create(&service, "silent").await;
    tokio::time::sleep(Duration::from_secs(50)).await;
    driven.bindings(1).set_state(1, EnvironmentRunning).expect("its number");
    // The time counts from the start of the code.
    tokio::time::sleep(Duration::from_millis(89_999)).await;
    assert_eq!(state(&service, 1).await, Running);
    assert_eq!(driven.kills(), Vec::<u64>::new());
    tokio::time::sleep(Duration::from_millis(2)).await;
    let error = "the environment did not answer within 60000 ms of its timeout";
    assert_eq!(end(&service, 1).await, ("failed", Some(error.to_owned())));
    assert_eq!(driven.kills(), [1]);
}

#[tokio::test(start_paused = true)]
async fn the_backstop_counts_for_silent_environments_and_not_for_their_queues() {
    let (service, driven) = service(ProcessServiceOptions::default());
    create(&service, "silent").await;
    create(&service, "waits in the environment").await;
    driven.bindings(2).set_state(2, EnvironmentQueued).expect("its number");
    tokio::time::sleep(Duration::from_millis(90_001)).await;
    assert_eq!(end(&service, 1).await.0, "failed");
    assert_eq!(state(&service, 2).await, Queued);
    service.kill(2).await.expect("killed");
    tokio::time::sleep(Duration::from_millis(10_001)).await;
    assert_eq!(end(&service, 2).await.0, "canceled");
}

#[tokio::test(start_paused = true)]
async fn without_a_backstop_or_a_limit_nothing_is_given_up() {
    let no_backstop =
        ProcessServiceOptions { backstop_ms: None, ..ProcessServiceOptions::default() };
    let no_limit =
        ProcessServiceOptions { default_timeout_ms: None, ..ProcessServiceOptions::default() };
    for options in [no_backstop, no_limit] {
        let (service, driven) = service(options);
        create(&service, "").await;
        driven.bindings(1).set_state(1, EnvironmentRunning).expect("its number");
        tokio::time::sleep(Duration::from_secs(1_000_000)).await;
        assert_eq!(state(&service, 1).await, Running);
    }
}

#[tokio::test(start_paused = true)]
async fn a_kill_that_throws_is_logged() {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let log = {
        let lines = Arc::clone(&lines);
        Arc::new(move |line: &str| lines.lock().expect("whole").push(line.to_owned()))
    };
    let (service, driven) =
        service(ProcessServiceOptions { log: Some(log), ..ProcessServiceOptions::default() });
    driven.fail_kills("no such thing");
    create(&service, "").await;
    service.kill(1).await.expect("killed");
    settle().await;
    assert_eq!(*lines.lock().expect("whole"), ["kill of process 1 failed: no such thing"]);
    assert_eq!(state(&service, 1).await, Terminating);
}

#[tokio::test(start_paused = true)]
async fn run_needs_an_idle_process_and_force_for_results() {
    let (service, driven) = narrow();
    let new = NewProcess { autorun: false, ..NewProcess::new("x") };
    let record = service.create(new).await.expect("created");
    assert_eq!((record.state, record.exit_state), (Idle, None));
    settle().await;
    assert!(driven.inputs().is_empty());
    assert_eq!(service.run(1, RunQuery::default()).await.expect("queued").state, Queued);
    settle().await;
    let refused = code(service.run(1, RunQuery { force: true }).await);
    assert_eq!(refused, (ProblemType::NotIdle, "process 1 is queued".to_owned()));
    let bindings = driven.bindings(1);
    bindings.set_state(1, EnvironmentRunning).expect("its number");
    bindings.stdout(1, "text").expect("small");
    bindings.stderr(1, "text").expect("small");
    bindings.output(1, fields(&json!({ "a": 1 }))).expect("small");
    assert_eq!(
        code(service.delete(1).await),
        (ProblemType::NotIdle, "process 1 is running".to_owned())
    );
    driven.end(1, Err(EnvironmentError::new("no")));
    settle().await;
    let refused = code(service.run(1, RunQuery::default()).await);
    assert_eq!(
        refused,
        (ProblemType::HasResults, "process 1 has results: force clears them".to_owned())
    );
    let record = service.run(1, RunQuery { force: true }).await.expect("queued");
    assert_eq!((record.state, record.exit_state, record.error), (Queued, None, None));
    assert_eq!((record.started_at, record.finished_at), (None, None));
    assert_eq!((record.stdout.bytes, record.stderr.bytes), (0, 0));
    assert_eq!(record.output, Some(Map::new()));
    settle().await;
    // Reports of the first execution do not reach the second one.
    bindings.stdout(1, "late").expect("small");
    assert_eq!(service.stdout(1).await.as_deref(), Ok(""));
    driven.end(1, Ok(Success));
    settle().await;
    service.delete(1).await.expect("idle");
    assert_eq!(code(service.get(1).await).0, ProblemType::NotFound);
    assert_eq!(create(&service, "").await.pid, 2, "no pid is used again");
}

#[tokio::test(start_paused = true)]
async fn the_queue_has_a_bound() {
    let options =
        ProcessServiceOptions { concurrency: 1, max_queued: 1, ..ProcessServiceOptions::default() };
    let (service, driven) = service(options);
    create(&service, "runs").await;
    create(&service, "waits").await;
    let refused = code(service.create(NewProcess::new("")).await);
    assert_eq!(refused, (ProblemType::QueueFull, "1 processes wait already".to_owned()));
    let new = NewProcess { autorun: false, ..NewProcess::new("") };
    let idle = service.create(new).await.expect("it does not wait");
    assert_eq!(code(service.run(idle.pid, RunQuery::default()).await).0, ProblemType::QueueFull);
    driven.end(1, Ok(Success));
    settle().await;
    create(&service, "waits now").await;
    assert_eq!(service.stats().processes, [(Idle, 2), (Queued, 2), (Running, 0), (Terminating, 0)]);
}

#[tokio::test(start_paused = true)]
async fn time_limits_have_a_range() {
    let (service, driven) = narrow();
    let new = |timeout_ms| NewProcess { timeout_ms: Some(timeout_ms), ..NewProcess::new("") };
    for wrong in [0, 3_600_001] {
        let expected = format!("timeoutMs must be a whole number from 1 to 3600000, got {wrong}");
        assert_eq!(code(service.create(new(wrong)).await), (ProblemType::BadRequest, expected));
    }
    service.create(new(3_600_000)).await.expect("created");
    settle().await;
    assert_eq!(driven.inputs()[0].options.map(|options| options.timeout_ms), Some(3_600_000));
}

#[tokio::test(start_paused = true)]
async fn wait_ends_with_the_process_or_the_time() {
    let (service, driven) = narrow();
    create(&service, "").await;
    let waits = tokio::spawn({
        let service = service.clone();
        async move { service.wait(1, None).await }
    });
    let record = service.wait(1, Some(Duration::from_millis(100))).await.expect("known");
    assert_eq!(record.state, Queued);
    driven.end(1, Ok(Success));
    let record = waits.await.expect("no panic").expect("known");
    assert_eq!(record.exit_state, Some(Success));
}

#[tokio::test(start_paused = true)]
async fn lists_are_newest_first_and_in_pages() {
    let (service, driven) = narrow();
    for _ in 0..5 {
        create(&service, "").await;
    }
    driven.end(1, Ok(Failed));
    settle().await;
    let pids = |list: isolane_environment::ProcessList| {
        let pids: Vec<u64> = list.items.iter().map(|record| record.pid).collect();
        (pids, list.next)
    };
    let list = |query| service.list(query);
    let query = ListQuery { limit: 2, ..ListQuery::default() };
    assert_eq!(pids(list(query).await.expect("valid")), (vec![5, 4], Some(4)));
    let query = ListQuery { limit: 3, before: Some(4), ..query };
    assert_eq!(pids(list(query).await.expect("valid")), (vec![3, 2, 1], None));
    let query = ListQuery { state: Some(Idle), ..ListQuery::default() };
    assert_eq!(pids(list(query).await.expect("valid")), (vec![1], None));
    let query = ListQuery { exit_state: Some(Success), ..ListQuery::default() };
    assert_eq!(pids(list(query).await.expect("valid")), (vec![], None));
    let refused = code(list(ListQuery { limit: 0, ..ListQuery::default() }).await);
    assert_eq!(refused.1, "limit must be a whole number from 1 to 200, got 0");
}

#[tokio::test(start_paused = true)]
async fn finished_processes_are_kept_for_a_while() {
    let options = ProcessServiceOptions {
        retain_count: 2,
        retain_ms: 60_000,
        ..ProcessServiceOptions::default()
    };
    let (service, driven) = service(options);
    for pid in 1..=3 {
        create(&service, "").await;
        driven.end(pid, Ok(Success));
        settle().await;
    }
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(code(service.get(1).await).0, ProblemType::NotFound);
    service.get(2).await.expect("one of the last two");
    create(&service, "runs on").await;
    tokio::time::sleep(Duration::from_secs(50)).await;
    let list = service.list(ListQuery::default()).await.expect("valid");
    assert_eq!(list.items.iter().map(|record| record.pid).collect::<Vec<_>>(), [4]);
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_process_can_be_seen_though_none_is_kept() {
    let options = ProcessServiceOptions {
        retain_count: 0,
        concurrency: 2,
        ..ProcessServiceOptions::default()
    };
    let (service, driven) = service(options);
    for pid in 1..=3 {
        create(&service, "").await;
        driven.end(pid, Ok(Success));
        settle().await;
        let record = service.wait(pid, None).await.expect("it has just ended");
        assert_eq!(record.exit_state, Some(Success));
        assert_eq!(service.stdout(pid).await.as_deref(), Ok(""));
    }
    // No more of them than run at once, and none for long.
    assert_eq!(code(service.get(1).await).0, ProblemType::NotFound);
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(code(service.get(3).await).0, ProblemType::NotFound);
}

#[tokio::test(start_paused = true)]
async fn bindings_are_of_one_execution() {
    let (service, driven) = narrow();
    create(&service, "").await;
    let bindings = driven.bindings(1);
    let message = "these bindings are of execution 1, not 6";
    let errors = [
        bindings.set_state(6, EnvironmentRunning),
        bindings.stdout(6, "x"),
        bindings.stderr(6, "x"),
        bindings.output(6, Map::new()),
        bindings.error(6, ExecutionFailure::Text("x".to_owned())),
    ];
    for error in errors {
        assert_eq!(error.expect_err("refused").message(), message);
    }
    let error = bindings.invoke_tool(6, "a.b", json!({})).await.expect_err("refused");
    assert_eq!(error.to_string(), format!("TypeError: {message}"));
}

#[tokio::test(start_paused = true)]
async fn streams_and_output_have_bounds() {
    let options = ProcessServiceOptions {
        max_stream_bytes: 5,
        max_output_bytes: 21,
        ..ProcessServiceOptions::default()
    };
    let (service, driven) = service(options);
    create(&service, "").await;
    let bindings = driven.bindings(1);
    let too_large = vec![b'x'; (4 << 20) + 1];
    let error = bindings.stdout(1, &too_large).expect_err("refused");
    assert_eq!(error.kind(), isolane::ErrorKind::Range);
    assert_eq!(service.stdout(1).await.as_deref(), Ok(""));
    // A character across two writes, one that is never completed, and one that does not fit.
    bindings.stdout(1, b"a\xc3").expect("small");
    bindings.stdout(1, b"\xa4").expect("small");
    bindings.stderr(1, b"\xe2\x82").expect("small");
    bindings.stdout(1, "b\u{e4}").expect("small");
    bindings.output(1, fields(&json!({ "__proto__": 1, "a": 2 }))).expect("small");
    let error = bindings.output(1, fields(&json!({ "b": "too large" }))).expect_err("refused");
    assert_eq!(error.kind(), isolane::ErrorKind::Range);
    assert_eq!(error.message(), "the output would be larger than 21 bytes of JSON");
    driven.end(1, Ok(Success));
    settle().await;
    let record = service.get(1).await.expect("known");
    assert_eq!((record.stdout.bytes, record.stdout.truncated), (4, true));
    assert_eq!(service.stdout(1).await.as_deref(), Ok("a\u{e4}b"));
    assert_eq!(service.stderr(1).await.as_deref(), Ok("\u{fffd}"));
    let output = service.output(1).await.map(|output| Value::Object(output).to_string());
    assert_eq!(output.as_deref(), Ok(r#"{"__proto__":1,"a":2}"#));
}

#[tokio::test(start_paused = true)]
async fn shutdown_cancels_and_waits_no_longer_than_the_grace() {
    let (service, driven) = narrow();
    create(&service, "stubborn").await;
    create(&service, "waits").await;
    let down = tokio::spawn({
        let service = service.clone();
        async move { service.shutdown().await }
    });
    settle().await;
    assert!(service.is_shutting_down());
    assert_eq!(end(&service, 2).await, ("canceled", None));
    assert_eq!(state(&service, 1).await, Terminating);
    let refused = code(service.create(NewProcess::new("")).await);
    assert_eq!(refused, (ProblemType::ShuttingDown, "the service is shutting down".to_owned()));
    assert_eq!(driven.shutdowns(), 0);
    service.shutdown().await;
    down.await.expect("no panic");
    assert_eq!(driven.shutdowns(), 1);
    assert_eq!(end(&service, 1).await.0, "canceled");
    service.shutdown().await;
    assert_eq!((driven.shutdowns(), driven.kills()), (1, vec![1]));
}

#[tokio::test(start_paused = true)]
async fn counts_are_those_of_what_happened() {
    let (service, driven) = narrow();
    create(&service, "").await;
    tokio::time::sleep(Duration::from_millis(2)).await;
    driven.bindings(1).set_state(1, EnvironmentRunning).expect("its number");
    tokio::time::sleep(Duration::from_millis(7)).await;
    driven.end(1, Ok(Success));
    create(&service, "").await;
    driven.end(2, Ok(Failed));
    settle().await;
    let stats = service.stats();
    assert_eq!(stats.exits, [(Failed, 1), (Success, 1), (Timeout, 0), (Canceled, 0)]);
    assert_eq!((stats.queue.count, stats.duration.count), (1, 2));
    assert_eq!(stats.duration.buckets[2], (0.01, 2));
    assert_eq!(stats.processes[0], (ProcessState::Idle, 2));
}

#[test]
fn options_have_a_range() {
    let wrong = ProcessServiceOptions { concurrency: 0, ..ProcessServiceOptions::default() };
    let error = isolane_environment::ProcessService::new(wrong).expect_err("refused");
    assert_eq!(error.message(), "concurrency must be a whole number from 1 to 1000000, got 0");
}
